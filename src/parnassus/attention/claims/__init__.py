"""Claims about attention, positions and transformers, each with its row."""
