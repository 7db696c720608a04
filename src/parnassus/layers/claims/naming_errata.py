"""Errata of names with numerical consequences: an undefined norm, a size with two names, a label (Diehl secs. 0, 1)."""

import torch
from torch import nn

from parnassus.atlas import Correction, all_of, close, erratum, greater_equal
from parnassus.layers.dense import count_parameters, mlp
from parnassus.layers.initialisation import xavier_normal
from parnassus.layers.linear_models.linear_regression import LinearRegression
from parnassus.losses.classification import cross_entropy, one_hot, softmax
from parnassus.losses.norms import l1_norm, l2_norm
from parnassus.losses.regression import mean_power_error, squared_error
from parnassus.losses.risk import empirical_risk
from parnassus.optim.optimisers.gradient_descent import steepest_descent
from parnassus.probability import standard_normal
from parnassus.probability.divergences.entropy import cross_entropy_between


@erratum("D0.1", printed="|x| for x ∈ ℝ, and no line for ‖x‖", right="‖x‖ = √(Σ x_i²) for x ∈ ℝᵈ")
def absolute_values_do_not_define_a_norm() -> Correction:
    """The list defines only |x|; the steepest unit step has slope −‖x‖₂, not −Σ|x_i| (Diehl sec. 0)."""
    gradients = standard_normal(300, 6)
    steepest = torch.stack([steepest_descent(gradient) @ gradient for gradient in gradients])
    vector = torch.tensor([3.0, -4.0], dtype=torch.float64)
    return Correction(
        printed=close(steepest, -l1_norm(gradients), rtol=1e-6),
        corrected=all_of(
            euclidean_norm=close(steepest, -l2_norm(gradients), rtol=1e-12),
            norm_of_3_4=close(l2_norm(vector), 5.0),
            torch_norm=close(l2_norm(gradients), torch.linalg.vector_norm(gradients, dim=1), rtol=1e-14),
        ),
    )


@erratum(
    "D1.0.12",
    printed="d₁ = 5 in the text and d_inner = 5 in the figures",
    right="one hidden layer of 5 units: d₁ = d_inner",
)
def two_names_denote_one_layer() -> Correction:
    """Read as two layers, the sizes give 51 parameters instead of the 21 of the figure (Diehl ex. 1.2)."""
    two_layers, one_layer = mlp((2, 5, 5, 1)), mlp((2, 5, 1))
    edges_in_figure = 2 * 5 + 5 * 1
    return Correction(
        printed=all_of(
            edges=close(count_edges(two_layers), edges_in_figure), parameters=close(count_parameters(two_layers), 21)
        ),
        corrected=all_of(
            edges=close(count_edges(one_layer), edges_in_figure), parameters=close(count_parameters(one_layer), 21)
        ),
    )


@erratum("D1.0.12", printed="the vertical axis is labelled Product", right="it is the network's output f(x)")
def the_surface_is_not_a_product() -> Correction:
    """The product x₁x₂ quadruples when x doubles; a network without biases only doubles (Diehl ex. 1.2)."""
    torch.manual_seed(0)
    x = standard_normal(200, 2)
    outputs, doubled = [], []
    for _ in range(10):
        network = mlp((2, 5, 1), initialise=xavier_normal()).double()
        outputs.append(network(x))
        doubled.append(network(2 * x))
    output = torch.cat(outputs)
    return Correction(
        printed=close(torch.cat(doubled), 4 * output, rtol=1e-6),
        corrected=all_of(
            output=close(torch.cat(doubled), 2 * output, rtol=1e-12, atol=1e-13),
            product=close((2 * x).prod(1), 4 * x.prod(1), rtol=1e-12),
        ),
    )


@erratum("D1.3.4", printed="loss(f(x_i^train), y_i)", right="loss(f(x_i^train), y_i^train)")
def targets_belong_to_the_training_set() -> Correction:
    """With the targets of the test set even the true function has a positive training loss (Diehl sec. 1.3)."""
    truth = standard_normal(3)
    train, test = standard_normal(40, 3, seed=1), standard_normal(40, 3, seed=2)
    y_train, y_test = train @ truth, test @ truth  # noiseless: the true function has zero error
    model = LinearRegression.fit(train, y_train)

    def training_loss(targets: torch.Tensor) -> torch.Tensor:
        return mean_power_error(model.predict(train)[:, None], targets[:, None], power=2.0).mean()

    return Correction(
        printed=close(training_loss(y_test), 0.0, atol=1e-6),
        corrected=all_of(
            training_targets=close(training_loss(y_train), 0.0, atol=1e-24),
            empirical_risk=close(
                training_loss(y_train), empirical_risk(squared_error, model.predict, train, y_train), atol=1e-24
            ),
        ),
    )


@erratum("D1.4.8", "D1.4.6", printed="CE(p, q) = −log q_â, â not defined", right="CE(p, q) = −log q_î, p one-hot at î")
def the_one_hot_index_is_that_of_the_label() -> Correction:
    """Read as the index of the largest q, â would give a loss that ignores misclassification (Diehl sec. 1.4)."""
    logits, labels = 2 * standard_normal(300, 5), torch.arange(300) % 5
    q = softmax(logits)
    loss = cross_entropy_between(one_hot(labels, 5).double(), q)
    nll_of_prediction = -q.amax(1).log()
    is_correct = q.argmax(1) == labels
    return Correction(
        printed=close(nll_of_prediction, loss, rtol=1e-6),
        corrected=all_of(
            at_label=close(-q.gather(1, labels[:, None])[:, 0].log(), loss, rtol=1e-12),
            torch_loss=close(cross_entropy(logits, labels), loss, rtol=1e-12),
            equal_where_prediction_is_correct=close(nll_of_prediction[is_correct], loss[is_correct], rtol=1e-12),
            smaller_otherwise=greater_equal((loss - nll_of_prediction)[~is_correct], 1e-6),
        ),
    )


def count_edges(network: nn.Module) -> int:
    """Edges of the diagram: weights without biases."""
    return sum(weight.numel() for weight in network.parameters() if weight.ndim == 2)
