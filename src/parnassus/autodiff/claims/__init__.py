"""Claims about automatic differentiation and backpropagation."""
