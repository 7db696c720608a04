"""Claims about activations, dense layers, linear models and the first classifier, each with numerical evidence."""
