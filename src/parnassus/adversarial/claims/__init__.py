"""Claims about generative adversarial networks."""
