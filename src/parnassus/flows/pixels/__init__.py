"""Autoregressive models of pixels: PixelRNN, PixelCNN and gated PixelCNN (book sec. 13.1)."""
