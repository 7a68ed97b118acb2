"""Predictions for samples that were left out of the fit: scores, comparisons, calibration."""
