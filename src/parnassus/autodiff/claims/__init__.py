"""Claims about automatic differentiation and backpropagation, each with numerical evidence."""
