"""Claims about loss functions: values, gradients and minimisers, each with numerical evidence."""
