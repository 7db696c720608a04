"""Decision trees as lists of leaves: a leaf is a box of features and a value, a forest the leaves of all its trees.

Trees are read from the public arrays that scikit-learn's `tree_` has; anything with the same arrays will do.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from parnassus.shapley.model import Model, ModelError, as_model


@runtime_checkable
class Nodes(Protocol):
    """The arrays of a tree, an entry for each node; a child of −1 marks a leaf."""

    children_left: NDArray[np.int64]
    children_right: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: NDArray[np.float64]
    missing_go_to_left: NDArray[np.uint8]
    weighted_n_node_samples: NDArray[np.float64]
    value: NDArray[np.float64]
    n_features: int


@runtime_checkable
class HasTree(Protocol):
    """One tree, as scikit-learn has them."""

    tree_: Nodes


@runtime_checkable
class HasTrees(Protocol):
    """A forest's list of trees, or the table of a boosted model: rounds by outputs."""

    estimators_: object


@runtime_checkable
class Boosted(Protocol):
    """A sum of regression trees, each scaled by the learning rate; a classifier's are log-odds."""

    estimators_: object
    learning_rate: float


@runtime_checkable
class HasScores(Protocol):
    """A classifier with scores before they become probabilities."""

    def decision_function(self, x: object) -> object: ...


@dataclass(frozen=True)
class Leaves:
    """f(x) = Σ_leaf value · Π_slot [above < x_feature ≤ upto]: a slot for each feature on the way, however often met.

    `needed` slots of a leaf come first; the others have no bounds. `missing` says whether a missing value comes this
    way, `cover` which share of the training rows did, over all turns at the slot's feature.
    """

    feature: Int[Tensor, "leaves slots"]
    above: Float[Tensor, "leaves slots"]
    upto: Float[Tensor, "leaves slots"]
    missing: Bool[Tensor, "leaves slots"]
    cover: Float[Tensor, "leaves slots"]
    needed: Int[Tensor, " leaves"]
    value: Float[Tensor, "leaves outputs"]

    def meets(self, x: Float[Tensor, "rows features"]) -> Bool[Tensor, "leaves rows slots"]:
        """Which rows meet which slot. As scikit-learn does it: x is rounded to float32, a threshold is not."""
        asked = x.float().double().mT[self.feature].mT  # (leaves, rows, slots)
        inside = (asked > self.above[:, None]) & (asked <= self.upto[:, None])
        return torch.where(asked.isnan(), self.missing[:, None], inside) if bool(x.isnan().any()) else inside

    def predict(self, x: Float[Tensor, "rows features"]) -> Float[Tensor, "rows outputs"]:
        """The value of the leaf that each row reaches, summed over trees."""
        total = x.new_zeros(len(x), self.value.shape[1], dtype=torch.float64)
        for block in self.blocks(2**20 // max(1, len(x))):
            total += block.meets(x).all(-1).double().mT @ block.value
        return total

    def blocks(self, most: int) -> Iterator["Leaves"]:
        """At most so many leaves at a time, all with the same number of slots and none empty."""
        for slots in self.needed.unique().tolist():
            for some in (self.needed == slots).nonzero()[:, 0].split(max(1, most)):
                kept = {field.name: getattr(self, field.name)[some] for field in fields(self)}
                yield Leaves(**{name: part[:, :slots] if name in BOUNDS else part for name, part in kept.items()})

    def to(self, device: torch.device) -> "Leaves":
        return Leaves(**{field.name: getattr(self, field.name).to(device) for field in fields(self)})


BOUNDS = ("feature", "above", "upto", "missing", "cover")
"""What a leaf has for each of its slots."""


def leaves_of(estimator: object) -> Leaves:
    """Of a tree, of all trees of a forest, each with its share of the mean, or of a boosted model."""
    if isinstance(estimator, HasTree):
        return _climbed([estimator.tree_], _values(estimator))
    if not isinstance(estimator, HasTrees):
        raise TypeError(f"a tree has `tree_`, a forest `estimators_`, once fitted; got {type(estimator).__name__}")
    table = np.asarray(estimator.estimators_, dtype=object)  # a row of trees, or of a boosted model rounds × outputs
    trees = [tree for tree in table.flat if isinstance(tree, HasTree)]
    if len(trees) < table.size:
        raise TypeError(f"{type(estimator).__name__} is made of other things than trees")
    if table.ndim == 2 and isinstance(estimator, Boosted):
        output = torch.eye(table.shape[1], dtype=torch.float64).repeat(len(table), 1)
        values = [estimator.learning_rate * _values(tree) * own for tree, own in zip(trees, output, strict=True)]
    else:
        values = [_values(tree) / len(trees) for tree in trees]
    return _climbed([tree.tree_ for tree in trees], torch.cat(values))


def said_by_trees(estimator: object) -> Model:
    """What a sum over leaves can be: predictions, or probabilities; of a boosted classifier the log-odds."""
    if isinstance(estimator, Boosted) and isinstance(estimator, HasScores):
        return as_model(estimator.decision_function)
    return as_model(estimator)


def offset_of(leaves: Leaves, estimator: object, x: Float[Tensor, "rows features"]) -> Float[Tensor, " outputs"]:
    """What an estimator adds to its leaves, for boosting begins somewhere; anything but a constant is refused."""
    said, found = said_by_trees(estimator)(x.double()), leaves.predict(x)
    if said.shape != found.shape:
        raise ModelError(f"leaves have {found.shape[1]} outputs, {type(estimator).__name__} has {said.shape[1]}")
    offset = (said - found).mean(0)
    worst = float((said - found - offset).abs().max())
    if worst > 1e-6 * float(said.abs().max().clamp(min=1e-6)):
        raise ModelError(
            f"{type(estimator).__name__} is neither the sum nor the mean of its trees: it is off by up to {worst:.3g}"
        )
    return offset


def _climbed(trees: Sequence[Nodes], value: Float[Tensor, "nodes outputs"]) -> Leaves:
    """All leaves of all trees climb to their roots together, and write down the turn at each node they pass."""
    nodes = _joined(trees)
    inner = (nodes.left >= 0).nonzero()[:, 0]
    parent = torch.full_like(nodes.left, -1)
    parent[nodes.left[inner]] = parent[nodes.right[inner]] = inner
    none = max(tree.n_features for tree in trees)  # stands for no feature, and is sorted last
    ends = at = (nodes.left < 0).nonzero()[:, 0]
    unbounded = torch.full((len(at),), torch.inf, dtype=torch.float64)
    feature, above, upto, missing, cover = (
        [start] for start in (torch.full_like(at, none), -unbounded, unbounded, at >= 0, torch.ones_like(unbounded))
    )
    while bool((parent[at] >= 0).any()):
        up, there = parent[at].clamp(min=0), parent[at] >= 0
        left, limit = nodes.left[up] == at, nodes.threshold[up]
        feature.append(torch.where(there, nodes.feature[up], none))
        above.append(torch.where(there & ~left, limit, -torch.inf))
        upto.append(torch.where(there & left, limit, torch.inf))
        missing.append(~there | (nodes.missing_left[up] == left))
        cover.append(torch.where(there, nodes.weight[at] / nodes.weight[up], 1.0))
        at = torch.where(there, up, at)
    by_feature, order = torch.stack(feature, 1).sort(1)
    slot = (by_feature.diff(dim=1, prepend=by_feature[:, :1]) > 0).cumsum(1)  # a feature met often has one slot
    slots = len(ends), int(slot.max()) + 1

    def merged(turns: list[Tensor], start: float, how: str) -> Tensor:
        given = torch.stack(turns, 1).double().gather(1, order)
        return torch.full(slots, start, dtype=torch.float64).scatter_reduce(1, slot, given, how)

    features = torch.full(slots, none).scatter_(1, slot, by_feature)
    return Leaves(
        torch.where(features < none, features, 0),
        merged(above, -torch.inf, "amax"),
        merged(upto, torch.inf, "amin"),
        merged(missing, 1.0, "amin") > 0,
        merged(cover, 1.0, "prod"),
        (features < none).sum(1),
        value[ends],
    )


class _Joined(NamedTuple):
    """The nodes of all trees in one row; leaves have no children, −1."""

    left: Int[Tensor, " nodes"]
    right: Int[Tensor, " nodes"]
    feature: Int[Tensor, " nodes"]
    threshold: Float[Tensor, " nodes"]
    weight: Float[Tensor, " nodes"]
    missing_left: Bool[Tensor, " nodes"]


def _joined(trees: Sequence[Nodes]) -> _Joined:
    starts = np.cumsum([0, *(len(tree.feature) for tree in trees)])

    def children(sides: Sequence[NDArray[np.int64]]) -> Tensor:
        return torch.tensor(
            np.concatenate([np.where(side < 0, -1, side + start) for side, start in zip(sides, starts, strict=False)])
        )

    return _Joined(
        children([tree.children_left for tree in trees]),
        children([tree.children_right for tree in trees]),
        torch.tensor(np.concatenate([tree.feature for tree in trees])),
        torch.tensor(np.concatenate([tree.threshold for tree in trees])),
        torch.tensor(np.concatenate([tree.weighted_n_node_samples for tree in trees])),
        torch.tensor(np.concatenate([tree.missing_go_to_left for tree in trees])) > 0,
    )


def _values(estimator: HasTree) -> Float[Tensor, "nodes outputs"]:
    """Of a regression a number for each target; of a classification the share of each class."""
    given = torch.tensor(estimator.tree_.value)  # (nodes, targets, classes)
    if not hasattr(estimator, "predict_proba"):
        return given[:, :, 0]
    if given.shape[1] > 1:
        raise ModelError(
            f"a classifier of {given.shape[1]} targets has no one row of probabilities; explain one target"
        )
    return given[:, 0] / given[:, 0].sum(-1, keepdim=True)
