"""Experiments of this room; each file is a command."""
