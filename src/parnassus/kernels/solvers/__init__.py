"""Linear solvers for large kernel matrices: Cholesky, conjugate gradients, evaluation in blocks."""
