"""Flows of images: squeezing, multiscale architectures, Real NVP and Glow, dequantisation (book sec. 13.1)."""
