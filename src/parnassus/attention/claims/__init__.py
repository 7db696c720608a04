"""Claims about attention, positions and transformers, each with numerical evidence."""
