"""Things to touch: images rebuilt from components, walks over latent planes, and what a point says of its code."""
