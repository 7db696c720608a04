"""Things to touch: values that spread over a grid, a cat's day, a trained policy at play."""
