"""Data that are generated, or included in this package, in scikit-learn or in Python."""
