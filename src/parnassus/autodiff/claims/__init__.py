"""What is claimed about differentiation, and checked."""
