"""Slips of notation that have a number: read as printed, the formulas give something else (Zhao secs. 3 and 4)."""

from math import log, pi

import torch
from torch import Tensor
from torch.distributions import Normal

from parnassus.atlas import Correction, all_of, at_least, at_most, close, erratum
from parnassus.layers.claims.softmax_regression import tiny_rows
from parnassus.layers.linear_regression import LinearRegression, linear_model, linear_sgd_step
from parnassus.losses.classification import one_hot, softmax
from parnassus.losses.likelihood import normal_nll
from parnassus.losses.risk import empirical_risk, expected_risk
from parnassus.losses.squared import half_mean_squared_error, half_squared_error, squared_error
from parnassus.optim.minibatches import partition_once


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


@erratum("Z3.4", printed="Σ over i ∈ β_i, divided by |β|", right="Σ over i ∈ B_t, divided by |B_t|: batch t, example i")
def the_batch_has_a_number_of_its_own() -> Correction:
    """With i as both, a step takes example i only if it lies in batch i: here two of twelve (Zhao sec. 3)."""
    source = torch.Generator().manual_seed(0)
    x, y, w = (torch.randn(*shape, generator=source, dtype=torch.float64) for shape in ((12, 3), (12,), (3,)))
    b = torch.tensor(0.5, dtype=torch.float64)
    batches = list(partition_once(12, 4, generator=source))
    literal = [int(i) for number, rows in enumerate(batches) for i in rows if int(i) == number]
    residual = linear_model(x, w, b) - y
    step = {
        "printed": w - 0.1 / 4 * sum((residual[i] * x[i] for i in literal), torch.zeros_like(w)),
        "right": w - 0.1 / 4 * sum((residual[i] * x[i] for i in batches[0]), torch.zeros_like(w)),
    }
    torch_step, _ = linear_sgd_step(w, b, x[batches[0]], y[batches[0]], rate=0.1)
    return Correction(
        printed=all_of(a_batch_of_four=close(len(literal), 4), the_step=close(step["printed"], torch_step, rtol=1e-6)),
        corrected=all_of(
            a_batch_of_four=close(len(batches[0]), 4), the_step=close(step["right"], torch_step, atol=1e-14)
        ),
    )


@erratum("Z3.8", printed="−log(y|X)", right="−log P(y|X)")
def a_surprise_needs_a_probability() -> Correction:
    """What is left without P is the logarithm of the targets, which half of them do not have (Zhao sec. 3)."""
    x, y, w, b = rows()
    likelihood = normal_nll(linear_model(x, w, b), y, sigma=1.0).sum()
    return Correction(
        printed=close(-y.log().sum(), likelihood, rtol=1e-6),
        corrected=all_of(
            of_the_density=close(-Normal(linear_model(x, w, b), 1.0).log_prob(y).sum(), likelihood, rtol=1e-12),
            targets_without_a_logarithm=at_least((y < 0).sum(), 2),
        ),
    )


@erratum("Z3.8", printed="Σ ½ log(2πσ²) + (y − ŷ)²/(2σ²)", right="Σ [½ log(2πσ²) + (y − ŷ)²/(2σ²)]")
def the_sum_needs_its_brackets() -> Correction:
    """A sum reaches to the next plus: without brackets only the constants add up, and one square (Zhao sec. 3)."""
    x, y, w, b = rows()
    sigma = 0.7
    squares = (y - linear_model(x, w, b)).square() / (2 * sigma**2)
    constant = log(2 * pi * sigma**2) / 2
    whole = normal_nll(linear_model(x, w, b), y, sigma=sigma).sum()
    return Correction(
        printed=close(len(y) * constant + squares, whole, rtol=1e-6),  # whichever example the free i names
        corrected=close((constant + squares).sum(), whole, rtol=1e-12),
    )


@erratum("Z3.10", printed="l(xᵢ, yᵢ, f(x)ᵢ)", right="l(xᵢ, yᵢ, f(xᵢ))")
def the_index_belongs_to_the_argument() -> Correction:
    """f(x) at one x is one answer: held against all targets it is a constant predictor's error (Zhao sec. 3)."""
    x, y, _, _ = rows()
    model = LinearRegression.fit(x, y)
    every = torch.stack([squared_error(model.predict(x[i : i + 1]), y[i : i + 1])[0] for i in range(len(x))])
    one_for_all = torch.stack([squared_error(model.predict(x[i : i + 1]).expand(len(y)), y).mean() for i in range(8)])
    whole = empirical_risk(squared_error, model.predict, x, y)
    return Correction(
        printed=close(one_for_all, whole, rtol=0.05),
        corrected=all_of(
            row_by_row=close(every.mean(), whole, rtol=1e-12),
            no_constant_is_as_good=at_least(one_for_all, float(whole)),
        ),
    )


@erratum("Z3.11", printed="E_{(x,y)∼P[l(x, y, f(x))]} and ∬ l(x, yf(x)) p", right="E_{(x,y)∼P}[l(x, y, f(x))] = ∬ l p")
def the_expected_loss_has_three_arguments() -> Correction:
    """With the bracket below, nothing is averaged and 1 is left; without the comma y is a factor (Zhao sec. 3)."""

    def density(x: Tensor, y: Tensor) -> Tensor:
        law: Tensor = (Normal(0.0, 1.0).log_prob(x) + Normal(2 * x, 0.5).log_prob(y)).exp()
        return law

    def risk_of(integrand: Tensor) -> Tensor:
        """The plain average over draws of what stands under the integral."""
        return integrand.mean()

    source = torch.Generator().manual_seed(0)
    x = torch.randn(400_000, generator=source, dtype=torch.float64)
    y = 2 * x + 0.5 * torch.randn(400_000, generator=source, dtype=torch.float64)
    f = 1.5 * x
    exact = expected_risk(squared_error, lambda at: 1.5 * at, density, x_range=(-7.0, 7.0), y_range=(-18.0, 18.0))
    return Correction(
        printed=all_of(
            nothing_averaged=close(risk_of(torch.ones_like(x)), exact, rtol=0.05),
            no_comma=close(risk_of((x - y * f).square()), exact, rtol=0.05),
        ),
        corrected=all_of(
            by_draws=close(risk_of((y - f).square()), exact, rtol=0.02),
            by_hand=close(exact, 0.5**2 + 0.5**2, atol=1e-9),
        ),
    )


@erratum(
    "Z4.3", printed="the outputs σᵢ need not be in [0, 1] or sum to 1", right="the outputs oᵢ need not; softmax(o) must"
)
def it_is_the_scores_that_are_no_chances() -> Correction:
    """σ is what a squashed output is called, and that does all the two bullets deny (Zhao sec. 4)."""
    x, labels = tiny_rows()
    y = one_hot(labels, 3).double()
    scores = torch.stack([LinearRegression.fit(x, y[:, kind]).predict(x) for kind in range(3)], 1)
    squashed = softmax(scores)
    again = softmax(squashed)  # a loss that takes scores squashes once more
    return Correction(
        printed=at_least((squashed - squashed.clamp(0, 1)).abs().max(), 0.05),
        corrected=all_of(
            scores_leave_the_unit_interval=at_least((scores - scores.clamp(0, 1)).abs().max(), 0.05),
            squashed_never_do=close(squashed.sum(1), 1.0, atol=1e-14),
            squashed_twice_all_is_alike=at_most(again.amax(1), 0.577),  # e/(e + 2), however sure the scores
        ),
    )
