"""Readers of the user's own files: images, sounds, tables, idx arrays."""
