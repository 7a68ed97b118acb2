"""`python -m kofa.cli`: the command `kofa`."""

from __future__ import annotations

from kofa.cli import main

if __name__ == "__main__":
    main()
