"""Counts of single cells, sparse: `python -m experiments.scale.sparse [cells] [genes] [kind]`.

They are taken as real numbers or, with the kind `count`, as counts, where a pass takes far longer.
Peak memory of a fit of two views against that of the sparse data, in one line.
"""

from __future__ import annotations

import sys
from time import process_time
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from experiments.costs.peak import peak
from kofa import Count, FactorModel, Real

_ZEROS, _FACTORS, _AT_A_TIME = 0.95, 5, 250


def cells(n: int, n_genes: int, seed: int) -> csr_matrix:
    """Counts with 95 % zeros, of five factors, made without a dense matrix of all."""
    rng = np.random.default_rng(seed)
    W = 0.7 * rng.standard_normal((_FACTORS, n_genes))
    bias = rng.normal(np.log(1.0 - _ZEROS), 1.0, n_genes) - 1.45
    capacity = int(n * n_genes * 0.08)
    data, columns = np.empty(capacity, np.float32), np.empty(capacity, np.int32)
    ends = np.zeros(n + 1, np.int64)
    factors = np.random.default_rng(0)  # those of both views
    for start in range(0, n, _AT_A_TIME):
        z = factors.standard_normal((min(_AT_A_TIME, n - start), _FACTORS))
        block = csr_matrix(rng.poisson(np.exp(z @ W + bias)).astype(np.float32))
        here = slice(ends[start], ends[start] + block.nnz)
        data[here], columns[here] = block.data, block.indices
        ends[start + 1 : start + len(z) + 1] = ends[start] + block.indptr[1:]
    used = slice(0, ends[-1])
    return csr_matrix((data[used].copy(), columns[used].copy(), ends), shape=(n, n_genes))


def size(matrix: csr_matrix) -> int:
    """Bytes of a sparse matrix."""
    parts: list[Any] = [matrix.data, matrix.indices, matrix.indptr]
    return sum(part.nbytes for part in parts)


def main() -> None:
    """Fit and print the line."""
    given, defaults = sys.argv[1:4], ["5000", "1000", "real"]
    rows, genes, kind = given + defaults[len(given) :]
    n, n_genes, view = int(rows), int(genes), Count() if kind == "count" else Real()
    imported = peak()
    data = {name: cells(n, n_genes, seed) for seed, name in enumerate(("rna", "atac"), 1)}
    held = sum(map(size, data.values()))
    zeros = 1.0 - sum(one.nnz for one in data.values()) / (2 * n * n_genes)
    before, start = peak(), process_time()
    model = FactorModel(dict.fromkeys(data, view), n_factors=10, callback=lambda i: i.n_iter >= 5)
    model.fit(data)
    print(
        f"two {kind} views of {n} × {n_genes} counts, {zeros:.1%} zeros: peak memory of the "
        f"process {peak() / held:.2f} times the {held / 2**20:.0f} MiB of the sparse data "
        f"({peak() / 2**20:.0f} MiB, {imported / 2**20:.0f} after imports, {before / 2**20:.0f} "
        f"with the data; dense they were {16 * n * n_genes / 2**20:.0f}); "
        f"{model.n_iter_} iterations, {process_time() - start:.0f} s of CPU"
    )


if __name__ == "__main__":
    main()
