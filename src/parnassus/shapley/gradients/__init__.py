"""Attributions by gradients: integrated and expected gradients, DeepLIFT."""
