"""Shapley values in closed form: linear models and trees."""
