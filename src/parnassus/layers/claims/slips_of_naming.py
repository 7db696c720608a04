"""Names that went wrong and have a number: a lost norm, one size under two names, a lost label (Diehl secs. 0, 1)."""

import torch
from torch import nn

from parnassus.atlas import Correction, all_of, at_least, close, erratum
from parnassus.layers.claims.dense import normal
from parnassus.layers.dense import mlp, parameter_count
from parnassus.layers.initialisation import xavier_normal
from parnassus.layers.linear_regression import LinearRegression
from parnassus.losses.classification import cross_entropy, one_hot, softmax
from parnassus.losses.norms import l1_norm, l2_norm
from parnassus.losses.regression import mean_power_error
from parnassus.losses.risk import empirical_risk
from parnassus.losses.squared import squared_error
from parnassus.optim.gradient_descent import steepest_descent
from parnassus.probability.divergences import cross_entropy_between


@erratum("D0.1", printed="|x| for x ∈ ℝ, and no line for ‖x‖", right="‖x‖ = √(Σ x_i²) for x ∈ ℝᵈ")
def absolute_values_are_not_a_length() -> Correction:
    """The list defines |x| alone, and the least slope of a unit step, −‖x‖, is no sum of those (Diehl sec. 0)."""
    slopes = normal(300, 6)
    steepest = torch.stack([steepest_descent(slope) @ slope for slope in slopes])
    leg = torch.tensor([3.0, -4.0], dtype=torch.float64)
    return Correction(
        printed=close(steepest, -l1_norm(slopes), rtol=1e-6),
        corrected=all_of(
            euclidean=close(steepest, -l2_norm(slopes), rtol=1e-12),
            three_and_four=close(l2_norm(leg), 5.0),
            torch_norm=close(l2_norm(slopes), torch.linalg.vector_norm(slopes, dim=1), rtol=1e-14),
        ),
    )


@erratum(
    "D1.0.12", printed="d₁ = 5 in the text and d_inner = 5 in the figures", right="one hidden layer of 5: d₁ = d_inner"
)
def two_names_are_one_layer() -> Correction:
    """Taken for two layers the sizes make a network of 51 numbers, not of the 21 in the figure (Diehl ex. 1.2)."""
    as_two, as_one = mlp((2, 5, 5, 1)), mlp((2, 5, 1))
    drawn = 2 * 5 + 5 * 1  # edges of the diagram
    return Correction(
        printed=all_of(edges=close(edges(as_two), drawn), numbers=close(parameter_count(as_two), 21)),
        corrected=all_of(edges=close(edges(as_one), drawn), numbers=close(parameter_count(as_one), 21)),
    )


@erratum("D1.0.12", printed="the vertical axis is called Product", right="it is the network's output f(x)")
def the_surface_is_no_product() -> Correction:
    """A product x₁x₂ grows fourfold when x doubles; without biases the network only doubles (Diehl ex. 1.2)."""
    torch.manual_seed(0)
    x = normal(200, 2)
    heights, doubled = [], []
    for _ in range(10):
        network = mlp((2, 5, 1), initialise=xavier_normal()).double()
        heights.append(network(x))
        doubled.append(network(2 * x))
    height = torch.cat(heights)
    return Correction(
        printed=close(torch.cat(doubled), 4 * height, rtol=1e-6),
        corrected=all_of(
            output=close(torch.cat(doubled), 2 * height, rtol=1e-12, atol=1e-13),
            a_product=close((2 * x).prod(1), 4 * x.prod(1), rtol=1e-12),
        ),
    )


@erratum("D1.3.4", printed="loss(f(x_i^train), y_i)", right="loss(f(x_i^train), y_i^train)")
def a_target_needs_its_set() -> Correction:
    """The notes number two lists of targets alike; with those of the test rows even the truth errs (Diehl sec. 1.3)."""
    truth = normal(3)
    train, test = normal(40, 3, seed=1), normal(40, 3, seed=2)
    of_train, of_test = train @ truth, test @ truth  # no noise: the truth makes no error
    model = LinearRegression.fit(train, of_train)

    def training_loss(targets: torch.Tensor) -> torch.Tensor:
        return mean_power_error(model.predict(train)[:, None], targets[:, None], power=2.0).mean()

    return Correction(
        printed=close(training_loss(of_test), 0.0, atol=1e-6),
        corrected=all_of(
            its_own_targets=close(training_loss(of_train), 0.0, atol=1e-24),
            the_training_loss=close(
                training_loss(of_train), empirical_risk(squared_error, model.predict, train, of_train), atol=1e-24
            ),
        ),
    )


@erratum("D1.4.8", "D1.4.6", printed="CE(p, q) = −log q_â, â not defined", right="CE(p, q) = −log q_î, p hot at î")
def the_hot_place_is_that_of_the_label() -> Correction:
    """The other place one could mean, where q itself is largest, is no loss: it never says wrong (Diehl sec. 1.4)."""
    logits, labels = 2 * normal(300, 5), torch.arange(300) % 5
    q = softmax(logits)
    loss = cross_entropy_between(one_hot(labels, 5).double(), q)
    favourite = -q.amax(1).log()
    right = q.argmax(1) == labels
    return Correction(
        printed=close(favourite, loss, rtol=1e-6),
        corrected=all_of(
            at_the_label=close(-q.gather(1, labels[:, None])[:, 0].log(), loss, rtol=1e-12),
            torch_loss=close(cross_entropy(logits, labels), loss, rtol=1e-12),
            alike_where_the_guess_is_right=close(favourite[right], loss[right], rtol=1e-12),
            too_kind_elsewhere=at_least((loss - favourite)[~right], 1e-6),
        ),
    )


def edges(network: nn.Module) -> int:
    """Lines of the diagram: weights that are no biases."""
    return sum(each.numel() for each in network.parameters() if each.ndim == 2)
