"""Hand-written backward passes and flat optimisers, equal to autograd and to torch's optimisers."""
