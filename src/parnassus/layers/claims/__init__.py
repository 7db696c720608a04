"""Claims about activations, dense layers, linear models and the first classifier, with numerical evidence."""
