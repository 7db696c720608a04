"""Linear models: PCA, probabilistic PCA, linear autoencoders and linear VAEs."""
