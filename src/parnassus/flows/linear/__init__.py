"""Linear flows and normalisation layers: invertible matrices, 1×1 convolutions, ActNorm, batch normalisation."""
