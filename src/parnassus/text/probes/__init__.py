"""Interactive views of decoding."""
