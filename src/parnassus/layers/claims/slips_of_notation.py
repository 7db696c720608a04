"""Slips of notation that have a number: read as printed, the formulas give something else (Zhao secs. 3 and 4)."""

import torch
from torch import Tensor

from parnassus.atlas import Correction, all_of, close, erratum
from parnassus.layers.linear_regression import linear_model
from parnassus.losses.classification import softmax
from parnassus.losses.squared import half_mean_squared_error, half_squared_error


def rows() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """X, y and some w and b that do not fit them."""
    source = torch.Generator().manual_seed(0)
    x, y, w = (torch.randn(*shape, generator=source, dtype=torch.float64) for shape in ((8, 3), (8,), (3,)))
    return x, y, w, torch.tensor(0.5, dtype=torch.float64)


@erratum("Z3.1", printed="ŷ = wᵀx + b = Xw + b", right="ŷᵢ = wᵀxᵢ + b, and all of them at once Xw + b")
def one_prediction_is_not_all_of_them() -> Correction:
    """The printed chain sets a number equal to a vector, which holds only where all predictions agree (Zhao eq. 5)."""
    x, _, w, b = rows()
    every = linear_model(x, w, b)
    return Correction(
        printed=close(every, linear_model(x[0], w, b), rtol=1e-12),
        corrected=close(every, torch.stack([w @ row + b for row in x]), atol=1e-14),
    )


@erratum("Z3.3", printed="L⁽ⁱ⁾(w, b) = 1/n Σᵢ l⁽ⁱ⁾(w, b)", right="L(w, b) = 1/n Σᵢ l⁽ⁱ⁾(w, b)")
def the_training_loss_has_no_example() -> Correction:
    """L is one number for the whole set; with a superscript it would be the loss of example i (Zhao eq. 7)."""
    x, y, w, b = rows()
    each = half_squared_error(linear_model(x, w, b), y)
    whole = half_mean_squared_error(linear_model(x, w, b), y)
    return Correction(
        printed=close(each, whole, rtol=1e-12), corrected=close(sum(each.tolist()) / len(x), whole, rtol=1e-12)
    )


@erratum("Z4.4", printed="exp(o_i) / Σ_i exp(o_i)", right="exp(o_i) / Σ_j exp(o_j)")
def the_sum_of_softmax_needs_an_index_of_its_own() -> Correction:
    """With i above and below, the sum stands for one term and every output is 1 (Zhao sec. 4)."""
    o = rows()[0]
    exponentials = o.exp()
    shared = exponentials / torch.einsum("ni->ni", exponentials)  # the i below is the i above
    apart = exponentials / torch.einsum("nj->n", exponentials)[:, None]
    return Correction(
        printed=close(shared.sum(-1), 1.0, atol=1e-12),
        corrected=all_of(
            sums_to_one=close(apart.sum(-1), 1.0, atol=1e-14), softmax=close(softmax(o), apart, atol=1e-14)
        ),
    )
