"""Nadaraya-Watson kernel regression and mean shift (Zhao sec. 11, book eq. 10.6)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.arrays import accepts_arrays
from parnassus.attention.core.lookup import hardmax
from parnassus.attention.regression.kernels import Bandwidth, RadialKernel, distances, gaussian_kernel
from parnassus.errors import check_non_negative
from parnassus.losses.classification import one_hot


@dataclass(frozen=True, eq=False)
class NadarayaWatson:
    """f(q) = Σ_i v_i α(q, k_i) / Σ_j α(q, k_j): attention with a kernel α as the weight (book eq. 10.6, Zhao sec. 11).

    Keys are the inputs x_i, values the targets y_i; there are no parameters to train (Nadaraya 1964, Watson 1964). For
    bandwidth → 0 f tends to the nearest neighbour, which is also the prediction where all kernels vanish.
    """

    key: Float[Tensor, "count features"]
    value: Float[Tensor, "count out"]
    kernel: RadialKernel = gaussian_kernel
    bandwidth: Bandwidth = 1.0

    @classmethod
    @accepts_arrays
    def fit(
        cls,
        x: Float[Tensor, "count features"],
        y: Float[Tensor, "count out"],
        *,
        kernel: RadialKernel = gaussian_kernel,
        bandwidth: Bandwidth = 1.0,
    ) -> "NadarayaWatson":
        """Regression: stores the examples."""
        if len(x) == 0 or len(x) != len(y):
            raise ValueError(f"at least one example with a target each is needed; got {len(x)} and {len(y)}")
        return cls(x, y, kernel, bandwidth)

    @classmethod
    @accepts_arrays
    def fit_classes(
        cls,
        x: Float[Tensor, "count features"],
        labels: Int[Tensor, " count"],
        classes: int,
        *,
        kernel: RadialKernel = gaussian_kernel,
        bandwidth: Bandwidth = 1.0,
    ) -> "NadarayaWatson":
        """Classification: values are one-hot labels, predictions class probabilities (Zhao sec. 11)."""
        return cls.fit(x, one_hot(labels, classes).to(x), kernel=kernel, bandwidth=bandwidth)

    def with_bandwidth(self, bandwidth: Bandwidth) -> "NadarayaWatson":
        return replace(self, bandwidth=bandwidth)

    def weights(self, query: Float[Tensor, "queries features"]) -> Float[Tensor, "queries count"]:
        """α(q, k_i) / Σ_j α(q, k_j); rows sum to 1."""
        return normalised_weights(distances(query, self.key, self.bandwidth), self.kernel)

    @accepts_arrays
    def predict(self, query: Float[Tensor, "queries features"]) -> Float[Tensor, "queries out"]:
        return self.weights(query) @ self.value

    def leave_one_out(self) -> Float[Tensor, "count out"]:
        """The leave-one-out prediction of each example."""
        if len(self.key) < 2:
            raise ValueError("leave-one-out needs at least two examples; got 1")
        distance = distances(self.key, self.key, self.bandwidth)
        distance.fill_diagonal_(torch.inf)
        weights = normalised_weights(distance, lambda u: self.kernel(u).masked_fill(u.isinf(), 0.0))
        return weights @ self.value

    def leave_one_out_error(self) -> float:
        """The mean squared leave-one-out error, summed over outputs; a criterion for the bandwidth."""
        return float((self.leave_one_out() - self.value).square().sum(-1).mean())

    def best_bandwidth(self, candidates: Sequence[float]) -> float:
        """The candidate bandwidth with the smallest leave-one-out error."""
        if len(candidates) == 0:
            raise ValueError("at least one candidate bandwidth is needed; got none")
        return min(candidates, key=lambda bandwidth: self.with_bandwidth(bandwidth).leave_one_out_error())


def normalised_weights(distance: Float[Tensor, "queries keys"], kernel: RadialKernel) -> Float[Tensor, "queries keys"]:
    """K(u_i) / Σ_j K(u_j) from distances u; where all K(u_i) are 0, the nearest keys share the weight."""
    similarity = kernel(distance)
    total = similarity.sum(-1, keepdim=True)
    return torch.where(total > 0, similarity / total.where(total > 0, 1.0), hardmax(-distance))


def mean_shift(
    start: Float[Tensor, "queries features"],
    points: Float[Tensor, "count features"],
    *,
    steps: int,
    kernel: RadialKernel = gaussian_kernel,
    bandwidth: Bandwidth = 1.0,
) -> Float[Tensor, "path queries features"]:
    """The trajectory of q ← Σ_i k_i α(q, k_i) / Σ_j α(q, k_j) from `start` (book sec. 10.1.3).

    (book eq. 10.6) with the keys as values. The text calls this case kernel regression; it is mean shift, which moves
    points towards modes of the density.
    """
    check_non_negative(steps=steps)
    shift = NadarayaWatson.fit(points, points, kernel=kernel, bandwidth=bandwidth)
    path = [start]
    for _ in range(steps):
        path.append(shift.predict(path[-1]))
    return torch.stack(path)
