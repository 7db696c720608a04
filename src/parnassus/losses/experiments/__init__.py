"""Runs of this room: one file an experiment."""
