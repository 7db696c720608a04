"""Claims about diffusion models, each with numerical evidence."""
