"""Batch normalisation, layer normalisation and standardisation of data (book sec. 2.2, Diehl sec. 1.6, Zhao sec. 8).

All normalise to mean 0 and variance 1, over different axes.
"""

from dataclasses import dataclass
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from parnassus.arrays import accepts_arrays
from parnassus.errors import check_non_negative
from parnassus.layers.activations import Activation, relu
from parnassus.layers.dense import Dense


class Moments(NamedTuple):
    mean: Float[Tensor, "..."]
    variance: Float[Tensor, "..."]


def moments(x: Float[Tensor, "..."], axes: tuple[int, ...]) -> Moments:
    """Mean and variance over the given axes, which are kept with length 1 (Diehl sec. 1.6).

        mean = 1/n Σ x_i
        var  = 1/n Σ (x_i − mean)²

    Biased: the sum of squares is divided by n, not by n − 1.
    """
    return Moments(x.mean(axes, keepdim=True), x.var(axes, correction=0, keepdim=True))


def normalise(x: Float[Tensor, "*shape"], statistics: Moments, *, epsilon: float = 1e-5) -> Float[Tensor, "*shape"]:
    """(x − μ) / √(σ² + ε) with given μ and σ² (book eq. 2.7).

    ε is inside the root, so that the gradient is finite at σ² = 0; (Diehl sec. 1.6) prints √σ² + ε.
    """
    check_non_negative(epsilon=epsilon)
    return (x - statistics.mean) / (statistics.variance + epsilon).sqrt()


def standardise(x: Float[Tensor, "*shape"], axes: tuple[int, ...], *, epsilon: float = 1e-5) -> Float[Tensor, "*shape"]:
    """(x − mean(x)) / √(var(x) + ε) with moments over `axes`.

    For rows of features, (0,) is batch normalisation (book eq. 2.7) and (−1,) layer normalisation (Zhao sec. 8). For
    images, (0, 2, 3) has one mean per channel. For batch × position × channel, (0,) in (Diehl sec. 1.6) has one mean
    per position and channel, and (0, 1) in Keras and torch one per channel.
    """
    return normalise(x, moments(x, axes), epsilon=epsilon)


class BatchNorm(nn.Module):
    """γ x̂ + β with x̂ standardised by batch statistics, in evaluation by running averages (book eqs. 2.7-2.8).

        training:    x̂ = (x − μ_B) / √(σ_B² + ε)
        evaluation:  x̂ = (x − μ_run) / √(σ_run² + ε)
        after each batch of m values:  μ_run ← (1 − momentum) μ_run + momentum μ_B
                                        σ_run² ← (1 − momentum) σ_run² + momentum σ_B² m/(m − 1)

    `shape` is the shape of γ and β without the batch axis; statistics are pooled over the batch and over axes of length
    1: `BatchNorm(512)` for rows of features, `BatchNorm(64, 1, 1)` for images of 64 channels, `BatchNorm(n, c)` for one
    mean per position and channel (Diehl sec. 1.6).

    The defaults are torch's. Keras's momentum is 1 − momentum here; its defaults are 0.99 and ε = 10⁻³.
    """

    scale: nn.Parameter
    shift: nn.Parameter
    running_mean: Tensor
    running_variance: Tensor

    def __init__(self, *shape: int, epsilon: float = 1e-5, momentum: float = 0.1) -> None:
        super().__init__()
        _check_shape(shape)
        if not 0 < momentum <= 1:
            raise ValueError(f"momentum must satisfy 0 < momentum ≤ 1; got momentum={momentum}")
        self.axes = (0, *(axis for axis, size in enumerate(shape, 1) if size == 1))
        self.epsilon, self.momentum = epsilon, momentum
        self.scale, self.shift = nn.Parameter(torch.ones(shape)), nn.Parameter(torch.zeros(shape))
        self.register_buffer("running_mean", torch.zeros(shape))
        self.register_buffer("running_variance", torch.ones(shape))

    def forward(self, x: Float[Tensor, "batch *example"]) -> Float[Tensor, "batch *example"]:
        if x.ndim != 1 + self.scale.ndim or any(
            s not in (1, got) for s, got in zip(self.scale.shape, x.shape[1:], strict=True)
        ):
            raise _shape_error(self.scale, x)
        statistics = self._batch_statistics(x) if self.training else Moments(self.running_mean, self.running_variance)
        return self.scale * normalise(x, statistics, epsilon=self.epsilon) + self.shift

    def _batch_statistics(self, x: Tensor) -> Moments:
        batch = moments(x, self.axes)
        pooled = x.numel() // batch.mean.numel()
        if pooled < 2:
            raise ValueError(
                f"batch normalisation needs at least two values per feature in training; got x of shape {(*x.shape,)}"
            )
        with torch.no_grad():
            self.running_mean.lerp_(batch.mean[0], self.momentum)
            self.running_variance.lerp_(batch.variance[0] * pooled / (pooled - 1), self.momentum)
        return batch

    def extra_repr(self) -> str:
        return f"{(*self.scale.shape,)}, over axes {self.axes}"


class LayerNorm(nn.Module):
    """γ x̂ + β with each example standardised over its own last axes (Diehl sec. 1.6, Zhao sec. 8).

        LN(T)_{b,n,c} = γ_c (T_{b,n,c} − mean(T_{b,n,•})) / √(var(T_{b,n,•}) + ε) + β_c

    This is `LayerNorm(c)`; `LayerNorm(n, c)` also pools the positions. Training and evaluation modes are the same.
    """

    def __init__(self, *shape: int, epsilon: float = 1e-5) -> None:
        super().__init__()
        _check_shape(shape)
        self.axes = tuple(range(-len(shape), 0))
        self.epsilon = epsilon
        self.scale, self.shift = nn.Parameter(torch.ones(shape)), nn.Parameter(torch.zeros(shape))

    def forward(self, x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
        if x.shape[-self.scale.ndim :] != self.scale.shape:
            raise _shape_error(self.scale, x)
        return self.scale * standardise(x, self.axes, epsilon=self.epsilon) + self.shift

    def extra_repr(self) -> str:
        return f"{(*self.scale.shape,)}"


def norm_after_activation(inputs: int, outputs: int, *, activation: Activation = relu) -> nn.Sequential:
    """BN(φ(x W + b)): the order in the book's listing (book sec. 2.2)."""
    return nn.Sequential(Dense(inputs, outputs, activation=activation), BatchNorm(outputs))


def norm_before_activation(inputs: int, outputs: int, *, activation: Activation = relu) -> Dense:
    """φ(BN(x W + b)), where b has no effect: the order in the original paper (Zhao sec. 8)."""
    return Dense(inputs, outputs, activation=_NormThenActivation(BatchNorm(outputs), activation))


class _NormThenActivation(nn.Module):
    def __init__(self, norm: nn.Module, activation: Activation) -> None:
        super().__init__()
        self.norm, self.activation = norm, activation

    def forward(self, x: Float[Tensor, "batch width"]) -> Float[Tensor, "batch width"]:
        return self.activation(self.norm(x))


@dataclass(frozen=True)
class Standardiser:
    """x′ = (x − mean) / std of each feature, with moments of the fitted data (Diehl sec. 1.6).

    Fit it to the training data only, to avoid test leakage. A constant feature becomes 0.
    """

    mean: Float[Tensor, "*example"]
    std: Float[Tensor, "*example"]

    @classmethod
    @accepts_arrays
    def fit(cls, x: Float[Tensor, "count *example"]) -> "Standardiser":
        if len(x) == 0:
            raise ValueError("fit needs at least one example; got none")
        std = x.std(0, correction=0)
        return cls(x.mean(0), torch.where(std > 0, std, 1.0))

    @accepts_arrays
    def transform(self, x: Float[Tensor, "count *example"]) -> Float[Tensor, "count *example"]:
        return (x - self.mean) / self.std


def _shape_error(scale: Tensor, x: Tensor) -> ValueError:
    return ValueError(f"x must have examples of shape {(*scale.shape,)}; got x of shape {(*x.shape,)}")


def _check_shape(shape: tuple[int, ...]) -> None:
    if not shape or min(shape) < 1:
        raise ValueError(f"shape must have at least one axis, with sizes of at least 1; got shape={shape}")
