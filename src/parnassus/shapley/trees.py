"""Shapley values of decision trees, forests and boosted trees, exact and without asking the model (book sec. 17.3).

A tree is a sum over its leaves, and a leaf is a product: it is reached if every feature on the way to it is in its
interval. So are its games, and the Shapley values of a product are known in closed form (Lundberg et al. 2020). Equal
to enumeration over all coalitions to rounding; the cost grows with leaves × rows × background, not with 2^M.

The TreeExplainer of shap 0.51 is off by whole units on such forests, and its parts do not sum to the prediction. Its
interventional code rounds thresholds to float32 and leaves the background in float64; scikit-learn rounds rows and not
thresholds. Where features lie on a grid, a threshold half way between two values is a third value, and that one then
goes the other way. It also adds up in float32, and takes 100 rows of the background unless told otherwise.
"""

from math import ceil, factorial

import numpy as np
import torch
from jaxtyping import Bool, Float, Num
from torch import Tensor

from parnassus.shapley.attribution import Attribution
from parnassus.shapley.game import members
from parnassus.shapley.leaves import leaves_of, offset_of
from parnassus.shapley.model import Rows, as_rows

TOGETHER, PAIRS = 2**18, 2**19
"""Leaves × rows that are looked at at once, and leaves × rows × background."""
SOME = 32
"""Rows on which trees must say what their leaves do."""
MOST = 10
"""Slots of a leaf whose patterns are written out, who meets which of them: each with each, a million."""


def explain_trees(
    estimator: object,
    x: Rows,
    background: Float[Tensor, "others features"] | Num[np.ndarray, "others features"],
) -> Attribution:
    """Interventional Shapley values, v(S) = E_b f(x_S, b_∖S), of a model that is a sum of trees (book sec. 17.3).

    Of a classifier the outputs are its probabilities; of a boosted classifier the log-odds, for those are the sum.
    """
    x, background = as_rows(x), as_rows(background)
    if x.shape[1] != background.shape[1]:
        raise ValueError(
            f"rows and background must be rows of the same features; got x {tuple(x.shape)}, "
            f"background {tuple(background.shape)}"
        )
    leaves = leaves_of(estimator).to(x.device)
    base = offset_of(leaves, estimator, torch.cat([x[:SOME], background.to(x)[:SOME]]))
    values = x.new_zeros(leaves.value.shape[1], x.shape[1], len(x), dtype=torch.float64)
    for block in leaves.blocks(TOGETHER // (len(x) + len(background))):
        x_meets, b_meets = block.meets(x), block.meets(background)
        parts = (by_patterns if few_patterns(x_meets, b_meets) else by_pairs)(x_meets, b_meets)
        _give(values, block.feature, parts, block.value)
        base += b_meets.all(-1).double().mean(1) @ block.value
    return _attributed(base, values)


def explain_trees_by_cover(estimator: object, x: Rows) -> Attribution:
    """Path-dependent Shapley values: where a feature is not known, a tree is followed both ways, as training rows were.

    v(S) weighs a leaf by the share of them at each turn that asks for an unknown feature, and needs no background. It
    is neither the interventional nor the conditional expectation, but what is often shown (Lundberg et al. 2018).
    """
    x = as_rows(x)
    leaves = leaves_of(estimator).to(x.device)
    if not bool((leaves.cover > 0).all()):
        without = int((leaves.cover <= 0).any(1).sum())
        raise ValueError(f"there must be training rows of some weight in every leaf; {without} leaves have none")
    base = offset_of(leaves, estimator, x[:SOME])
    values = x.new_zeros(leaves.value.shape[1], x.shape[1], len(x), dtype=torch.float64)
    for block in leaves.blocks(TOGETHER // (len(x) * max(1, leaves.feature.shape[1]))):
        _give(values, block.feature, of_products(block.cover[:, None], block.meets(x).double()), block.value)
        base += block.cover.prod(-1) @ block.value
    return _attributed(base, values)


def between(
    x_meets: Bool[Tensor, "leaves rows slots"], b_meets: Bool[Tensor, "leaves others slots"]
) -> Float[Tensor, "leaves rows slots"]:
    """Shapley values of the game "the mixture of x and b reaches the leaf", in the mean over the background rows b.

        A = {x meets, b does not},  B = {b meets, x does not},  none that neither meets
        v(S) = 1 if A ⊆ S and B ∩ S = ∅,   φ_i = (|A| − 1)! |B|! / (|A| + |B|)!   for i ∈ A
                                           φ_i = −|A|! (|B| − 1)! / (|A| + |B|)!  for i ∈ B

    B is all that x does not meet, whatever b is. The parts of A sum to those of B, but for sign, unless A is empty.
    """
    slots = x_meets.shape[-1]
    b_misses, x_misses = (~b_meets).double(), ~x_meets
    in_B = x_misses.sum(-1)
    table = shares(slots).to(b_misses)
    row = table.shape[1]
    # the place in the table of |B| and |A|; beyond it, where a slot is met by neither
    ways = torch.cat([torch.where(x_meets, 1.0, float(table.numel())), in_B[..., None] * float(row)], -1)
    places = ways @ torch.nn.functional.pad(b_misses, (0, 1), value=1.0).float().mT
    weights = torch.nn.functional.pad(table.flatten(), (0, 1))
    to_A = weights[places.clamp(max=table.numel()).int()] @ b_misses
    arrive = b_meets.all(-1).sum(-1)[:, None]  # A is empty: all of B lose 1
    to_B = (to_A.sum(-1) + arrive) / in_B.clamp(min=1)
    return (to_A - x_misses * to_B[..., None]) / b_meets.shape[1]


def by_pairs(
    x_meets: Bool[Tensor, "leaves rows slots"], b_meets: Bool[Tensor, "leaves others slots"]
) -> Float[Tensor, "leaves rows slots"]:
    """`between` all rows and all of the background, a few leaves and rows at a time."""
    rows, others = x_meets.shape[1], b_meets.shape[1]
    leaves, some = max(1, PAIRS // (rows * others)), max(1, PAIRS // others)
    return torch.cat(
        [
            torch.cat([between(few, b) for few in x.split(some, 1)], 1)
            for x, b in zip(x_meets.split(leaves), b_meets.split(leaves), strict=True)
        ]
    )


def by_patterns(
    x_meets: Bool[Tensor, "leaves rows slots"], b_meets: Bool[Tensor, "leaves others slots"]
) -> Float[Tensor, "leaves rows slots"]:
    """The same: what a row is given depends only on which slots it meets, and those 2^slots patterns are soon fewer.

    Every pattern of x with every pattern of b, once for all leaves; each leaf then weighs them by its background.
    """
    slots = x_meets.shape[-1]
    every = members(slots).to(x_meets.device)
    table = between(every.expand(len(every), -1, -1), every[:, None])  # (pattern of b, pattern of x, slots)
    x_number, b_number = (
        (meets * 2 ** torch.arange(slots, device=every.device)).sum(-1) for meets in (x_meets, b_meets)
    )
    count = torch.zeros(len(x_meets), len(every), dtype=torch.float64, device=every.device)
    share = count.scatter_add_(1, b_number, torch.ones_like(b_number, dtype=torch.float64)) / b_meets.shape[1]
    leaves = max(1, PAIRS // max(1, every.numel()))
    return torch.cat(
        [
            (own @ table.flatten(1)).unflatten(1, (len(every), slots))[torch.arange(len(own))[:, None], number]
            for own, number in zip(share.split(leaves), x_number.split(leaves), strict=True)
        ]
    )


def few_patterns(x_meets: Tensor, b_meets: Tensor) -> bool:
    """Whether patterns cost less than pairs of rows; one of theirs takes an eighth of the time, in a matrix product."""
    slots = x_meets.shape[-1]
    return slots <= MOST and 4**slots < 8 * x_meets.shape[1] * b_meets.shape[1]


def shares(slots: int) -> Float[Tensor, "in_B in_A"]:
    """(a − 1)! b! / (a + b)! in row b and column a; nobody gets nothing, a = 0."""
    table = torch.zeros(slots + 1, slots + 1, dtype=torch.float64)
    for b in range(slots + 1):
        for a in range(1, slots + 1):
            table[b, a] = factorial(a - 1) * factorial(b) / factorial(a + b)
    return table


def of_products(
    absent: Float[Tensor, "*#games players"], present: Float[Tensor, "*#games players"]
) -> Float[Tensor, "*games players"]:
    """Shapley values of v(S) = Π_{j∈S} present_j Π_{j∉S} absent_j, where none of `absent` is 0 (Owen 1972).

        φ_i = (p_i − a_i) ∫_0^1 Π_{j≠i} (a_j + t (p_j − a_j)) dt

    The integrand is a polynomial of degree M − 1: Gauss' rule with ⌈M/2⌉ nodes is exact.
    """
    nodes, weights = np.polynomial.legendre.leggauss(max(1, ceil(absent.shape[-1] / 2)))
    values = torch.zeros_like(present - absent)
    for t, weight in zip((nodes + 1) / 2, weights / 2, strict=True):
        factors = absent + t * (present - absent)
        values += weight * factors.prod(-1, keepdim=True) / factors
    return (present - absent) * values


def _give(values: Tensor, feature: Tensor, parts: Tensor, value: Tensor) -> None:
    """Add the parts of slots, times the values of their leaves, to the features they belong to."""
    for output, of_leaf in zip(values, value.mT, strict=True):
        output.index_add_(0, feature.flatten(), (parts * of_leaf[:, None, None]).mT.flatten(0, 1))


def _attributed(base: Tensor, values: Tensor) -> Attribution:
    found = values.permute(2, 0, 1)
    return Attribution(base.expand(len(found), -1), found, torch.zeros_like(found), 0)
