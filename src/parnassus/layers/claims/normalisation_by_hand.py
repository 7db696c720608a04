"""Batch and layer normalisation in plain Python, and which of them cancels a bias (Diehl sec. 1.6, Zhao sec. 8)."""

from math import sqrt

import torch
from torch import Tensor, nn
from torch.nn import functional

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal
from parnassus.layers.dense import count_parameters
from parnassus.layers.normalisation import BatchNorm, LayerNorm, standardise
from parnassus.probability import standard_normal


def standardise_list(values: list[float], epsilon: float = 1e-5) -> list[float]:
    """(x − mean)/√(var + ε) of a list, in plain Python."""
    mean = sum(values) / len(values)
    variance = sum((x - mean) ** 2 for x in values) / len(values)
    return [(x - mean) / sqrt(variance + epsilon) for x in values]


def standardise_first_axis(x: Tensor) -> Tensor:
    """Standardise every list along the first axis in plain Python."""
    columns = [standardise_list(column.tolist()) for column in x.flatten(1).T]
    return torch.tensor(columns, dtype=x.dtype).T.reshape(x.shape)


@claim("C-08", "D1.6.7", "D1.6.8")
def normalisation_by_hand_agrees_with_torch() -> Evidence:
    """BN on 3×2 and 3×2×4, LN on 2×3 and 2×3×4: plain Python agrees with torch (Diehl sec. 1.6).

    On three axes torch's batch norm averages over the first two, unlike the notes' formula; layer norm over the
    last in both. Batch norm has two trainable parameters per feature, γ and β, and two running averages, which
    are stored but not trained.
    """
    flat, deep = 3 * standard_normal(3, 2) + 1, 3 * standard_normal(3, 2, 4, seed=1) + 1
    row, rows = 3 * standard_normal(2, 3, seed=2) + 1, 3 * standard_normal(2, 3, 4, seed=3) + 1
    library = nn.BatchNorm1d(4).double()
    pooled = standardise_first_axis(deep.flatten(0, 1)).reshape(deep.shape)
    lines = torch.tensor([standardise_list(line.tolist()) for line in rows.flatten(0, 1)], dtype=torch.float64)
    return all_of(
        batch_of_rows=close(standardise_first_axis(flat), nn.BatchNorm1d(2).double()(flat), atol=1e-12),
        module_of_rows=close(BatchNorm(2).double()(flat), standardise_first_axis(flat), atol=1e-12),
        batch_with_positions=close(pooled, library(deep.mT).mT, atol=1e-12),
        formula_of_the_notes_differs=greater_equal(
            (standardise_first_axis(deep) - library(deep.mT).mT).abs().max(), 0.1
        ),
        layer_of_rows=close(standardise_first_axis(row.T).T, functional.layer_norm(row, (3,)), atol=1e-12),
        layer_with_positions=close(lines.reshape(rows.shape), functional.layer_norm(rows, (4,)), atol=1e-12),
        module_with_positions=close(LayerNorm(4).double()(rows), lines.reshape(rows.shape), atol=1e-12),
        trainable=close(count_parameters(library), 2 * 4),
        stored_untrained=close(
            library.get_buffer("running_mean").numel() + library.get_buffer("running_var").numel(), 8
        ),
    )


@erratum("Z8.2", printed="h = φ(BN(Wx + b)) under the heading Layer Normalization", right="under Batch Normalization")
def only_batch_norm_cancels_the_bias() -> Correction:
    """Under layer norm the bias would have to cancel; it does not: LN(Wx + b) ≠ LN(Wx) (Zhao sec. 8)."""
    x, weight, bias = standard_normal(20, 5), standard_normal(5, 4, seed=1), standard_normal(4, seed=2)
    return Correction(
        printed=close(standardise(x @ weight + bias, (-1,)), standardise(x @ weight, (-1,)), atol=1e-3),
        corrected=all_of(
            batch_norm=close(standardise(x @ weight + bias, (0,)), standardise(x @ weight, (0,)), atol=1e-12),
            layer_norm_cancels_only_a_common_shift=close(
                standardise(x @ weight + 3.0, (-1,)), standardise(x @ weight, (-1,)), atol=1e-12
            ),
        ),
    )
