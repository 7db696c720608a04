"""Value functions v_x(S): the expected output when only the features in S are known (book secs. 17.0, 17.3)."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor


@runtime_checkable
class ValueFunction(Protocol):
    """v_x(S) for many inputs x and many coalitions S of features, or of groups of features.

    Worths are float64 for any dtype of the model: attributions are differences of sums and must sum to the prediction.
    """

    @property
    def players(self) -> int: ...

    def __call__(
        self, x: Float[Tensor, "rows features"], coalitions: Bool[Tensor, "count players"]
    ) -> Float[Tensor, "rows outputs count"]: ...


@runtime_checkable
class BackgroundAverage(ValueFunction, Protocol):
    """A value function that is a mean over background rows, each of which can have its own coalitions.

    Independent errors of the rows average out; errors due to coalitions shared by all rows do not.
    """

    @property
    def background_size(self) -> int: ...

    def subset(self, which: slice) -> "BackgroundAverage":
        """The mean over some of the background rows."""
        ...

    def per_background_row(
        self, x: Float[Tensor, "rows features"], coalitions: Bool[Tensor, "others count players"]
    ) -> Float[Tensor, "others rows outputs count"]: ...


@dataclass(frozen=True)
class SingleGame:
    """Any value function as a background average of one element."""

    value: ValueFunction

    @property
    def players(self) -> int:
        return self.value.players

    @property
    def background_size(self) -> int:
        return 1

    def subset(self, which: slice) -> BackgroundAverage:  # noqa: ARG002 - there is one element
        return self

    def __call__(
        self, x: Float[Tensor, "rows features"], coalitions: Bool[Tensor, "count players"]
    ) -> Float[Tensor, "rows outputs count"]:
        return self.value(x, coalitions)

    def per_background_row(
        self, x: Float[Tensor, "rows features"], coalitions: Bool[Tensor, "1 count players"]
    ) -> Float[Tensor, "1 rows outputs count"]:
        return self.value(x, coalitions[0])[None]


def as_background_average(value: ValueFunction) -> BackgroundAverage:
    """The value function itself if it is a mean over background rows, else as a mean of one."""
    return value if isinstance(value, BackgroundAverage) else SingleGame(value)


def average_in_blocks(
    value: BackgroundAverage,
    x: Float[Tensor, "rows features"],
    coalitions: Bool[Tensor, "count players"],
    block_size: int,
) -> Float[Tensor, "rows outputs count"]:
    """The mean over a background from means over at most `block_size` rows at a time."""
    blocks = [value.subset(slice(start, start + block_size)) for start in range(0, value.background_size, block_size)]
    worths = sum(block.background_size * block(x, coalitions) for block in blocks)
    return torch.as_tensor(worths) / value.background_size


def check_groups(groups: Bool[Tensor, "players features"], features: int) -> None:
    """Raise a ValueError unless every feature is in exactly one group."""
    if groups.shape[1] != features or not bool((groups.sum(0) == 1).all()):
        raise ValueError(
            f"each of the {features} features must be in one group of {len(groups)}; "
            f"they are in {groups.sum(0).tolist()}"
        )


def expand_groups(
    coalitions: Bool[Tensor, "count players"], groups: Bool[Tensor, "players features"] | None
) -> Bool[Tensor, "count features"]:
    """Coalitions of groups as coalitions of features."""
    return coalitions if groups is None else coalitions[:, groups.long().argmax(0).to(coalitions.device)]
