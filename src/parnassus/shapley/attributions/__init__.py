"""Attributions of a model's predictions: value functions, models, inputs, explanations."""
