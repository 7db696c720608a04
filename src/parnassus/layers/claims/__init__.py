"""What is claimed of activations, dense layers, linear models and the first classifier, each claim with its number."""
