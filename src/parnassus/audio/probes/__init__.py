"""Interactive views of sound."""
