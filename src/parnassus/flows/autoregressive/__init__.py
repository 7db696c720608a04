"""Autoregressive flows (MAF, IAF) with their conditioners and synthesizers (book sec. 13.1)."""
