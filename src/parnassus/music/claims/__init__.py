"""Claims about music as sequences, each with numerical evidence."""
