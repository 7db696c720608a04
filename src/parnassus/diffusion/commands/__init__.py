"""The `Sample` and the training with averaged weights that experiments with images share."""
