"""Decision trees as lists of leaves: a leaf is a box in feature space with a value, a forest the leaves of all trees.

Trees are read from the public arrays of scikit-learn's `tree_`, or any object with the same arrays.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from numpy.typing import NDArray
from torch import Tensor

from parnassus.shapley.attributions.model_adapters import Model, ModelError, as_model


@runtime_checkable
class TreeNodes(Protocol):
    """The arrays of a tree, with one entry per node; a child of −1 marks a leaf."""

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
    """A fitted tree of scikit-learn."""

    tree_: TreeNodes


@runtime_checkable
class HasTrees(Protocol):
    """A fitted ensemble: a forest's list of trees, or a boosted model's table of rounds by outputs."""

    estimators_: object


@runtime_checkable
class BoostedTrees(Protocol):
    """A sum of regression trees scaled by the learning rate; for a classifier of log-odds."""

    estimators_: object
    learning_rate: float


@runtime_checkable
class HasScores(Protocol):
    """A classifier with scores from which its probabilities are computed."""

    def decision_function(self, x: object) -> object: ...


@dataclass(frozen=True)
class Leaves:
    """f(x) = Σ_leaf value · Π_slot [lower < x_feature ≤ upper]: one slot per distinct feature on the path to a leaf.

    The first `num_slots` slots of a leaf are in use; the others have no bounds. `missing` is whether a missing value
    takes this path, `cover` the fraction of training rows that do, over all splits on the slot's feature.

    >>> from sklearn.tree import DecisionTreeRegressor
    >>> x, y = torch.tensor([[0.0], [1.0]]), torch.tensor([5.0, 7.0])
    >>> leaves = extract_leaves(DecisionTreeRegressor().fit(x.numpy(), y.numpy()))
    >>> leaves.predict(x.double()).flatten().tolist()
    [5.0, 7.0]
    """

    feature: Int[Tensor, "leaves slots"]
    lower: Float[Tensor, "leaves slots"]
    upper: Float[Tensor, "leaves slots"]
    missing: Bool[Tensor, "leaves slots"]
    cover: Float[Tensor, "leaves slots"]
    num_slots: Int[Tensor, " leaves"]
    value: Float[Tensor, "leaves outputs"]

    def is_met_by(self, x: Float[Tensor, "rows features"]) -> Bool[Tensor, "leaves rows slots"]:
        """Whether each row satisfies each slot. As in scikit-learn x is rounded to float32, thresholds are not."""
        features = x.float().double().mT[self.feature].mT  # (leaves, rows, slots)
        inside = (features > self.lower[:, None]) & (features <= self.upper[:, None])
        return torch.where(features.isnan(), self.missing[:, None], inside) if bool(x.isnan().any()) else inside

    def predict(self, x: Float[Tensor, "rows features"]) -> Float[Tensor, "rows outputs"]:
        """The value of the leaf that each row reaches, summed over trees."""
        total = x.new_zeros(len(x), self.value.shape[1], dtype=torch.float64)
        for block in self.blocks(2**20 // max(1, len(x))):
            total += block.is_met_by(x).all(-1).double().mT @ block.value
        return total

    def blocks(self, max_leaves: int) -> Iterator["Leaves"]:
        """Blocks of at most `max_leaves` leaves with the same number of slots, all in use."""
        for slots in self.num_slots.unique().tolist():
            for batch in (self.num_slots == slots).nonzero()[:, 0].split(max(1, max_leaves)):
                kept = {field.name: getattr(self, field.name)[batch] for field in fields(self)}
                yield Leaves(**{name: part[:, :slots] if name in SLOT_FIELDS else part for name, part in kept.items()})

    def to(self, device: torch.device) -> "Leaves":
        return Leaves(**{field.name: getattr(self, field.name).to(device) for field in fields(self)})


SLOT_FIELDS = ("feature", "lower", "upper", "missing", "cover")
"""Fields with one entry per slot."""


def extract_leaves(estimator: object) -> Leaves:
    """The leaves of a tree, of a forest (values divided by the number of trees), or of a boosted model."""
    if isinstance(estimator, HasTree):
        return _collect_leaves([estimator.tree_], _node_values(estimator))
    if not isinstance(estimator, HasTrees):
        raise TypeError(
            "estimator must be a fitted tree or ensemble of trees, with `tree_` or `estimators_`; "
            f"got {type(estimator).__name__}"
        )
    table = np.asarray(estimator.estimators_, dtype=object)  # a row of trees, or of a boosted model rounds × outputs
    trees = [tree for tree in table.flat if isinstance(tree, HasTree)]
    if len(trees) < table.size:
        raise TypeError(f"estimators_ must all be trees; {type(estimator).__name__} has others")
    if table.ndim == 2 and isinstance(estimator, BoostedTrees):
        output = torch.eye(table.shape[1], dtype=torch.float64).repeat(len(table), 1)
        values = [estimator.learning_rate * _node_values(tree) * own for tree, own in zip(trees, output, strict=True)]
    else:
        values = [_node_values(tree) / len(trees) for tree in trees]
    return _collect_leaves([tree.tree_ for tree in trees], torch.cat(values))


def additive_output(estimator: object) -> Model:
    """The output that is a sum over leaves: predictions or probabilities; for a boosted classifier the log-odds."""
    if isinstance(estimator, BoostedTrees) and isinstance(estimator, HasScores):
        return as_model(estimator.decision_function)
    return as_model(estimator)


def estimator_offset(leaves: Leaves, estimator: object, x: Float[Tensor, "rows features"]) -> Float[Tensor, " outputs"]:
    """The constant that an estimator adds to its leaves, such as the initial value of boosting."""
    predicted, summed = additive_output(estimator)(x.double()), leaves.predict(x)
    if predicted.shape != summed.shape:
        raise ModelError(
            f"leaves and estimator must have the same outputs; leaves have {summed.shape[1]} outputs, "
            f"{type(estimator).__name__} has {predicted.shape[1]}"
        )
    offset = (predicted - summed).mean(0)
    deviation = float((predicted - summed - offset).abs().max())
    if deviation > 1e-6 * float(predicted.abs().max().clamp(min=1e-6)):
        raise ModelError(
            f"{type(estimator).__name__} is neither the sum nor the mean of its trees: "
            f"it deviates by up to {deviation:.3g}"
        )
    return offset


def _collect_leaves(trees: Sequence[TreeNodes], value: Float[Tensor, "nodes outputs"]) -> Leaves:
    """Follow all leaves of all trees to their roots in parallel, recording the split at each node."""
    nodes = _join_trees(trees)
    inner = (nodes.left >= 0).nonzero()[:, 0]
    parent = torch.full_like(nodes.left, -1)
    parent[nodes.left[inner]] = parent[nodes.right[inner]] = inner
    none = max(tree.n_features for tree in trees)  # marks no feature, and is sorted last
    ends = at = (nodes.left < 0).nonzero()[:, 0]
    unbounded = torch.full((len(at),), torch.inf, dtype=torch.float64)
    feature, lower, upper, missing, cover = (
        [start] for start in (torch.full_like(at, none), -unbounded, unbounded, at >= 0, torch.ones_like(unbounded))
    )
    while bool((parent[at] >= 0).any()):
        up, has_parent = parent[at].clamp(min=0), parent[at] >= 0
        is_left, threshold = nodes.left[up] == at, nodes.threshold[up]
        feature.append(torch.where(has_parent, nodes.feature[up], none))
        lower.append(torch.where(has_parent & ~is_left, threshold, -torch.inf))
        upper.append(torch.where(has_parent & is_left, threshold, torch.inf))
        missing.append(~has_parent | (nodes.missing_left[up] == is_left))
        cover.append(torch.where(has_parent, nodes.weight[at] / nodes.weight[up], 1.0))
        at = torch.where(has_parent, up, at)
    by_feature, order = torch.stack(feature, 1).sort(1)
    slot = (by_feature.diff(dim=1, prepend=by_feature[:, :1]) > 0).cumsum(1)  # one slot per distinct feature
    slots = len(ends), int(slot.max()) + 1

    def merge_by_slot(splits: list[Tensor], initial: float, reduction: str) -> Tensor:
        ordered = torch.stack(splits, 1).double().gather(1, order)
        return torch.full(slots, initial, dtype=torch.float64).scatter_reduce(1, slot, ordered, reduction)

    features = torch.full(slots, none).scatter_(1, slot, by_feature)
    return Leaves(
        torch.where(features < none, features, 0),
        merge_by_slot(lower, -torch.inf, "amax"),
        merge_by_slot(upper, torch.inf, "amin"),
        merge_by_slot(missing, 1.0, "amin") > 0,
        merge_by_slot(cover, 1.0, "prod"),
        (features < none).sum(1),
        value[ends],
    )


class _NodeTable(NamedTuple):
    """The concatenated nodes of all trees; the children of a leaf are −1."""

    left: Int[Tensor, " nodes"]
    right: Int[Tensor, " nodes"]
    feature: Int[Tensor, " nodes"]
    threshold: Float[Tensor, " nodes"]
    weight: Float[Tensor, " nodes"]
    missing_left: Bool[Tensor, " nodes"]


def _join_trees(trees: Sequence[TreeNodes]) -> _NodeTable:
    starts = np.cumsum([0, *(len(tree.feature) for tree in trees)])

    def children(sides: Sequence[NDArray[np.int64]]) -> Tensor:
        return torch.tensor(
            np.concatenate([np.where(side < 0, -1, side + start) for side, start in zip(sides, starts, strict=False)])
        )

    return _NodeTable(
        children([tree.children_left for tree in trees]),
        children([tree.children_right for tree in trees]),
        torch.tensor(np.concatenate([tree.feature for tree in trees])),
        torch.tensor(np.concatenate([tree.threshold for tree in trees])),
        torch.tensor(np.concatenate([tree.weighted_n_node_samples for tree in trees])),
        torch.tensor(np.concatenate([tree.missing_go_to_left for tree in trees])) > 0,
    )


def _node_values(estimator: HasTree) -> Float[Tensor, "nodes outputs"]:
    """One value per target for regression, the fraction of each class for classification."""
    table = torch.tensor(estimator.tree_.value)  # (nodes, targets, classes)
    if not hasattr(estimator, "predict_proba"):
        return table[:, :, 0]
    if table.shape[1] > 1:
        raise ModelError(
            f"a classifier must have one target; got a classifier of {table.shape[1]} targets; explain one of them"
        )
    return table[:, 0] / table[:, 0].sum(-1, keepdim=True)
