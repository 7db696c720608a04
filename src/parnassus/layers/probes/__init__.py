"""Things to touch: a network that reads your drawing, one that learns before your eyes, and what they are made of."""
