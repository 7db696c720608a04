"""Batch and layer normalisation by hand, and which of the two forgets a bias (Diehl sec. 1.6, Zhao sec. 8)."""

from math import sqrt

import torch
from torch import Tensor, nn
from torch.nn import functional

from parnassus.atlas import Correction, Evidence, all_of, at_least, claim, close, erratum
from parnassus.layers.claims.dense import normal
from parnassus.layers.dense import parameter_count
from parnassus.layers.normalisation import BatchNorm, LayerNorm, standardise


def by_hand(numbers: list[float], epsilon: float = 1e-5) -> list[float]:
    """(x − mean)/√(var + ε) of a list, in plain Python."""
    mean = sum(numbers) / len(numbers)
    variance = sum((x - mean) ** 2 for x in numbers) / len(numbers)
    return [(x - mean) / sqrt(variance + epsilon) for x in numbers]


def over_first(x: Tensor) -> Tensor:
    """Every list along the first axis standardised by hand."""
    columns = [by_hand(column.tolist()) for column in x.flatten(1).T]
    return torch.tensor(columns, dtype=x.dtype).T.reshape(x.shape)


@claim("C-08", "D1.6.7", "D1.6.8")
def the_tutorial_on_normalisation() -> Evidence:
    """BN on 3×2 and 3×2×4, LN on 2×3 and 2×3×4, by lists of numbers and by library (Diehl sec. 1.6).

    Of three axes the library's batch norm pools the first two, whatever the notes' formula says; layer norm pools the
    last in both. And yes, batch norm has trainable parameters: γ and β, two for each feature, and two averages that
    are kept but not trained.
    """
    flat, deep = 3 * normal(3, 2) + 1, 3 * normal(3, 2, 4, seed=1) + 1
    row, rows = 3 * normal(2, 3, seed=2) + 1, 3 * normal(2, 3, 4, seed=3) + 1
    library = nn.BatchNorm1d(4).double()
    pooled = over_first(deep.flatten(0, 1)).reshape(deep.shape)
    lines = torch.tensor([by_hand(line.tolist()) for line in rows.flatten(0, 1)], dtype=torch.float64)
    return all_of(
        batch_of_rows=close(over_first(flat), nn.BatchNorm1d(2).double()(flat), atol=1e-12),
        ours_of_rows=close(BatchNorm(2).double()(flat), over_first(flat), atol=1e-12),
        batch_with_positions=close(pooled, library(deep.mT).mT, atol=1e-12),
        the_formula_of_the_notes_pools_less=at_least((over_first(deep) - library(deep.mT).mT).abs().max(), 0.1),
        layer_of_rows=close(over_first(row.T).T, functional.layer_norm(row, (3,)), atol=1e-12),
        layer_with_positions=close(lines.reshape(rows.shape), functional.layer_norm(rows, (4,)), atol=1e-12),
        ours_with_positions=close(LayerNorm(4).double()(rows), lines.reshape(rows.shape), atol=1e-12),
        trainable=close(parameter_count(library), 2 * 4),
        kept_untrained=close(library.get_buffer("running_mean").numel() + library.get_buffer("running_var").numel(), 8),
    )


@erratum("Z8.2", printed="h = φ(BN(Wx + b)) under the heading Layer Normalization", right="under Batch Normalization")
def only_batch_norm_forgets_the_bias() -> Correction:
    """Filed under layer norm the bias should not matter to it; it does: LN(Wx + b) is not LN(Wx) (Zhao sec. 8)."""
    x, weight, bias = normal(20, 5), normal(5, 4, seed=1), normal(4, seed=2)
    return Correction(
        printed=close(standardise(x @ weight + bias, (-1,)), standardise(x @ weight, (-1,)), atol=1e-3),
        corrected=all_of(
            batch_norm=close(standardise(x @ weight + bias, (0,)), standardise(x @ weight, (0,)), atol=1e-12),
            layer_norm_forgets_only_a_common_shift=close(
                standardise(x @ weight + 3.0, (-1,)), standardise(x @ weight, (-1,)), atol=1e-12
            ),
        ),
    )
