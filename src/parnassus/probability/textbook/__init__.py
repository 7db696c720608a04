"""Worked examples of the sources."""
