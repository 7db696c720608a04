"""Claims about loss functions: values, gradients and minimisers."""
