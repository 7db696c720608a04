"""Autoencoders: shapes, losses and penalties."""

from functools import partial

import pytest
import torch
from torch import Tensor, nn

from parnassus.latent.autoencoders.autoencoder import Autoencoder, shallow_autoencoder
from parnassus.latent.autoencoders.dense_networks import dense_decoder, dense_encoder
from parnassus.latent.autoencoders.penalties import (
    Penalty,
    code_l2_penalty,
    code_penalty,
    contractive_penalty,
    kl_sparsity_penalty,
    l1_penalty,
    squared_jacobian_norm,
)
from parnassus.layers import Dense, relu, sigmoid

PENALTIES: dict[str, Penalty] = {
    "l1": code_penalty(l1_penalty),
    "l2": code_penalty(code_l2_penalty),
    "kl": code_penalty(partial(kl_sparsity_penalty, target=0.1)),
    "contractive": contractive_penalty,
}


def test_identity_encoder_and_decoder_have_zero_error() -> None:
    model = Autoencoder(nn.Identity(), nn.Identity())
    x = torch.rand(4, 3)
    torch.testing.assert_close(model.reconstruction_error(x), torch.zeros(4))
    assert model.loss(x) == 0


def test_loss_is_the_mean_reconstruction_error() -> None:
    model, x = shallow_autoencoder(6, 2), torch.rand(5, 6)
    torch.testing.assert_close(model.loss(x), model.reconstruction_error(x).mean())
    torch.testing.assert_close(model.loss(x), nn.functional.mse_loss(model(x), x))


@pytest.mark.parametrize("name", PENALTIES)
def test_penalised_loss_and_gradients(name: str) -> None:
    torch.manual_seed(0)
    encoder = Dense(6, 4, activation=sigmoid)
    model = Autoencoder(encoder, Dense(4, 6), penalty=PENALTIES[name], weight=0.5)
    x = torch.rand(5, 6)
    unpenalised = Autoencoder(encoder, model.decoder)
    expected = unpenalised.loss(x) + 0.5 * PENALTIES[name](encoder, x, encoder(x))
    torch.testing.assert_close(model.loss(x), expected)
    model.loss(x).backward()
    assert all(parameter.grad is not None and parameter.grad.abs().sum() > 0 for parameter in model.parameters())


@pytest.mark.parametrize("latent", [1, 2, 7])
def test_rows_are_independent_in_evaluation_mode(latent: int) -> None:
    torch.manual_seed(0)
    model = Autoencoder(dense_encoder((1, 4, 4), latent, width=8), dense_decoder(latent, (1, 4, 4), width=8)).eval()
    x = torch.rand(6, 1, 4, 4)
    torch.testing.assert_close(model(x)[2:3], model(x[2:3]))
    assert model.encode(x).shape == (6, latent)


def test_state_dict_round_trip() -> None:
    def make_model() -> Autoencoder:
        return Autoencoder(dense_encoder((1, 4, 4), 2, width=8), dense_decoder(2, (1, 4, 4), width=8)).eval()

    first, second, x = make_model(), make_model(), torch.rand(3, 1, 4, 4)
    second.load_state_dict(first.state_dict())
    torch.testing.assert_close(second(x), first(x))


def test_shallow_autoencoder_uses_the_given_activations() -> None:
    torch.manual_seed(0)
    model, x = shallow_autoencoder(6, 3, hidden=relu, output=sigmoid), torch.randn(50, 6)
    assert model.encode(x).min() == 0
    assert model(x).min() > 0
    assert model(x).max() < 1


def test_code_penalties_match_hand_computation() -> None:
    z = torch.tensor([[1.0, -2.0], [0.0, 3.0]])
    assert l1_penalty(z) == 3.0
    assert code_l2_penalty(z) == 7.0
    torch.testing.assert_close(kl_sparsity_penalty(torch.full((2, 3), 0.5), target=0.5), torch.tensor(0.0))


def test_squared_jacobian_norm_of_a_linear_layer() -> None:
    layer = nn.Linear(5, 3)
    expected = layer.weight.square().sum().expand(4)
    torch.testing.assert_close(squared_jacobian_norm(layer, torch.randn(4, 5)), expected)


def test_squared_jacobian_norm_matches_torch_func() -> None:
    torch.manual_seed(0)
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(8, 5), nn.Tanh(), nn.Linear(5, 3)).double()
    x = torch.randn(4, 1, 2, 4, dtype=torch.float64)

    def encode_row(row: Tensor) -> Tensor:
        code: Tensor = encoder(row[None])[0]
        return code

    jacobians = torch.func.vmap(torch.func.jacrev(encode_row))(x)
    torch.testing.assert_close(squared_jacobian_norm(encoder, x), jacobians.square().flatten(1).sum(1))
    with torch.no_grad():  # the penalty can be evaluated without gradients
        assert contractive_penalty(encoder, x, encoder(x)) > 0


def test_invalid_values_raise() -> None:
    with pytest.raises(ValueError, match=r"weight must not be negative; got weight=-1"):
        Autoencoder(nn.Identity(), nn.Identity(), penalty=contractive_penalty, weight=-1.0)
    with pytest.raises(ValueError, match=r"as after a sigmoid; got -1 to -1"):
        kl_sparsity_penalty(-torch.ones(3, 2))
    with pytest.raises(ValueError, match=r"strictly between 0 and 1; got target=1"):
        kl_sparsity_penalty(torch.full((3, 2), 0.5), target=1.0)
