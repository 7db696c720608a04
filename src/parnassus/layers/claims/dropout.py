"""Claims about dropout and the average over thinned networks (book sec. 2.2, Diehl sec. 1.6, Zhao sec. 5)."""

import torch
from scipy.stats import binomtest
from torch import Tensor

from parnassus.atlas import (
    Correction,
    Evidence,
    accepts,
    all_of,
    claim,
    close,
    erratum,
    greater_equal,
    less_equal,
    raises,
)
from parnassus.layers.activations import relu
from parnassus.layers.classifier import dropout_classifier
from parnassus.layers.dense import count_parameters, mlp
from parnassus.layers.dropout import (
    ClassicalDropout,
    Dropout,
    all_masks,
    average_over_masks,
    drop_units,
    geometric_average_over_masks,
    mask_probabilities,
    sample_keep_mask,
)
from parnassus.losses.classification import softmax
from parnassus.probability import standard_normal


@claim("B2.2-5", "D1.6.1", "Z5.12")
def inverted_dropout_preserves_the_mean() -> Evidence:
    """Over all masks m ⊙ x/(1 − p) has mean x and variance x² p/(1 − p); evaluation is the identity (book sec. 2.2)."""
    x, p = standard_normal(10), 0.3
    mean = average_over_masks(lambda masked: masked / (1 - p), x, p)
    square = average_over_masks(lambda masked: (masked / (1 - p)).square(), x, p)
    return all_of(
        mean=close(mean, x, atol=1e-13),
        variance=close(square - mean.square(), x.square() * p / (1 - p), atol=1e-13),
        evaluation=close(Dropout(p).eval()(x), x),
        rate_zero_is_identity=close(Dropout(0.0)(x), x),
        mean_near_rate_one=close(average_over_masks(lambda masked: masked / 0.01, x, 0.99), x, atol=1e-9),
        rate_one_raises=raises(ValueError, lambda: Dropout(1.0)),
    )


@claim("B2.2-5")
def classical_and_inverted_dropout_match_in_expectation() -> Evidence:
    """Scaling by 1/(1 − p) in training or 1 − p in evaluation: each matches its own expectation (book sec. 2.2)."""
    x, weight, p = standard_normal(10), standard_normal(10, 4, seed=1), 0.4
    torch.manual_seed(0)
    copies = x.expand(100_000, -1)
    classical, inverted = ClassicalDropout(p), Dropout(p)
    thinned, rescaled = classical(copies) @ weight, inverted(copies) @ weight
    error = thinned.std(0) / copies.shape[0] ** 0.5
    return all_of(
        classical_exactly=close(
            average_over_masks(lambda m: m @ weight, x, p), classical.eval()(x) @ weight, atol=1e-13
        ),
        inverted_exactly=close(
            average_over_masks(lambda m: m @ weight / (1 - p), x, p), inverted.eval()(x) @ weight, atol=1e-13
        ),
        classical_by_sampling=less_equal((thinned.mean(0) - (1 - p) * x @ weight).abs() / error, 4.5),
        inverted_by_sampling=less_equal((rescaled.mean(0) - x @ weight).abs() * (1 - p) / error, 4.5),
    )


@claim("B2.2-5", "D1.6.1")
def units_are_dropped_independently() -> Evidence:
    """The number of zeros is binomial, units are independent, and zeros pass no gradient (Diehl sec. 1.6)."""
    torch.manual_seed(0)
    mask = sample_keep_mask(torch.ones(50_000, 2), 0.2)
    dropped = (mask == 0).sum(0).tolist()
    both = int((mask == 0).all(1).sum())
    x = torch.ones(1_000, requires_grad=True)
    y = drop_units(x, 0.2)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    return all_of(
        first_unit=accepts(binomtest(dropped[0], 50_000, 0.2).pvalue),
        second_unit=accepts(binomtest(dropped[1], 50_000, 0.2).pvalue),
        both_units=accepts(binomtest(both, 50_000, 0.04).pvalue),
        no_gradient_where_dropped=close(gradient[y == 0], 0.0),
        scaled_gradient_where_kept=close(gradient[y != 0], 1.25, rtol=1e-6),
    )


@erratum(
    "D1.6.1",
    printed="20 % of the units are set to 0",
    right="each with probability 20 %; the others are scaled by 1.25",
)
def a_fifth_is_dropped_only_on_average() -> Correction:
    """The number of zeros among 128 units has mean 25.6 and std 4.5; kept units are scaled (Diehl sec. 1.6)."""
    torch.manual_seed(0)
    y = Dropout(0.2)(torch.ones(20_000, 128, dtype=torch.float64))
    zeros = (y == 0).double().sum(1)
    return Correction(
        printed=all_of(exactly_a_fifth=close(zeros, 0.2 * 128, atol=0.5), kept_are_unchanged=close(y[y != 0], 1.0)),
        corrected=all_of(
            mean=close(zeros.mean(), 25.6, atol=0.15),
            standard_deviation=close(zeros.std(), (128 * 0.2 * 0.8) ** 0.5, rtol=0.03),
            kept_are_rescaled=close(y[y != 0], 1.25, rtol=1e-12),
            mean_preserved=close(y.mean(), 1.0, atol=0.002),
        ),
    )


@claim("B2.2-6", "D1.6.2")
def dropout_adds_no_parameters() -> Evidence:
    """Dropout adds no parameters: 669,706 in the book, 101,770 for 784-128-10 (book sec. 2.2, Diehl sec. 1.6)."""
    return all_of(
        book=close(count_parameters(dropout_classifier(784, 10)), 669_706),
        notes=close(count_parameters(dropout_classifier(784, 10, hidden=(128,), rates=(0.2,))), 101_770),
    )


@erratum("B2.2-6", printed="the test loop of chapter 1, without eval()", right="model.eval() before testing")
def without_eval_test_results_are_random() -> Correction:
    """In training mode the network with dropout gives different outputs at each evaluation (book sec. 2.2)."""
    torch.manual_seed(0)
    model, x = dropout_classifier(784, 10), torch.randn(50, 784)
    printed = close(model(x), model(x))
    model.eval()
    return Correction(printed=printed, corrected=close(model(x), model(x)))


@claim("B2.2-7")
def one_scaled_pass_averages_linear_networks() -> Evidence:
    """For a linear map the mean over all 2ⁿ masks is one pass with weights scaled by 1 − p (book sec. 2.2)."""
    x, weight, bias = standard_normal(12), standard_normal(12, 5, seed=1), standard_normal(5, seed=2)
    parts = {
        f"p = {p}": close(
            average_over_masks(lambda masked: masked @ weight + bias, x, p), x @ ((1 - p) * weight) + bias, atol=1e-12
        )
        for p in (0.1, 0.5, 0.8)
    }
    return all_of(**parts)


@claim("B2.2-7")
def one_scaled_pass_is_the_geometric_mean_of_softmax_networks() -> Evidence:
    """softmax(½ W x + b) is the renormalised geometric mean over all 2ⁿ masks, not the mean (book sec. 2.2)."""
    x, weight, bias = standard_normal(12), standard_normal(12, 5, seed=1), standard_normal(5, seed=2)

    def logits(masked: Tensor) -> Tensor:
        return masked @ weight + bias

    scaled = softmax(logits(0.5 * x))
    all_predictions = softmax(logits(all_masks(12).double() * x))
    product = all_predictions.log().mean(0).exp()  # all masks are equally likely at p = ½
    weighted = geometric_average_over_masks(logits, x, 0.2)
    return all_of(
        geometric=close(product / product.sum(), scaled, atol=1e-12),
        function=close(geometric_average_over_masks(logits, x, 0.5), scaled, atol=1e-12),
        weighted_by_mask_probability=close(weighted, softmax(logits(0.8 * x)), atol=1e-12),
        not_the_mean=greater_equal((all_predictions.mean(0) - scaled).abs().max(), 0.05),
    )


@claim("B2.2-7")
def one_scaled_pass_approximates_deep_averages() -> Evidence:
    """With a nonlinearity one scaled pass approximates the mean over masks, but is not equal to it (book sec. 2.2)."""
    torch.manual_seed(0)
    network = mlp((10, 32, 32, 4), activation=relu).double()
    deviations, spreads = [], []
    for x in standard_normal(30, 10, seed=3):
        thinned = network(all_masks(10).double() * x / 0.8)
        probabilities = mask_probabilities(all_masks(10).double(), 0.2)
        deviations.append((probabilities @ thinned - network(x)[None]).norm())
        spreads.append((probabilities @ (thinned - network(x)).square().sum(1)).sqrt())
    ratio = torch.stack(deviations) / torch.stack(spreads)
    return all_of(
        closer_than_a_single_mask=less_equal(ratio, 0.6),
        much_closer_on_average=less_equal(ratio.mean(), 0.4),
        not_equal=greater_equal(ratio, 0.01),
    )
