"""Claims about the limits of linear models (Zhao sec. 5)."""

import torch

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.layers.activations import sigmoid
from parnassus.layers.linear_models.linear_regression import linear_model
from parnassus.probability import standard_normal

BASE = 1_000.0  # offset c of the logarithm
STEPS = torch.tensor([[0.0, 50_000.0], [1_000_000.0, 1_050_000.0]], dtype=torch.float64)  # two increases of income


@claim("Z5.1")
def a_linear_model_has_constant_effects() -> Evidence:
    """∂ŷ/∂x_k = w_k everywhere: the effect of a feature has constant sign and size (Zhao sec. 5)."""
    x, w, b = standard_normal(200, 5), standard_normal(5, seed=1), standard_normal(1, seed=2)[0]
    h = 0.5
    secants = torch.stack([(linear_model(x + h * unit, w, b) - linear_model(x, w, b)) / h for unit in torch.eye(5)], 1)
    line = 1e-6 * STEPS
    return all_of(
        constant_derivative=close(secants, w.expand(200, 5), atol=1e-12),
        constant_sign=close(secants.sign().std(0), 0.0),
        equal_effect_of_both_increases=close(line.diff(dim=1)[0], line.diff(dim=1)[1], rtol=1e-12),
    )


@claim("Z5.1")
def log_income_weights_the_first_increase_most() -> Evidence:
    """log(income + c) changes 80 times as much from 0 to 50,000 as from 1 to 1.05 million (Zhao sec. 5)."""
    score = torch.log(STEPS + BASE)
    increase = score.diff(dim=1)[:, 0]
    probability = sigmoid(score - torch.log(torch.tensor(20_000.0)))
    probability_increase = probability.diff(dim=1)[:, 0]
    return all_of(
        first=close(increase[0], 3.93183, atol=1e-5),
        last=close(increase[1], 0.0487427, atol=1e-6),
        ratio=close(increase[0] / increase[1], 80.7, atol=0.1),
        probability_ratio=greater_equal(probability_increase[0] / probability_increase[1], 500.0),
    )


@erratum(
    "Z5.1", printed="a logarithmic map of the outcome", right="a logistic map of the outcome, or a log of the input"
)
def the_outcome_needs_a_logistic_map() -> Correction:
    """Only the logistic function maps every score to a probability; log is undefined below 0 (Zhao sec. 5)."""
    scores = linear_model(standard_normal(500, 3), 2 * standard_normal(3, seed=1), standard_normal(1, seed=2)[0])
    not_negative = [greater_equal(mapped, 0.0) for mapped in (scores.log(), sigmoid(scores))]
    at_most_one = [less_equal(mapped, 1.0) for mapped in (scores.log(), sigmoid(scores))]
    printed, right = (
        all_of(not_negative=low, at_most_one=high) for low, high in zip(not_negative, at_most_one, strict=True)
    )
    return Correction(printed=printed, corrected=right)
