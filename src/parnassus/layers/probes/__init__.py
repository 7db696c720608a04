"""Interactive views of a digit classifier, of the training of a small network and of activation functions."""
