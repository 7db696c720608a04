"""What a prediction is worth when only some features are known: the game that explains it (book secs. 17.0, 17.3)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parnassus.probability.conditioning import condition
from parnassus.probability.gaussian import Gaussian, eigen_root
from parnassus.shapley.model import Model

TOGETHER = 2**16
"""Inputs that a model is asked about at once."""


@runtime_checkable
class ValueFunction(Protocol):
    """v_x(S) for many inputs x and many coalitions S of features, or of groups of them.

    Worths are float64 whatever the model's numbers are: parts are differences of sums, and must sum to the prediction.
    """

    @property
    def players(self) -> int: ...

    def __call__(
        self, x: Float[Tensor, "rows features"], coalitions: Bool[Tensor, "count players"]
    ) -> Float[Tensor, "rows outputs count"]: ...


@dataclass(frozen=True)
class Interventional:
    """v(S) = E_b f(x_S, b_∖S): what is not known comes from the background, whatever is known (book sec. 17.3).

    `groups` says which features (columns) come and go together; each alone unless told.
    """

    model: Model
    background: Float[Tensor, "others features"]
    groups: Bool[Tensor, "players features"] | None = None

    def __post_init__(self) -> None:
        if self.background.ndim != 2 or not len(self.background):
            raise ValueError(f"the background must be rows of features; got shape {tuple(self.background.shape)}")
        if self.groups is not None:
            checked_groups(self.groups, self.background.shape[1])

    @property
    def players(self) -> int:
        return self.background.shape[1] if self.groups is None else len(self.groups)

    def __call__(
        self, x: Float[Tensor, "rows features"], coalitions: Bool[Tensor, "count players"]
    ) -> Float[Tensor, "rows outputs count"]:
        known = with_groups(coalitions, self.groups).to(x.device)
        if x.shape[1] != known.shape[1]:
            raise ValueError(f"rows have {x.shape[1]} features, the background has {known.shape[1]}")
        others, rows = len(self.background), len(x)
        parts = []
        for row, part in _portions(rows, len(known), max(1, TOGETHER // others)):
            mixed = torch.where(known[part][:, None], x[row], self.background)
            parts.append(self.model(mixed.flatten(0, 1)).double().unflatten(0, (-1, others)).mean(1))
        worths: Tensor = torch.cat(parts).unflatten(0, (rows, -1)).mT
        return worths


def mean_imputed(
    model: Model, background: Float[Tensor, "others features"], groups: Bool[Tensor, "players features"] | None = None
) -> Interventional:
    """v(S) = f(x_S, E b_∖S): what is not known is at its mean; the same as interventional where f is linear."""
    return Interventional(model, background.mean(0, keepdim=True), groups)


@dataclass(frozen=True)
class ConditionalGaussian:
    """v(S) = E[f(z) | z_S = x_S] with z Gaussian: what is not known is guessed from what is (book sec. 17.3).

    Mean and covariance are the background's; the expectation is a mean over `draws`, mirrored, so that it is exact for
    linear models. What a row has must be possible: a singular background knows of no other rows.
    """

    model: Model
    background: Float[Tensor, "others features"]
    draws: int = 256

    def __post_init__(self) -> None:
        if len(self.background) < 2 or self.draws < 2 or self.draws % 2:
            raise ValueError(
                f"a covariance needs two rows, mirrored draws an even number; got {len(self.background)} rows, "
                f"draws={self.draws}"
            )

    @property
    def players(self) -> int:
        return self.background.shape[1]

    def __call__(
        self, x: Float[Tensor, "rows features"], coalitions: Bool[Tensor, "count features"]
    ) -> Float[Tensor, "rows outputs count"]:
        joint = Gaussian(self.background.mean(0), torch.cov(self.background.mT).reshape(self.players, self.players))
        worths = []
        for known in coalitions.to(x.device):
            guess = x.expand(self.draws, *x.shape).clone()
            seen = known.nonzero()[:, 0].tolist()
            if len(seen) < self.players:
                rest = condition(joint, x[:, known], observed=seen) if seen else joint
                root = eigen_root(rest.covariance)
                noise = torch.randn(self.draws // 2, 1, len(root), generator=torch.Generator().manual_seed(0)).to(x)
                guess[..., ~known] = rest.mean + torch.cat([noise, -noise]) @ root.mT
            worths.append(self.model(guess.flatten(0, 1)).double().unflatten(0, (self.draws, -1)).mean(0))
        return torch.stack(worths, -1)


def checked_groups(groups: Bool[Tensor, "players features"], features: int) -> None:
    """Every feature must be in exactly one group."""
    if groups.shape[1] != features or not bool((groups.sum(0) == 1).all()):
        raise ValueError(
            f"each of the {features} features must be in one group of {len(groups)}; "
            f"they are in {groups.sum(0).tolist()}"
        )


def with_groups(
    coalitions: Bool[Tensor, "count players"], groups: Bool[Tensor, "players features"] | None
) -> Bool[Tensor, "count features"]:
    """Which features are known when these groups are."""
    return coalitions if groups is None else (coalitions.long() @ groups.long().to(coalitions.device)) > 0


def _portions(rows: int, count: int, most: int) -> Iterator[tuple[int, slice]]:
    """For each row, slices of the coalitions."""
    for row in range(rows):
        for start in range(0, count, most):
            yield row, slice(start, start + most)
