"""Peak memory of one fit: `python -m experiments.costs.peak N`, run in a process of its own."""

from __future__ import annotations

import sys
from pathlib import Path

from experiments.timing import fit_kernel, kernel_rows


def peak() -> int:
    """The most memory this process has held, in bytes."""
    status = Path("/proc/self/status")
    if status.exists():  # on Linux ru_maxrss can be that of the process which started this one
        line = next(
            x for x in status.read_text(encoding="utf-8").splitlines() if x.startswith("VmHWM")
        )
        return 1024 * int(line.split()[1])
    if sys.platform == "win32":
        raise NotImplementedError("Windows does not say how much memory a process has held")
    import resource

    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else 1024 * size


def main() -> None:
    """Print the bytes that a fit adds to what the imports take."""
    before = peak()
    fit_kernel(kernel_rows(int(sys.argv[1])), "all", n_factors=50, max_iter=3)
    print(peak() - before)


if __name__ == "__main__":
    main()
