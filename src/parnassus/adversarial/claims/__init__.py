"""Claims about generative adversarial networks, each with numerical evidence."""
