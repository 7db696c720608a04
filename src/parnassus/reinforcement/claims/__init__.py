"""Claims about reinforcement learning, each with numerical evidence."""
