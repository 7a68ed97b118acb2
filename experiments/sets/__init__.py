"""Experiments on data sets: the paper's tables and figures, and rows of the benchmarks."""
