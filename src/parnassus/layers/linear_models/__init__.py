"""Linear models: least squares, ridge, robust and softmax regression, and support vector machines."""
