"""The `Sample` that experiments with models of music share."""
