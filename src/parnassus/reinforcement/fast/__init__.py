"""Hand-written backward passes and flat optimisers, equal to autograd's and torch's."""
