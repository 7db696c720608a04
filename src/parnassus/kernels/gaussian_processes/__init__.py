"""Gaussian processes: covariance functions, regression, model selection, calibration (book sec. 15.1)."""
