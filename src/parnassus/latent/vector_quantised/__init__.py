"""VQ-VAE: codebooks, and priors over rasters of code indices."""
