"""The `Sample` and `Evaluate` that experiments with variational autoencoders share."""
