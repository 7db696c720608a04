"""Independence on finite spaces: by events, by functions, and by the maximal correlation (Diehl sec. 5)."""

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.probability.distributions.discrete import check_joint_table, largest_event_gap


def product_table(table: Float[Tensor, "rows columns"]) -> Float[Tensor, "rows columns"]:
    """P_X ⊗ P_Y, the joint table of independent X and Y with the same marginals (Diehl sec. 5)."""
    check_joint_table(table)
    return table.sum(1)[:, None] * table.sum(0)


def event_dependence(table: Float[Tensor, "rows columns"]) -> Float[Tensor, ""]:
    """max_{A,A′} |P[X∈A, X′∈A′] − P[X∈A] P[X′∈A′]|: 0 if and only if X and X′ are independent (Diehl sec. 5)."""
    return largest_event_gap(table, product_table(table))


def function_covariance(
    table: Float[Tensor, "rows columns"], f: Float[Tensor, " rows"], g: Float[Tensor, " columns"]
) -> Float[Tensor, ""]:
    """E[f(X) g(X′)] − E[f(X)] E[g(X′)], with functions given by their values (Diehl sec. 5)."""
    return f @ (table - product_table(table)) @ g


def maximal_correlation(table: Float[Tensor, "rows columns"]) -> Float[Tensor, ""]:
    """The largest correlation of any f(X) with any g(X′): 0 if and only if X and X′ are independent (Rényi 1959).

    It equals the largest singular value of (P[x, x′] − P[x] P[x′]) / √(P[x] P[x′]).
    """
    product = product_table(table)
    scaled = torch.where(product > 0, (table - product) / product.clamp(min=torch.finfo(table.dtype).tiny).sqrt(), 0)
    largest: Tensor = torch.linalg.matrix_norm(scaled, 2)
    return largest
