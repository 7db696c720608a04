"""What a prediction is worth when only some features are known: the game that explains it (book secs. 17.0, 17.3)."""

from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from parnassus.probability.conditioning import condition
from parnassus.probability.gaussian import Gaussian, eigen_root
from parnassus.shapley.model import Model
from parnassus.shapley.portions import at_once, in_parts, portions


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


@runtime_checkable
class MeanOfGames(ValueFunction, Protocol):
    """A worth that is a mean of worths, one for each row of a background: each may be asked about other coalitions.

    Errors that have nothing to do with each other cancel in the mean; those of coalitions asked of all rows do not.
    """

    @property
    def others(self) -> int: ...

    def of(self, which: slice) -> "MeanOfGames":
        """The mean over some rows of the background."""
        ...

    def each(
        self, x: Float[Tensor, "rows features"], coalitions: Bool[Tensor, "others count players"]
    ) -> Float[Tensor, "others rows outputs count"]: ...


@dataclass(frozen=True)
class OneGame:
    """A worth that is no mean over a background, as a mean of one."""

    value: ValueFunction

    @property
    def players(self) -> int:
        return self.value.players

    @property
    def others(self) -> int:
        return 1

    def of(self, which: slice) -> MeanOfGames:  # noqa: ARG002 - there is but one
        return self

    def __call__(
        self, x: Float[Tensor, "rows features"], coalitions: Bool[Tensor, "count players"]
    ) -> Float[Tensor, "rows outputs count"]:
        return self.value(x, coalitions)

    def each(
        self, x: Float[Tensor, "rows features"], coalitions: Bool[Tensor, "1 count players"]
    ) -> Float[Tensor, "1 rows outputs count"]:
        return self.value(x, coalitions[0])[None]


def as_mean(value: ValueFunction) -> MeanOfGames:
    """A worth as a mean over background rows, of which there may be only one."""
    return value if isinstance(value, MeanOfGames) else OneGame(value)


def in_blocks(
    value: MeanOfGames, x: Float[Tensor, "rows features"], coalitions: Bool[Tensor, "count players"], most: int
) -> Float[Tensor, "rows outputs count"]:
    """The mean over a background from its means over `most` rows at a time."""
    blocks = [value.of(slice(start, start + most)) for start in range(0, value.others, most)]
    worths = sum(block.others * block(x, coalitions) for block in blocks)
    return torch.as_tensor(worths) / value.others


@dataclass(frozen=True)
class Interventional:
    """v(S) = E_b f(x_S, b_∖S): what is not known comes from the background, whatever is known (book sec. 17.3).

    `groups` says which features (columns) come and go together; each alone unless told. Inputs are mixed, and worths
    found, where the background is. `as_model` makes a model of anything that predicts, `interventional` all of this.
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

    @property
    def others(self) -> int:
        return len(self.background)

    def of(self, which: slice) -> "MeanOfGames":
        return replace(self, background=self.background[which])

    def __call__(
        self, x: Float[Tensor, "rows features"], coalitions: Bool[Tensor, "count players"]
    ) -> Float[Tensor, "rows outputs count"]:
        rows = self.checked(x)
        most = at_once(self.model, self.background, len(rows) * len(coalitions) * self.others)
        if self.others > most:
            return in_blocks(self, rows, coalitions, most)
        parts = []
        for row, part in portions(len(rows), len(coalitions), most // self.others):
            mixed = torch.where(self.known(coalitions[part])[:, None], rows[row, None, None], self.background)
            answers = self.model(mixed.flatten(0, 2)).double()
            parts.append(answers.unflatten(0, (-1, self.others)).mean(1))
        worths: Tensor = torch.cat(parts).unflatten(0, (len(rows), -1))
        return worths.mT

    def each(
        self, x: Float[Tensor, "rows features"], coalitions: Bool[Tensor, "others count players"]
    ) -> Float[Tensor, "others rows outputs count"]:
        asked, rows = coalitions.flatten(0, 1), self.checked(x)
        behind = torch.arange(self.others, device=rows.device).repeat_interleave(coalitions.shape[1])
        parts = []
        for row, part in portions(len(rows), len(asked), at_once(self.model, self.background, len(rows) * len(asked))):
            mixed = torch.where(self.known(asked[part]), rows[row, None], self.background[behind[part]])
            parts.append(self.model(mixed.flatten(0, 1)).double())
        worths: Tensor = torch.cat(parts).view(len(rows), self.others, coalitions.shape[1], -1)
        return worths.permute(1, 0, 3, 2)

    def known(self, coalitions: Bool[Tensor, "count players"]) -> Bool[Tensor, "count features"]:
        """Which features are, where the background is."""
        return with_groups(coalitions, self.groups).to(self.background.device)

    def checked(self, x: Float[Tensor, "rows features"]) -> Float[Tensor, "rows features"]:
        """The rows, where the background is and of its kind."""
        if x.shape[1] != self.background.shape[1]:
            raise ValueError(f"rows have {x.shape[1]} features, the background has {self.background.shape[1]}")
        return x.to(self.background)


def mean_imputed(
    model: Model, background: Float[Tensor, "others features"], groups: Bool[Tensor, "players features"] | None = None
) -> Interventional:
    """v(S) = f(x_S, E b_∖S): what is not known is at its mean; the same as interventional where f is linear."""
    return Interventional(model, background.mean(0, keepdim=True), groups)


@dataclass(frozen=True)
class ConditionalGaussian:
    """v(S) = E[f(z) | z_S = x_S] with z Gaussian: what is not known is guessed from what is (book sec. 17.3).

    Mean and covariance are the background's; the expectation is a mean over `draws`, mirrored, so that it is exact for
    linear models. How far it is off for others shows between seeds: `of_repeats`. What a row has must be possible: a
    singular background knows of no other rows.
    """

    model: Model
    background: Float[Tensor, "others features"]
    draws: int = 256
    seed: int = 0

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
        most = at_once(self.model, x, len(x) * len(coalitions) * self.draws)
        model = in_parts(self.model, most)
        blocks = []
        for part, row in portions(len(coalitions), len(x), max(1, most // self.draws)):
            guesses = torch.stack([self.guesses(joint, x[row], known) for known in coalitions[part].to(x.device)])
            answers = model(guesses.flatten(0, 2)).double().unflatten(0, guesses.shape[:3])
            blocks.append(answers.mean(1).flatten(0, 1))
        worths: Tensor = torch.cat(blocks).unflatten(0, (len(coalitions), len(x)))
        return worths.permute(1, 2, 0)

    def guesses(
        self, joint: Gaussian, x: Float[Tensor, "rows features"], known: Bool[Tensor, " features"]
    ) -> Float[Tensor, "draws rows features"]:
        """Rows with what is not known drawn from what it may be, given what is."""
        guess = x.expand(self.draws, *x.shape).clone()
        seen = known.nonzero()[:, 0].tolist()
        if len(seen) < self.players:
            rest = condition(joint, x[:, known], observed=seen) if seen else joint
            root = eigen_root(rest.covariance)
            generator = torch.Generator().manual_seed(self.seed)
            noise = torch.randn(self.draws // 2, 1, len(root), generator=generator).to(x)
            guess[..., ~known] = rest.mean + torch.cat([noise, -noise]) @ root.mT
        return guess


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
    return coalitions if groups is None else coalitions[:, groups.long().argmax(0).to(coalitions.device)]
