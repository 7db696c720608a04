"""Dense networks for examples of any shape."""

import pytest
import torch

from parnassus.latent.autoencoders.dense_networks import mlp_decoder, mlp_encoder
from parnassus.layers import count_parameters


def test_encoder_and_decoder_shapes() -> None:
    x = torch.rand(4, 3, 5, 2)
    code = mlp_encoder((3, 5, 2), 7, width=11)(x)
    assert code.shape == (4, 7)
    assert mlp_decoder(7, (3, 5, 2), width=11)(code).shape == x.shape


@pytest.mark.parametrize(
    ("layers", "num_parameters"), [(0, 31 * 4), (1, 31 * 6 + 7 * 4), (3, 31 * 6 + 2 * 7 * 6 + 7 * 4)]
)
def test_number_of_parameters(layers: int, num_parameters: int) -> None:
    assert count_parameters(mlp_encoder((30,), 4, width=6, num_layers=layers)) == num_parameters
    num_decoder_parameters = 5 * 30 if layers == 0 else 5 * 6 + (layers - 1) * 7 * 6 + 7 * 30
    assert count_parameters(mlp_decoder(4, (30,), width=6, num_layers=layers)) == num_decoder_parameters


@torch.no_grad()
def test_last_layer_is_linear() -> None:
    torch.manual_seed(0)
    network = mlp_decoder(2, (6,), width=8)
    values = network(torch.randn(200, 2))
    assert float(values.min()) < 0 < float(values.max())
    direct = mlp_encoder((6,), 3, num_layers=0)
    x, y = torch.rand(2, 5, 6)
    torch.testing.assert_close(direct(x + y) - direct(x), direct(y) - direct(torch.zeros(5, 6)), atol=1e-5, rtol=0)


def test_invalid_sizes_raise() -> None:
    with pytest.raises(
        ValueError, match="width must be positive and num_layers not negative; got width=0, num_layers=1"
    ):
        mlp_encoder((3,), 2, width=0)
    with pytest.raises(ValueError, match="got width=4, num_layers=-1"):
        mlp_decoder(2, (3,), width=4, num_layers=-1)
