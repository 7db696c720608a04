"""The interventional value function: unknown features come from background rows (book sec. 17.3)."""

from dataclasses import dataclass, replace

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parnassus.shapley.attributions.batching import batch_slices, max_batch_size
from parnassus.shapley.attributions.model_adapters import Model
from parnassus.shapley.attributions.value_functions import (
    BackgroundAverage,
    average_in_blocks,
    check_groups,
    expand_groups,
)


@dataclass(frozen=True)
class InterventionalValue:
    """v(S) = E_b f(x_S, b_∖S): unknown features are drawn from the background, independently of x (book sec. 17.3).

    `groups` are the features (columns) that form each player; by default every feature is a player. Inputs are mixed
    and worths computed on the device of the background. `as_model` wraps any predictor as a `Model`;
    `interventional_value_function` does this and chooses the fastest implementation.

    >>> value = InterventionalValue(lambda x: x.sum(1, keepdim=True), torch.zeros(10, 3))
    >>> value(torch.ones(1, 3), torch.tensor([[True, True, False]])).flatten().tolist()
    [2.0]
    """

    model: Model
    background: Float[Tensor, "others features"]
    groups: Bool[Tensor, "players features"] | None = None

    def __post_init__(self) -> None:
        if self.background.ndim != 2 or not len(self.background):
            raise ValueError(f"background must be rows of features; got shape {tuple(self.background.shape)}")
        if self.groups is not None:
            check_groups(self.groups, self.background.shape[1])

    @property
    def players(self) -> int:
        return self.background.shape[1] if self.groups is None else len(self.groups)

    @property
    def background_size(self) -> int:
        return len(self.background)

    def subset(self, which: slice) -> BackgroundAverage:
        return replace(self, background=self.background[which])

    def __call__(
        self, x: Float[Tensor, "rows features"], coalitions: Bool[Tensor, "count players"]
    ) -> Float[Tensor, "rows outputs count"]:
        rows = self._match_background(x)
        batch_size = max_batch_size(self.model, self.background, len(rows) * len(coalitions) * self.background_size)
        if self.background_size > batch_size:
            return average_in_blocks(self, rows, coalitions, batch_size)
        parts = []
        for row, part in batch_slices(len(rows), len(coalitions), batch_size // self.background_size):
            known = self._known_features(coalitions[part])
            mixed = torch.where(known[:, None], rows[row, None, None], self.background)
            outputs = self.model(mixed.flatten(0, 2)).double()
            parts.append(outputs.unflatten(0, (-1, self.background_size)).mean(1))
        worths: Tensor = torch.cat(parts).unflatten(0, (len(rows), -1))
        return worths.mT

    def per_background_row(
        self, x: Float[Tensor, "rows features"], coalitions: Bool[Tensor, "others count players"]
    ) -> Float[Tensor, "others rows outputs count"]:
        flat, rows = coalitions.flatten(0, 1), self._match_background(x)
        owner = torch.arange(self.background_size, device=rows.device).repeat_interleave(coalitions.shape[1])
        batch_size = max_batch_size(self.model, self.background, len(rows) * len(flat))
        parts = []
        for row, part in batch_slices(len(rows), len(flat), batch_size):
            mixed = torch.where(self._known_features(flat[part]), rows[row, None], self.background[owner[part]])
            parts.append(self.model(mixed.flatten(0, 1)).double())
        worths: Tensor = torch.cat(parts).view(len(rows), self.background_size, coalitions.shape[1], -1)
        return worths.permute(1, 0, 3, 2)

    def _known_features(self, coalitions: Bool[Tensor, "count players"]) -> Bool[Tensor, "count features"]:
        """Which features are known, on the device of the background."""
        return expand_groups(coalitions, self.groups).to(self.background.device)

    def _match_background(self, x: Float[Tensor, "rows features"]) -> Float[Tensor, "rows features"]:
        """The rows with the device and dtype of the background."""
        if x.shape[1] != self.background.shape[1]:
            raise ValueError(
                f"rows and background must have the same features; got {x.shape[1]} and {self.background.shape[1]}"
            )
        return x.to(self.background)


def mean_imputation(
    model: Model, background: Float[Tensor, "others features"], groups: Bool[Tensor, "players features"] | None = None
) -> InterventionalValue:
    """v(S) = f(x_S, E b_∖S): unknown features have their means; equals `InterventionalValue` for linear f."""
    return InterventionalValue(model, background.mean(0, keepdim=True), groups)
