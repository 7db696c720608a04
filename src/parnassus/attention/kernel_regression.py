"""Kernel regression: the mean of what was seen, nearer examples counting more (Zhao sec. 11, book eq. 10.6)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.attention.kernels import Kernel, Width, distances, gaussian
from parnassus.attention.lookup import best_of
from parnassus.losses.classification import one_hot


@dataclass(frozen=True, eq=False)
class NadarayaWatson:
    """f(q) = Σ_i v_i α(q, k_i) / Σ_j α(q, k_j): attention with any kernel α (book eq. 10.6, Zhao sec. 11).

    Keys are the inputs x_i, values the targets y_i; there is nothing to train (Nadaraya 1964, Watson 1964). As the
    width goes to 0 f becomes the nearest neighbour, and so it is here wherever all kernels are 0 and the quotient 0/0.
    """

    key: Float[Tensor, "count features"]
    value: Float[Tensor, "count out"]
    kernel: Kernel = gaussian
    width: Width = 1.0

    @classmethod
    def fit(
        cls,
        x: Float[Tensor, "count features"],
        y: Float[Tensor, "count out"],
        *,
        kernel: Kernel = gaussian,
        width: Width = 1.0,
    ) -> "NadarayaWatson":
        """Regression: keep the examples."""
        if len(x) == 0 or len(x) != len(y):
            raise ValueError(f"need at least one example, and a target for each; got {len(x)} and {len(y)}")
        return cls(x, y, kernel, width)

    @classmethod
    def fit_classes(
        cls,
        x: Float[Tensor, "count features"],
        labels: Int[Tensor, " count"],
        classes: int,
        *,
        kernel: Kernel = gaussian,
        width: Width = 1.0,
    ) -> "NadarayaWatson":
        """Classification: the values are one-hot labels, the predictions class probabilities (Zhao sec. 11)."""
        return cls.fit(x, one_hot(labels, classes).to(x), kernel=kernel, width=width)

    def with_width(self, width: Width) -> "NadarayaWatson":
        return replace(self, width=width)

    def weights(self, query: Float[Tensor, "queries features"]) -> Float[Tensor, "queries count"]:
        """α(q, k_i) / Σ_j α(q, k_j); rows sum to 1."""
        return kernel_weights(distances(query, self.key, self.width), self.kernel)

    def predict(self, query: Float[Tensor, "queries features"]) -> Float[Tensor, "queries out"]:
        return self.weights(query) @ self.value

    def left_out(self) -> Float[Tensor, "count out"]:
        """Each example predicted from all others."""
        if len(self.key) < 2:
            raise ValueError("to leave one out, two examples are needed; got 1")
        apart = distances(self.key, self.key, self.width)
        apart.fill_diagonal_(torch.inf)
        weights = kernel_weights(apart, lambda u: self.kernel(u).masked_fill(u.isinf(), 0.0))
        return weights @ self.value

    def left_out_error(self) -> float:
        """Squared error of the examples predicted from all others, summed over outputs: what a width is chosen by."""
        return float((self.left_out() - self.value).square().sum(-1).mean())

    def best_width(self, candidates: Sequence[float]) -> float:
        """The width of these with the least error on examples left out."""
        if len(candidates) == 0:
            raise ValueError("need at least one width to choose from")
        return min(candidates, key=lambda width: self.with_width(width).left_out_error())


def kernel_weights(apart: Float[Tensor, "queries keys"], kernel: Kernel) -> Float[Tensor, "queries keys"]:
    """K(u_i) / Σ_j K(u_j) from distances u; where all K(u_i) are 0 the nearest keys share the weight."""
    similar = kernel(apart)
    total = similar.sum(-1, keepdim=True)
    return torch.where(total > 0, similar / total.where(total > 0, 1.0), best_of(-apart))


def mean_shift(
    start: Float[Tensor, "queries features"],
    points: Float[Tensor, "count features"],
    *,
    steps: int,
    kernel: Kernel = gaussian,
    width: Width = 1.0,
) -> Float[Tensor, "path queries features"]:
    """Points that move by q ← Σ_i k_i α(q, k_i) / Σ_j α(q, k_j), the start included (book sec. 10.1.3).

    (book eq. 10.6) with the keys as values. The text calls this case kernel regression; it is mean shift, which climbs
    to where the points are dense.
    """
    if steps < 0:
        raise ValueError(f"steps must not be negative; got steps={steps}")
    shift = NadarayaWatson.fit(points, points, kernel=kernel, width=width)
    path = [start]
    for _ in range(steps):
        path.append(shift.predict(path[-1]))
    return torch.stack(path)
