"""Experiments on simulated data, where the answer is known."""
