"""Claims about penalties on the code and about autoencoders without them (book sec. 4.4)."""

from functools import partial

import torch
from torch import Tensor, nn

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal
from parnassus.data import load_digits
from parnassus.latent.autoencoders.autoencoder import Autoencoder
from parnassus.latent.autoencoders.penalties import (
    Penalty,
    code_l2_penalty,
    code_penalty,
    contractive_penalty,
    kl_sparsity_penalty,
    l1_penalty,
    squared_jacobian_norm,
)
from parnassus.latent.claims.training import adam
from parnassus.layers import Dense, mlp, sigmoid, tanh


def penalty_decreases(penalty: Penalty, weights: tuple[float, ...]) -> Evidence:
    """Train one network under increasing weights; each penalty must be at most 0.9 of the previous one."""
    x = load_digits().train.x[:100].flatten(1)
    values = []
    for weight in weights:
        torch.manual_seed(0)
        model = Autoencoder(Dense(64, 20, activation=sigmoid), Dense(20, 64), penalty=penalty, weight=weight)
        adam(model, partial(model.loss, x), steps=60, lr=1e-2)
        values.append(penalty(model.encoder, x, model.encode(x)).detach())
    measured = torch.stack(values)
    return less_equal(measured[1:] / measured[:-1], 0.9)


@claim("B4.4-1")
def larger_weights_give_smaller_penalties() -> Evidence:
    """With weights ten times apart, trained codes have decreasing penalties of all four kinds (book sec. 4.4)."""
    weights = (0.001, 0.01, 0.1)
    return all_of(
        l1=penalty_decreases(code_penalty(l1_penalty), weights),
        l2=penalty_decreases(code_penalty(code_l2_penalty), weights),
        kl_sparsity=penalty_decreases(code_penalty(partial(kl_sparsity_penalty, target=0.1)), weights),
        contractive=penalty_decreases(contractive_penalty, weights),
    )


@claim("B4.4-1")
def the_contractive_penalty_of_a_sigmoid_layer_has_a_closed_form() -> Evidence:
    """For h = sigmoid(V x + b) the contractive penalty is Σ_k (h_k (1 − h_k))² ‖V_k‖² (book sec. 4.4)."""
    torch.manual_seed(0)
    layer, x = Dense(6, 4, activation=sigmoid).double(), torch.randn(9, 6, dtype=torch.float64)
    h = layer(x)
    return close(squared_jacobian_norm(layer, x), (h * (1 - h)).square() @ layer.weight.square().sum(0), rtol=1e-10)


@claim("B4.4-1")
def kl_sparsity_is_minimal_at_its_target() -> Evidence:
    """Σ_k KL(ρ ‖ ρ̂_k) is zero if every unit's mean activation is ρ, and positive elsewhere (book sec. 4.4)."""
    activations = torch.tensor([0.01, 0.05, 0.2, 0.9], dtype=torch.float64)
    values = torch.stack([kl_sparsity_penalty(activation.expand(3, 2), target=0.05) for activation in activations])
    target, actual = torch.distributions.Bernoulli(activations[1]), torch.distributions.Bernoulli(activations)
    return all_of(
        torch=close(values, 2 * torch.distributions.kl_divergence(target, actual), atol=1e-12),
        zero_at_the_target=close(values[1], 0.0, atol=1e-12),
        positive_elsewhere=greater_equal(values[[0, 2, 3]], 0.03),
    )


class TransposedDecoder(nn.Module):
    """The decoder z ↦ Vᵀ z of an encoder x ↦ V x; with free weights W could undo a penalty on V."""

    def __init__(self, encoder: nn.Linear) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, z: Tensor) -> Tensor:
        return z @ self.encoder.weight


def reconstruction_gains(variances: Tensor, weight: float) -> Tensor:
    """Gain of each coordinate in a tied linear autoencoder with twice as many units as inputs."""
    torch.manual_seed(0)
    x = torch.cat([variances.sqrt().diag(), -variances.sqrt().diag()]) * len(variances) ** 0.5
    encoder = nn.Linear(len(variances), 2 * len(variances), bias=False).double()
    model = Autoencoder(encoder, TransposedDecoder(encoder), penalty=contractive_penalty, weight=weight)
    adam(model, partial(model.loss, x), steps=250, lr=2e-2)
    return (encoder.weight.mT @ encoder.weight).diag().detach()


@claim("B4.4-1")
def an_overcomplete_autoencoder_copies_its_input_unless_penalised() -> Evidence:
    """Without penalty all gains are 1; with contractive weight λ they are max(0, 1 − λN / 2s) at variance s."""
    variances = torch.tensor([2.0, 1.0, 0.5, 0.05, 0.02], dtype=torch.float64)
    weight = 0.1
    predicted = (1 - weight * len(variances) / (2 * variances)).clamp(min=0)
    return all_of(
        without_penalty=close(reconstruction_gains(variances, 0.0), 1.0, atol=0.01),
        contractive=close(reconstruction_gains(variances, weight), predicted, atol=0.01),
    )


@claim("B4.4-5")
def a_large_autoencoder_memorises_few_examples() -> Evidence:
    """A wide network trained on 20 digits does not generalise; trained on 1,400 digits it does (book sec. 4.4)."""
    digits = load_digits()
    test = digits.test.x.flatten(1)

    def errors(count: int, steps: int) -> tuple[Tensor, Tensor]:
        torch.manual_seed(0)
        x = digits.train.x[:count].flatten(1)
        model = Autoencoder(mlp((64, 256, 32), activation=tanh), mlp((32, 256, 64), activation=tanh))
        adam(model, partial(model.loss, x), steps=steps, lr=2e-3)
        return model.loss(x).detach(), model.loss(test).detach()

    (few_train, few_test), (many_train, many_test) = errors(20, 400), errors(1_400, 150)
    return all_of(
        train_error=less_equal(few_train, 1e-3),
        test_over_train=greater_equal(few_test / few_train, 30.0),
        test_over_train_with_many=less_equal(many_test / many_train, 1.5),
        test_error_few_over_many=greater_equal(few_test / many_test, 3.0),
    )
