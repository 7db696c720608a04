"""Tree SHAP: exact Shapley values of decision trees, forests and boosted trees from their leaves (book sec. 17.3).

A tree is a sum over its leaves, and each leaf is a product: it is reached if every feature on its path is in the leaf's
interval. Its game is a product too, whose Shapley values are known in closed form (Lundberg et al. 2020). The result
equals enumeration of all coalitions up to rounding; the cost grows with leaves × rows × background, not with 2^M.

The TreeExplainer of shap 0.51 can be far off on such forests, and its values do not sum to the prediction.
Its interventional code rounds thresholds to float32 and leaves the background in float64, whereas scikit-learn rounds
rows and not thresholds. For features on a grid, a threshold halfway between two values may equal a third value; rows
with that value then take the wrong branch. It also accumulates in float32, and by default uses 100 background rows.
"""

from math import ceil, factorial

import numpy as np
import torch
from jaxtyping import Bool, Float, Num
from torch import Tensor

from parnassus.shapley.attributions.attribution import Attribution
from parnassus.shapley.attributions.model_adapters import Rows, as_rows
from parnassus.shapley.closed_forms.tree_leaves import estimator_offset, extract_leaves
from parnassus.shapley.games.cooperative_games import all_coalitions

LEAF_ROWS_PER_BATCH, PAIRS_PER_BATCH = 2**18, 2**19
"""Maximum leaves × rows of a batch, and leaves × rows × background."""
CHECKED_ROWS = 32
"""Number of rows on which the estimator is compared with its leaves."""
MAX_PATTERN_SLOTS = 10
"""Maximum number of slots of a leaf for which patterns are enumerated: a million pairs of patterns."""


def tree_shap(
    estimator: object,
    x: Rows,
    background: Float[Tensor, "others features"] | Num[np.ndarray, "others features"],
) -> Attribution:
    """Interventional Shapley values, v(S) = E_b f(x_S, b_∖S), of a model that is a sum of trees (book sec. 17.3).

    For a classifier the outputs are probabilities; for a boosted classifier they are log-odds, the sum of its trees.
    """
    x, background = as_rows(x), as_rows(background)
    if x.shape[1] != background.shape[1]:
        raise ValueError(
            f"rows and background must be rows of the same features; got x {tuple(x.shape)}, "
            f"background {tuple(background.shape)}"
        )
    leaves = extract_leaves(estimator).to(x.device)
    checked = torch.cat([x[:CHECKED_ROWS], background.to(x)[:CHECKED_ROWS]])
    base_values = estimator_offset(leaves, estimator, checked)
    values = x.new_zeros(leaves.value.shape[1], x.shape[1], len(x), dtype=torch.float64)
    for block in leaves.blocks(LEAF_ROWS_PER_BATCH // (len(x) + len(background))):
        x_meets, b_meets = block.is_met_by(x), block.is_met_by(background)
        average = average_over_patterns if is_cheaper_by_patterns(x_meets, b_meets) else average_over_pairs
        _add_to_features(values, block.feature, average(x_meets, b_meets), block.value)
        base_values += b_meets.all(-1).double().mean(1) @ block.value
    return _as_attribution(base_values, values)


def path_dependent_tree_shap(estimator: object, x: Rows) -> Attribution:
    """Path-dependent Shapley values: an unknown feature follows both branches, weighted by training rows.

    v(S) weights a leaf by the fraction of training rows at each split on an unknown feature; no background is needed.
    It is neither the interventional nor the conditional expectation, but widely used (Lundberg et al. 2018).
    """
    x = as_rows(x)
    leaves = extract_leaves(estimator).to(x.device)
    if not bool((leaves.cover > 0).all()):
        empty = int((leaves.cover <= 0).any(1).sum())
        raise ValueError(f"every leaf must have training rows of positive weight; {empty} leaves have none")
    base_values = estimator_offset(leaves, estimator, x[:CHECKED_ROWS])
    values = x.new_zeros(leaves.value.shape[1], x.shape[1], len(x), dtype=torch.float64)
    for block in leaves.blocks(LEAF_ROWS_PER_BATCH // (len(x) * max(1, leaves.feature.shape[1]))):
        of_slots = product_game_shapley_values(block.cover[:, None], block.is_met_by(x).double())
        _add_to_features(values, block.feature, of_slots, block.value)
        base_values += block.cover.prod(-1) @ block.value
    return _as_attribution(base_values, values)


def leaf_values(
    x_meets: Bool[Tensor, "leaves rows slots"], b_meets: Bool[Tensor, "leaves others slots"]
) -> Float[Tensor, "leaves rows slots"]:
    """Shapley values of the game "the mixture of x and b reaches the leaf", averaged over the background rows b.

        A = {slots met by x only},  B = {slots met by b only};  v = 0 if a slot is met by neither
        v(S) = 1 if A ⊆ S and B ∩ S = ∅,   φ_i = (|A| − 1)! |B|! / (|A| + |B|)!   for i ∈ A
                                           φ_i = −|A|! (|B| − 1)! / (|A| + |B|)!  for i ∈ B

    The code counts all slots that x does not meet in B, regardless of b. The values of A and of B sum to 0, unless A is
    empty.
    """
    slots = x_meets.shape[-1]
    b_misses, x_misses = (~b_meets).double(), ~x_meets
    in_B = x_misses.sum(-1)
    table = leaf_weights(slots).to(b_misses)
    row = table.shape[1]
    # index in the table by |B| and |A|; beyond it, where a slot is met by neither
    steps = torch.cat([torch.where(x_meets, 1.0, float(table.numel())), in_B[..., None] * float(row)], -1)
    indices = steps @ torch.nn.functional.pad(b_misses, (0, 1), value=1.0).float().mT
    weights = torch.nn.functional.pad(table.flatten(), (0, 1))
    to_A = weights[indices.clamp(max=table.numel()).int()] @ b_misses
    num_reached = b_meets.all(-1).sum(-1)[:, None]  # A is empty: all of B lose 1
    to_B = (to_A.sum(-1) + num_reached) / in_B.clamp(min=1)
    return (to_A - x_misses * to_B[..., None]) / b_meets.shape[1]


def average_over_pairs(
    x_meets: Bool[Tensor, "leaves rows slots"], b_meets: Bool[Tensor, "leaves others slots"]
) -> Float[Tensor, "leaves rows slots"]:
    """`leaf_values` of all rows against all of the background, in batches of leaves and rows."""
    rows, others = x_meets.shape[1], b_meets.shape[1]
    leaves_per_batch, rows_per_batch = max(1, PAIRS_PER_BATCH // (rows * others)), max(1, PAIRS_PER_BATCH // others)
    return torch.cat(
        [
            torch.cat([leaf_values(batch, b) for batch in x.split(rows_per_batch, 1)], 1)
            for x, b in zip(x_meets.split(leaves_per_batch), b_meets.split(leaves_per_batch), strict=True)
        ]
    )


def average_over_patterns(
    x_meets: Bool[Tensor, "leaves rows slots"], b_meets: Bool[Tensor, "leaves others slots"]
) -> Float[Tensor, "leaves rows slots"]:
    """`leaf_values` from the 2^slots patterns of slots that a row can meet, which are often fewer than the rows.

    All pairs of patterns of x and b are computed once for all leaves; each leaf weights them by its background.
    """
    slots = x_meets.shape[-1]
    patterns = all_coalitions(slots).to(x_meets.device)
    table = leaf_values(patterns.expand(len(patterns), -1, -1), patterns[:, None])  # (pattern of b, of x, slots)
    x_index, b_index = (
        (meets * 2 ** torch.arange(slots, device=patterns.device)).sum(-1) for meets in (x_meets, b_meets)
    )
    count = torch.zeros(len(x_meets), len(patterns), dtype=torch.float64, device=patterns.device)
    frequency = count.scatter_add_(1, b_index, torch.ones_like(b_index, dtype=torch.float64)) / b_meets.shape[1]
    leaves_per_batch = max(1, PAIRS_PER_BATCH // max(1, patterns.numel()))
    return torch.cat(
        [
            (own @ table.flatten(1)).unflatten(1, (len(patterns), slots))[torch.arange(len(own))[:, None], index]
            for own, index in zip(frequency.split(leaves_per_batch), x_index.split(leaves_per_batch), strict=True)
        ]
    )


def is_cheaper_by_patterns(x_meets: Tensor, b_meets: Tensor) -> bool:
    """Whether pairs of patterns cost less than pairs of rows, which take eight times as long each."""
    slots = x_meets.shape[-1]
    return slots <= MAX_PATTERN_SLOTS and 4**slots < 8 * x_meets.shape[1] * b_meets.shape[1]


def leaf_weights(slots: int) -> Float[Tensor, "in_B in_A"]:
    """(a − 1)! b! / (a + b)! in row b and column a, and 0 for a = 0."""
    table = torch.zeros(slots + 1, slots + 1, dtype=torch.float64)
    for b in range(slots + 1):
        for a in range(1, slots + 1):
            table[b, a] = factorial(a - 1) * factorial(b) / factorial(a + b)
    return table


def product_game_shapley_values(
    absent: Float[Tensor, "*#games players"], present: Float[Tensor, "*#games players"]
) -> Float[Tensor, "*games players"]:
    """Shapley values of v(S) = Π_{j∈S} present_j Π_{j∉S} absent_j, where no `absent` is 0 (Owen 1972).

        φ_i = (p_i − a_i) ∫_0^1 Π_{j≠i} (a_j + t (p_j − a_j)) dt

    The integrand is a polynomial of degree M − 1: Gauss-Legendre quadrature with ⌈M/2⌉ nodes is exact.
    """
    nodes, weights = np.polynomial.legendre.leggauss(max(1, ceil(absent.shape[-1] / 2)))
    values = torch.zeros_like(present - absent)
    for t, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        factors = absent + t * (present - absent)
        values += weight * factors.prod(-1, keepdim=True) / factors
    return (present - absent) * values


def _add_to_features(values: Tensor, feature: Tensor, of_slots: Tensor, value: Tensor) -> None:
    """Add the Shapley values of slots, times the values of their leaves, to the slots' features."""
    for output, of_leaf in zip(values, value.mT, strict=True):
        output.index_add_(0, feature.flatten(), (of_slots * of_leaf[:, None, None]).mT.flatten(0, 1))


def _as_attribution(base_values: Tensor, values: Tensor) -> Attribution:
    rows_first = values.permute(2, 0, 1)
    return Attribution(base_values.expand(len(rows_first), -1), rows_first, torch.zeros_like(rows_first), 0)
