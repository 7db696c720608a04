"""Splits, scaling, and other preparations of examples for training."""
