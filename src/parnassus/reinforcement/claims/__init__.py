"""Claims about reinforcement learning, each with its numerical evidence."""
