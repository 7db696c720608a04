"""Deep learning from one neuron to AlphaZero: methods as small reusable parts, formulas verified numerically."""

__version__ = "0.2.0"
