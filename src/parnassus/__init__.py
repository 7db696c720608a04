"""Deep learning from one neuron to AlphaZero: every method a small part, every formula checked by a number."""

__version__ = "0.2.0"
