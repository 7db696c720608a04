"""Conditional distributions of X given each value of Y, from a joint table (Diehl thm. 5.2).

They are defined by all joint events: P[X∈A, Y∈B] = ∫_B P_{X|Y=y}(A) P_Y(dy) for all A and B. The notes require it only
for B = all values, a condition which the constant family P_X always satisfies.
"""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.probability.distributions.discrete import check_joint_table, largest_event_gap
from parnassus.probability.distributions.simplex import check_distribution


def conditional_table(table: Float[Tensor, "rows columns"]) -> Float[Tensor, "columns rows"]:
    """P_{X|Y=y}(x) = P[X=x, Y=y] / P[Y=y], one row per y (Diehl thm. 5.2).

    Where P[Y=y] = 0 any distribution is admissible; here it is P_X. The zeros in the notes are not a distribution.
    """
    check_joint_table(table)
    p_x, p_y = table.sum(1), table.sum(0)
    possible = p_y > 0
    return torch.where(possible[:, None], table.mT / torch.where(possible, p_y, 1)[:, None], p_x)


def joint_from_conditional(
    kernel: Float[Tensor, "columns rows"], p_y: Float[Tensor, " columns"]
) -> Float[Tensor, "rows columns"]:
    """P[X=x, Y=y] = P_{X|Y=y}(x) P[Y=y]: the joint table of a conditional and a marginal distribution."""
    check_distribution(kernel, "kernel")
    check_distribution(p_y, "p_y")
    return kernel.mT * p_y


def conditioning_gap(kernel: Float[Tensor, "columns rows"], table: Float[Tensor, "rows columns"]) -> Float[Tensor, ""]:
    """max_{A,B} |P[X∈A, Y∈B] − ∫_B P_{X|Y=y}(A) P_Y(dy)|: 0 only for conditional distributions (Diehl thm. 5.2)."""
    check_joint_table(table)
    return largest_event_gap(table, joint_from_conditional(kernel, table.sum(0)))


def conditional_expectation(
    values: Float[Tensor, " rows *event"], table: Float[Tensor, "rows columns"]
) -> Float[Tensor, " columns *event"]:
    """E[f(X) | Y = y] for every y, from the values of f; its expectation is E[f(X)] (Diehl thm. 5.2)."""
    expected: Tensor = torch.tensordot(conditional_table(table), values, 1)
    return expected
