"""Kernel regression with a learned kernel: an attention head over a set of examples (book sec. 10.1.3)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.arrays import accepts_arrays
from parnassus.attention.core.lookup import soft_lookup


class LearnedKernel(nn.Module):
    """f(q) = Σ_i softmax(a(q, x_•))_i W_v y_i with a learned score a (book sec. 10.1.3).

    α(q, k) = exp(qᵀ W_qᵀ W_k k) is the score `BilinearScore`, with M = W_qᵀ W_k; `MahalanobisScore` learns the
    metric of a Gaussian kernel. `value` is W_v, the identity by default. The examples are not part of the model: the
    same weights apply to any other set, of any size.

    >>> kernel = LearnedKernel(MahalanobisScore(1))
    >>> kernel(torch.zeros(2, 1), torch.zeros(5, 1), torch.ones(5, 1)).shape
    torch.Size([2, 1])
    """

    def __init__(self, score: nn.Module, value: nn.Module | None = None) -> None:
        super().__init__()
        self.score = score
        self.value = nn.Identity() if value is None else value

    def forward(
        self,
        query: Float[Tensor, "queries features"],
        x: Float[Tensor, "count features"],
        y: Float[Tensor, "count out"],
    ) -> Float[Tensor, "queries out"]:
        """Predictions at the queries from the examples (x, y)."""
        return soft_lookup(query, x, self.value(y), score=self.score).output

    def weights(
        self, query: Float[Tensor, "queries features"], x: Float[Tensor, "count features"]
    ) -> Float[Tensor, "queries count"]:
        scores: Tensor = self.score(query, x)
        return scores.softmax(-1)

    @accepts_arrays
    def loss(self, x: Float[Tensor, "count features"], y: Float[Tensor, "count out"]) -> Float[Tensor, ""]:
        """The mean squared leave-one-out error; without leaving out, memorisation would give 0."""
        if len(x) < 2:
            raise ValueError(f"leave-one-out needs at least two examples; got {len(x)}")
        others = ~torch.eye(len(x), dtype=torch.bool, device=x.device)
        prediction = soft_lookup(x, x, self.value(y), others, score=self.score).output
        return (prediction - y).square().sum(-1).mean()
