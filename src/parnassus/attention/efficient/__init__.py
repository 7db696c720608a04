"""Attention below quadratic cost: linear, random-feature, low-rank and sparse variants, and operation counts."""
