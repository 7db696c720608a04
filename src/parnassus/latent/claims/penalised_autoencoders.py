"""Claims about penalties on the code, and about what happens without any (book sec. 4.4)."""

from functools import partial

import torch
from torch import Tensor, nn

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close
from parnassus.data import load_digits
from parnassus.latent.autoencoder import Autoencoder
from parnassus.latent.claims.training import adam
from parnassus.latent.penalties import Penalty, contractive, kl_sparsity, l1, l2, on_code, squared_jacobian
from parnassus.layers import Dense, mlp, sigmoid, tanh


def falls(penalty: Penalty, weights: tuple[float, ...]) -> Evidence:
    """Train the same network under growing weights; each penalty must be at most 0.9 of the one before."""
    x = load_digits().train.x[:100].flatten(1)
    values = []
    for weight in weights:
        torch.manual_seed(0)
        model = Autoencoder(Dense(64, 20, activation=sigmoid), Dense(20, 64), penalty=penalty, weight=weight)
        adam(model, partial(model.loss, x), steps=60, lr=1e-2)
        values.append(penalty(model.encoder, x, model.encode(x)).detach())
    measured = torch.stack(values)
    return at_most(measured[1:] / measured[:-1], 0.9)


@claim("B4.4-1")
def a_heavier_penalty_is_a_smaller_penalty() -> Evidence:
    """Under weights ten times apart, trained codes have ever smaller penalties of all four kinds (book sec. 4.4)."""
    weights = (0.001, 0.01, 0.1)
    return all_of(
        l1=falls(on_code(l1), weights),
        l2=falls(on_code(l2), weights),
        kl_sparsity=falls(on_code(partial(kl_sparsity, target=0.1)), weights),
        contractive=falls(contractive, weights),
    )


@claim("B4.4-1")
def a_sigmoid_layer_contracts_by_its_slopes() -> Evidence:
    """For h = sigmoid(V x + b) the contractive penalty is Σ_k (h_k (1 − h_k))² ‖V_k‖² (book sec. 4.4)."""
    torch.manual_seed(0)
    layer, x = Dense(6, 4, activation=sigmoid).double(), torch.randn(9, 6, dtype=torch.float64)
    h = layer(x)
    return close(squared_jacobian(layer, x), (h * (1 - h)).square() @ layer.weight.square().sum(0), rtol=1e-10)


@claim("B4.4-1")
def kl_sparsity_is_least_at_its_target() -> Evidence:
    """Σ_k KL(ρ ‖ ρ̂_k) is zero where every unit is on for a share ρ, and positive elsewhere (book sec. 4.4)."""
    shares = torch.tensor([0.01, 0.05, 0.2, 0.9], dtype=torch.float64)
    values = torch.stack([kl_sparsity(share.expand(3, 2), target=0.05) for share in shares])
    wanted, found = torch.distributions.Bernoulli(shares[1]), torch.distributions.Bernoulli(shares)
    return all_of(
        torch=close(values, 2 * torch.distributions.kl_divergence(wanted, found), atol=1e-12),
        least=close(values[1], 0.0, atol=1e-12),
        elsewhere=at_least(values[[0, 2, 3]], 0.03),
    )


class Transposed(nn.Module):
    """The decoder z ↦ Vᵀ z of an encoder x ↦ V x: with free weights a penalty on V could hide in W."""

    def __init__(self, encoder: nn.Linear) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, z: Tensor) -> Tensor:
        return z @ self.encoder.weight


def gains(variances: Tensor, weight: float) -> Tensor:
    """How much of each coordinate a tied linear autoencoder with twice as many units as inputs passes on."""
    torch.manual_seed(0)
    x = torch.cat([variances.sqrt().diag(), -variances.sqrt().diag()]) * len(variances) ** 0.5
    encoder = nn.Linear(len(variances), 2 * len(variances), bias=False).double()
    model = Autoencoder(encoder, Transposed(encoder), penalty=contractive, weight=weight)
    adam(model, partial(model.loss, x), steps=250, lr=2e-2)
    return (encoder.weight.mT @ encoder.weight).diag().detach()


@claim("B4.4-1")
def an_over_complete_autoencoder_copies_unless_penalised() -> Evidence:
    """Without penalty every direction passes; a contractive weight λ passes max(0, 1 − λN / 2s) of variance s."""
    variances = torch.tensor([2.0, 1.0, 0.5, 0.05, 0.02], dtype=torch.float64)
    weight = 0.1
    predicted = (1 - weight * len(variances) / (2 * variances)).clamp(min=0)
    return all_of(
        free=close(gains(variances, 0.0), 1.0, atol=0.01),
        contractive=close(gains(variances, weight), predicted, atol=0.01),
    )


@claim("B4.4-5")
def a_large_autoencoder_memorises_few_examples() -> Evidence:
    """A wide network trained on 20 digits rebuilds them and fails on others; 1,400 digits cure it (book sec. 4.4)."""
    digits = load_digits()
    unseen = digits.test.x.flatten(1)

    def errors(count: int, steps: int) -> tuple[Tensor, Tensor]:
        torch.manual_seed(0)
        x = digits.train.x[:count].flatten(1)
        model = Autoencoder(mlp((64, 256, 32), activation=tanh), mlp((32, 256, 64), activation=tanh))
        adam(model, partial(model.loss, x), steps=steps, lr=2e-3)
        return model.loss(x).detach(), model.loss(unseen).detach()

    (few_seen, few_unseen), (many_seen, many_unseen) = errors(20, 400), errors(1_400, 150)
    return all_of(
        seen=at_most(few_seen, 1e-3),
        unseen_over_seen=at_least(few_unseen / few_seen, 30.0),
        with_many=at_most(many_unseen / many_seen, 1.5),
        unseen=at_least(few_unseen / many_unseen, 3.0),
    )
