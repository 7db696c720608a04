"""The training and the `Sample` that experiments with models of music share."""
