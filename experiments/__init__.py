"""Experiments on kofa: the paper's tables and figures, and benchmarks. Not part of the package.

`python -m experiments NAME...` runs them. A module anywhere in here takes part by a dict
`EXPERIMENTS` of named experiments; nothing else has to know of it.
"""
