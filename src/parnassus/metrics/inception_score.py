"""Inception score of samples under any classifier (Salimans et al. 2016)."""

import torch
from jaxtyping import Float
from torch import Tensor


def inception_score(log_probs: Float[Tensor, "count classes"]) -> float:
    """The score exp E KL(p(y | x) ‖ p(y)), from 1 up to the number of classes (Salimans et al. 2016).

    It is high if the classifier is certain of each sample and the samples cover all classes equally.
    """
    p = log_probs.double().exp()
    if len(p) == 0 or not torch.allclose(p.sum(1), p.new_ones(len(p)), atol=1e-4):
        raise ValueError("log_probs must have at least one row, and the probabilities of each row must sum to one")
    gain = (p * (log_probs.double() - p.mean(0).log())).nan_to_num(0.0).sum(1)
    return float(gain.mean().exp())
