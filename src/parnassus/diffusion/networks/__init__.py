"""Networks for noise, scores and noisy classifiers, and the layers that condition them."""
