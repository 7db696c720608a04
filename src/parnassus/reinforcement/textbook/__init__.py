"""Worked examples of the book."""
