"""Claims about what a linear model cannot say (Zhao sec. 5)."""

import torch

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum
from parnassus.layers.activations import sigmoid
from parnassus.layers.claims.dense import normal
from parnassus.layers.linear_regression import linear_model

BASE = 1_000.0  # an income below which differences mean little
STEPS = torch.tensor([[0.0, 50_000.0], [1_000_000.0, 1_050_000.0]], dtype=torch.float64)  # two rises of the income


@claim("Z5.1")
def a_linear_model_answers_every_rise_alike() -> Evidence:
    """∂ŷ/∂x_k = w_k wherever one stands, so a feature always pushes one way, by the same amount (Zhao sec. 5)."""
    x, w, b = normal(200, 5), normal(5, seed=1), normal(1, seed=2)[0]
    h = 0.5
    secants = torch.stack([(linear_model(x + h * unit, w, b) - linear_model(x, w, b)) / h for unit in torch.eye(5)], 1)
    line = 1e-6 * STEPS
    return all_of(
        everywhere=close(secants, w.expand(200, 5), atol=1e-12),
        one_sign=close(secants.sign().std(0), 0.0),
        first_and_last_rise_count_alike=close(line.diff(dim=1)[0], line.diff(dim=1)[1], rtol=1e-12),
    )


@claim("Z5.1")
def the_logarithm_of_income_counts_the_first_rise_most() -> Evidence:
    """On log(income + c) the first 50,000 move the score 80 times as far as the step to 1.05 million (Zhao sec. 5)."""
    score = torch.log(STEPS + BASE)
    rise = score.diff(dim=1)[:, 0]
    chance = sigmoid(score - torch.log(torch.tensor(20_000.0)))
    rises = chance.diff(dim=1)[:, 0]
    return all_of(
        first=close(rise[0], 3.93183, atol=1e-5),
        last=close(rise[1], 0.0487427, atol=1e-6),
        ratio=close(rise[0] / rise[1], 80.7, atol=0.1),
        chances_too=at_least(rises[0] / rises[1], 500.0),
    )


@erratum(
    "Z5.1", printed="a logarithmic map of the outcome", right="a logistic map of the outcome, or a log of the input"
)
def the_outcome_needs_a_logistic_map() -> Correction:
    """Only the logistic map makes a chance of every score; a logarithm has none below 0 (Zhao sec. 5)."""
    scores = linear_model(normal(500, 3), 2 * normal(3, seed=1), normal(1, seed=2)[0])
    inside = [at_least(mapped, 0.0) for mapped in (scores.log(), sigmoid(scores))]
    below = [at_most(mapped, 1.0) for mapped in (scores.log(), sigmoid(scores))]
    printed, right = (all_of(not_negative=low, at_most_one=high) for low, high in zip(inside, below, strict=True))
    return Correction(printed=printed, corrected=right)
