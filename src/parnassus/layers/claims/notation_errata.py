"""Errata of notation that change the value of a formula (Zhao secs. 3 and 4)."""

from math import log, pi

import torch
from torch import Tensor
from torch.distributions import Normal

from parnassus.atlas import Correction, all_of, close, erratum, greater_equal, less_equal
from parnassus.layers.claims.softmax_regression import load_tiny_images
from parnassus.layers.linear_models.linear_regression import LinearRegression, linear_model, linear_sgd_step
from parnassus.losses.classification import one_hot, softmax
from parnassus.losses.likelihood import normal_nll
from parnassus.losses.regression import half_mean_squared_error, half_squared_error, squared_error
from parnassus.losses.risk import empirical_risk, expected_risk
from parnassus.optim.training.minibatches import fixed_partition_batches


def regression_problem() -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """X, y and parameters w and b that do not fit them."""
    generator = torch.Generator().manual_seed(0)
    x, y, w = (torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in ((8, 3), (8,), (3,)))
    return x, y, w, torch.tensor(0.5, dtype=torch.float64)


@erratum("Z3.1", printed="ŷ = wᵀx + b = Xw + b", right="ŷᵢ = wᵀxᵢ + b for one example, ŷ = Xw + b for all")
def one_prediction_is_not_the_vector_of_predictions() -> Correction:
    """The printed chain equates a scalar with a vector, true only if all predictions agree (Zhao eq. 5)."""
    x, _, w, b = regression_problem()
    predictions = linear_model(x, w, b)
    return Correction(
        printed=close(predictions, linear_model(x[0], w, b), rtol=1e-12),
        corrected=close(predictions, torch.stack([w @ row + b for row in x]), atol=1e-14),
    )


@erratum("Z3.3", printed="L⁽ⁱ⁾(w, b) = 1/n Σᵢ l⁽ⁱ⁾(w, b)", right="L(w, b) = 1/n Σᵢ l⁽ⁱ⁾(w, b)")
def the_training_loss_has_no_example_index() -> Correction:
    """L is one value for the whole training set; the superscript makes it the loss of example i (Zhao eq. 7)."""
    x, y, w, b = regression_problem()
    each = half_squared_error(linear_model(x, w, b), y)
    mean_loss = half_mean_squared_error(linear_model(x, w, b), y)
    return Correction(
        printed=close(each, mean_loss, rtol=1e-12), corrected=close(sum(each.tolist()) / len(x), mean_loss, rtol=1e-12)
    )


@erratum("Z4.4", printed="exp(o_i) / Σ_i exp(o_i)", right="exp(o_i) / Σ_j exp(o_j)")
def the_softmax_sum_needs_its_own_index() -> Correction:
    """With i in numerator and denominator the sum has a single term and every output is 1 (Zhao sec. 4)."""
    o = regression_problem()[0]
    exponentials = o.exp()
    shared_index = exponentials / torch.einsum("ni->ni", exponentials)  # i shared by numerator and denominator
    own_index = exponentials / torch.einsum("nj->n", exponentials)[:, None]
    return Correction(
        printed=close(shared_index.sum(-1), 1.0, atol=1e-12),
        corrected=all_of(
            sums_to_one=close(own_index.sum(-1), 1.0, atol=1e-14), softmax=close(softmax(o), own_index, atol=1e-14)
        ),
    )


@erratum("Z3.4", printed="Σ over i ∈ β_i, divided by |β|", right="Σ over i ∈ B_t, divided by |B_t|: batch t, example i")
def the_batch_needs_its_own_index() -> Correction:
    """With index i for both, a step uses example i only if it lies in batch i: two of twelve here (Zhao sec. 3)."""
    generator = torch.Generator().manual_seed(0)
    x, y, w = (torch.randn(*shape, generator=generator, dtype=torch.float64) for shape in ((12, 3), (12,), (3,)))
    b = torch.tensor(0.5, dtype=torch.float64)
    batches = list(fixed_partition_batches(12, 4, generator=generator))
    literal = [int(i) for number, rows in enumerate(batches) for i in rows if int(i) == number]
    residual = linear_model(x, w, b) - y
    step = {
        "printed": w - 0.1 / 4 * sum((residual[i] * x[i] for i in literal), torch.zeros_like(w)),
        "right": w - 0.1 / 4 * sum((residual[i] * x[i] for i in batches[0]), torch.zeros_like(w)),
    }
    torch_step, _ = linear_sgd_step(w, b, x[batches[0]], y[batches[0]], learning_rate=0.1)
    return Correction(
        printed=all_of(batch_size=close(len(literal), 4), step=close(step["printed"], torch_step, rtol=1e-6)),
        corrected=all_of(batch_size=close(len(batches[0]), 4), step=close(step["right"], torch_step, atol=1e-14)),
    )


@erratum("Z3.8", printed="−log(y|X)", right="−log P(y|X)")
def the_log_likelihood_needs_a_probability() -> Correction:
    """Without P the printed term is the logarithm of the targets, undefined for negative ones (Zhao sec. 3)."""
    x, y, w, b = regression_problem()
    likelihood = normal_nll(linear_model(x, w, b), y, sigma=1.0).sum()
    return Correction(
        printed=close(-y.log().sum(), likelihood, rtol=1e-6),
        corrected=all_of(
            negative_log_density=close(-Normal(linear_model(x, w, b), 1.0).log_prob(y).sum(), likelihood, rtol=1e-12),
            negative_targets=greater_equal((y < 0).sum(), 2),
        ),
    )


@erratum("Z3.8", printed="Σ ½ log(2πσ²) + (y − ŷ)²/(2σ²)", right="Σ [½ log(2πσ²) + (y − ŷ)²/(2σ²)]")
def the_log_likelihood_sum_needs_brackets() -> Correction:
    """Without brackets the sum covers only the constants, and one squared error is added (Zhao sec. 3)."""
    x, y, w, b = regression_problem()
    sigma = 0.7
    squares = (y - linear_model(x, w, b)).square() / (2 * sigma**2)
    constant = log(2 * pi * sigma**2) / 2
    nll = normal_nll(linear_model(x, w, b), y, sigma=sigma).sum()
    return Correction(
        printed=close(len(y) * constant + squares, nll, rtol=1e-6),  # for every choice of the free index i
        corrected=close((constant + squares).sum(), nll, rtol=1e-12),
    )


@erratum("Z3.10", printed="l(xᵢ, yᵢ, f(x)ᵢ)", right="l(xᵢ, yᵢ, f(xᵢ))")
def the_index_belongs_to_the_input() -> Correction:
    """f(x) at a single x, compared with all targets, is the error of a constant predictor (Zhao sec. 3)."""
    x, y, _, _ = regression_problem()
    model = LinearRegression.fit(x, y)
    errors = torch.stack([squared_error(model.predict(x[i : i + 1]), y[i : i + 1])[0] for i in range(len(x))])
    constant_errors = torch.stack(
        [squared_error(model.predict(x[i : i + 1]).expand(len(y)), y).mean() for i in range(8)]
    )
    risk = empirical_risk(squared_error, model.predict, x, y)
    return Correction(
        printed=close(constant_errors, risk, rtol=0.05),
        corrected=all_of(
            mean_over_examples=close(errors.mean(), risk, rtol=1e-12),
            constants_are_worse=greater_equal(constant_errors, float(risk)),
        ),
    )


@erratum("Z3.11", printed="E_{(x,y)∼P[l(x, y, f(x))]} and ∬ l(x, yf(x)) p", right="E_{(x,y)∼P}[l(x, y, f(x))] = ∬ l p")
def the_expected_loss_has_three_arguments() -> Correction:
    """With the bracket in the subscript no average is taken; without the comma y multiplies f(x) (Zhao sec. 3)."""

    def density(x: Tensor, y: Tensor) -> Tensor:
        joint: Tensor = (Normal(0.0, 1.0).log_prob(x) + Normal(2 * x, 0.5).log_prob(y)).exp()
        return joint

    def monte_carlo_mean(integrand: Tensor) -> Tensor:
        """Monte Carlo estimate: the mean of the integrand over the samples."""
        return integrand.mean()

    generator = torch.Generator().manual_seed(0)
    x = torch.randn(400_000, generator=generator, dtype=torch.float64)
    y = 2 * x + 0.5 * torch.randn(400_000, generator=generator, dtype=torch.float64)
    f = 1.5 * x
    exact = expected_risk(squared_error, lambda at: 1.5 * at, density, x_range=(-7.0, 7.0), y_range=(-18.0, 18.0))
    return Correction(
        printed=all_of(
            bracket_in_subscript=close(monte_carlo_mean(torch.ones_like(x)), exact, rtol=0.05),
            missing_comma=close(monte_carlo_mean((x - y * f).square()), exact, rtol=0.05),
        ),
        corrected=all_of(
            monte_carlo=close(monte_carlo_mean((y - f).square()), exact, rtol=0.02),
            closed_form=close(exact, 0.5**2 + 0.5**2, atol=1e-9),
        ),
    )


@erratum(
    "Z4.3", printed="the outputs σᵢ need not be in [0, 1] or sum to 1", right="the outputs oᵢ need not; softmax(o) must"
)
def scores_are_not_probabilities() -> Correction:
    """σ denotes the output of an activation, for which both statements are false (Zhao sec. 4)."""
    x, labels = load_tiny_images()
    y = one_hot(labels, 3).double()
    scores = torch.stack([LinearRegression.fit(x, y[:, k]).predict(x) for k in range(3)], 1)
    probabilities = softmax(scores)
    twice = softmax(probabilities)  # a loss that expects scores applies softmax again
    return Correction(
        printed=greater_equal((probabilities - probabilities.clamp(0, 1)).abs().max(), 0.05),
        corrected=all_of(
            scores_leave_the_unit_interval=greater_equal((scores - scores.clamp(0, 1)).abs().max(), 0.05),
            softmax_sums_to_one=close(probabilities.sum(1), 1.0, atol=1e-14),
            softmax_twice_is_bounded=less_equal(twice.amax(1), 0.577),  # at most e/(e + 2) for any scores
        ),
    )
