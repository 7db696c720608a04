"""Conditional distributions: a law of X for every value of Y (Diehl thm. 5.2).

They are tied down by all joint events: P[X∈A, Y∈B] = ∫_B P_{X|Y=y}(A) P_Y(dy) for all A and B. As printed the notes ask
this for one B only, all values, and then the constant family P_X passes always.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.probability.laws import largest_event_gap, require_joint
from parnassus.probability.simplex import require_distribution


def conditional_table(table: Float[Tensor, "rows columns"]) -> Float[Tensor, "columns rows"]:
    """P_{X|Y=y}(x) = P[X=x, Y=y] / P[Y=y], a row for each y (Diehl thm. 5.2).

    Where P[Y=y] = 0 any law will do; here it is P_X. The zeros that are printed for it are no probability measure.
    """
    require_joint(table)
    p_x, p_y = table.sum(1), table.sum(0)
    possible = p_y > 0
    return torch.where(possible[:, None], table.mT / torch.where(possible, p_y, 1)[:, None], p_x)


def joint_from_conditional(
    kernel: Float[Tensor, "columns rows"], p_y: Float[Tensor, " columns"]
) -> Float[Tensor, "rows columns"]:
    """P[X=x, Y=y] = P_{X|Y=y}(x) P[Y=y]: the joint table that a family of laws and a law of Y make."""
    require_distribution(kernel, "kernel")
    require_distribution(p_y, "p_y")
    return kernel.mT * p_y


def conditioning_gap(kernel: Float[Tensor, "columns rows"], table: Float[Tensor, "rows columns"]) -> Float[Tensor, ""]:
    """max_{A,B} |P[X∈A, Y∈B] − ∫_B P_{X|Y=y}(A) P_Y(dy)|: 0 exactly for conditional distributions (Diehl thm. 5.2)."""
    require_joint(table)
    return largest_event_gap(table, joint_from_conditional(kernel, table.sum(0)))


def conditional_expectation(
    values: Float[Tensor, " rows *event"], table: Float[Tensor, "rows columns"]
) -> Float[Tensor, " columns *event"]:
    """E[f(X) | Y = y] for every y, from the values of f; its mean over Y is E[f(X)] (Diehl thm. 5.2)."""
    expected: Tensor = torch.tensordot(conditional_table(table), values, 1)
    return expected
