"""Kernel regression with a kernel that is learned: what a head of attention does to a data base (book sec. 10.1.3)."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.attention.lookup import soft_lookup


class LearnedKernel(nn.Module):
    """f(q) = Σ_i softmax(a(q, x_•))_i W_v y_i with a learned score a (book sec. 10.1.3).

    α(q, k) = exp(qᵀ W_qᵀ W_k k) is the score `BilinearScore`, with M = W_qᵀ W_k; `MetricScore` learns the widths of a
    Gaussian kernel. `value` is W_v, which leaves the targets as they are unless told. The data base is no part of the
    model: another one, of any size, can be asked with the same weights.
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
        """What the examples (x, y) say about the queries."""
        return soft_lookup(query, x, self.value(y), score=self.score).output

    def weights(
        self, query: Float[Tensor, "queries features"], x: Float[Tensor, "count features"]
    ) -> Float[Tensor, "queries count"]:
        scores: Tensor = self.score(query, x)
        return scores.softmax(-1)

    def loss(self, x: Float[Tensor, "count features"], y: Float[Tensor, "count out"]) -> Float[Tensor, ""]:
        """Squared error of each example as predicted from all others; with itself among them it would be 0."""
        if len(x) < 2:
            raise ValueError(f"to leave one out, two examples are needed; got {len(x)}")
        others = ~torch.eye(len(x), dtype=torch.bool, device=x.device)
        left_out = soft_lookup(x, x, self.value(y), others, score=self.score).output
        return (left_out - y).square().sum(-1).mean()
