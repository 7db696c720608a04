"""Interactive views: PCA reconstructions, latent planes, traversals, rate against distortion."""
