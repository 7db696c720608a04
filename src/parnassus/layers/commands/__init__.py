"""The `Predict` and `Evaluate` that experiments with image classifiers share."""
