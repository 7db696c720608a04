"""Experiments on transfer learning; one file per command."""
