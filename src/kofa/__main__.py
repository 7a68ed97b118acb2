"""`python -m kofa`: the command `kofa`."""

from __future__ import annotations

from kofa.cli import main

if __name__ == "__main__":
    main()
