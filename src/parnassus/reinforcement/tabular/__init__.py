"""Finite Markov processes as tables: planning, prediction, control and exact policy gradients."""
