"""Claims about music as sequences."""
