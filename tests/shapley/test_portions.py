"""No call of a model is larger than it may be, whoever makes it; and what it may be is measured."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from parnassus.shapley import portions
from parnassus.shapley.attribution import explain, explain_exactly
from parnassus.shapley.convergence import explain_until
from parnassus.shapley.deep_lift import deep_lift
from parnassus.shapley.deletion import deletion_curve
from parnassus.shapley.first_layer import LinearFirst, interventional
from parnassus.shapley.game import members
from parnassus.shapley.gradients import expected_gradients, gradient_times_input, integrated_gradients
from parnassus.shapley.masking import ConditionalGaussian, Interventional
from parnassus.shapley.model import as_model
from parnassus.shapley.orders import by_orders
from parnassus.shapley.portions import at_once, in_parts, written_by
from parnassus.shapley.sampling import explain_by
from parnassus.shapley.superpixels import masked_images, tiles
from parnassus.shapley.tokens import masked_ids

AT_MOST = 24
"""Inputs of 1 × 6 × 6 that the network below may be asked about."""


def randoms(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


class Counting(nn.Module):
    """A network, and how many inputs it was asked about at once at most."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner, self.most = inner, 0

    def forward(self, x: Tensor) -> Tensor:
        self.most = max(self.most, len(x))
        answer: Tensor = self.inner(x)
        return answer


def convolutions() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(12 * 36, 3))


NEEDED = 4 * (36 + 12 * 36 + 12 * 36 + 3) + 3
"""Bytes for one image: itself, a convolution, what is positive of it, three logits, whether each is finite."""


def test_what_an_input_needs_is_measured() -> None:
    network, image = convolutions(), randoms(1, 1, 6, 6)
    asked = as_model(network)
    assert written_by(lambda n: asked(image.expand(n, 1, 6, 6).clone())) == NEEDED
    table = nn.Linear(6, 5)  # whatever is made for any number of inputs, such as W ⊙ W, is no part of it
    assert written_by(lambda n: torch.zeros(n, 6) @ (table.weight * table.weight).mT) == 4 * (6 + 5)
    assert written_by(lambda n: np.zeros((n, 100))) == 0


def test_bounds_are_kept_by_inputs_and_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, images = as_model(convolutions()), randoms(2, 1, 6, 6)
    assert at_once(asked, images, 100) == at_once(asked, images, 10**9) == portions.ROWS
    monkeypatch.setattr(portions, "BYTES", 1_000_000)
    assert at_once(asked, images, 10**9) == 1_000_000 // NEEDED
    assert at_once(asked, images, 100) == portions.ROWS  # so few need not be counted
    monkeypatch.setattr(portions, "BYTES", 10)
    assert at_once(asked, images, 10**9) == 1
    monkeypatch.setattr(portions, "BYTES", 2**40)
    assert at_once(asked, images, 10**9) == portions.ROWS
    assert at_once(lambda x: x.sum((1, 2, 3)), images[:0], 0) == portions.ROWS


WAYS: dict[str, Callable[[nn.Module, Tensor, Tensor], object]] = {
    "coalitions": lambda net, x, others: explain(masked_images(net, others, tiles(6, 6, 1)), x.flatten(1), 90),
    "all coalitions": lambda net, x, others: explain_exactly(masked_images(net, others, tiles(6, 6, 3)), x.flatten(1)),
    "until": lambda net, x, others: explain_until(
        masked_images(net, others, tiles(6, 6, 2)), x.flatten(1), 1e-9, most=200
    ),
    "orders": lambda net, x, others: explain_by(
        by_orders, masked_images(net, others, tiles(6, 6, 2)), x.flatten(1), 100
    ),
    "deletion": lambda net, x, others: deletion_curve(
        masked_images(net, others, tiles(6, 6, 1)), x.flatten(1), torch.zeros(len(x)).long(), randoms(len(x), 36)
    ),
    "a Gaussian": lambda net, x, others: ConditionalGaussian(
        lambda z: as_model(net)(z.unflatten(1, (1, 6, 6))), others.flatten(1), draws=50
    )(x.flatten(1), randoms(3, 36) < 0.5),
    "integrated gradients": lambda net, x, others: integrated_gradients(net, x, others, most=60),
    "expected gradients": lambda net, x, others: expected_gradients(net, x, others, 40),
    "gradients": gradient_times_input,
    "DeepLIFT": deep_lift,
}


@pytest.mark.parametrize("way", WAYS)
def test_no_call_is_larger_than_it_may_be(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    x, others = randoms(5, 1, 6, 6), randoms(40, 1, 6, 6, seed=1)
    network = Counting(convolutions())
    monkeypatch.setattr(portions, "BYTES", AT_MOST * NEEDED)
    WAYS[way](network, x, others)
    assert 2 < network.most <= AT_MOST


@pytest.mark.parametrize("others", [3, 40], ids=["few others", "more others than fit"])
def test_worths_do_not_know_of_portions(monkeypatch: pytest.MonkeyPatch, others: int) -> None:
    x, known = randoms(5, 1, 6, 6).double().flatten(1), randoms(7, 36) < 0.5
    game = masked_images(convolutions().double(), randoms(others, 1, 6, 6, seed=1).double(), tiles(6, 6, 1))
    whole, each = game(x, known), game.each(x, known.expand(others, 7, 36))
    monkeypatch.setattr(portions, "BYTES", AT_MOST * 2 * NEEDED)
    assert torch.allclose(game(x, known), whole, atol=1e-13)
    assert torch.allclose(game.each(x, known.expand(others, 7, 36)), each, atol=1e-13)


@pytest.mark.parametrize("others", [3, 90], ids=["few others", "more others than fit"])
def test_layers_behind_the_first_are_asked_about_a_few(monkeypatch: pytest.MonkeyPatch, others: int) -> None:
    torch.manual_seed(0)
    rest = Counting(nn.Sequential(nn.Tanh(), nn.Linear(50, 2)))
    network, background = nn.Sequential(nn.Linear(8, 50), rest).double(), randoms(others, 8).double()
    x, known = randoms(5, 8, seed=1).double(), randoms(30, 8) < 0.5
    value, plain = interventional(network, background), Interventional(as_model(network), background)
    assert isinstance(value, LinearFirst)
    monkeypatch.setattr(portions, "BYTES", 4 * AT_MOST * 50 * 8 * portions.UNSEEN)
    found, each = value(x, known), value.each(x, known.expand(others, 30, 8))
    assert 2 < rest.most <= AT_MOST
    rest.most = 0
    every = value(x, members(8))
    assert 0 < rest.most <= AT_MOST
    assert torch.allclose(every, plain(x, members(8)), atol=1e-12)
    assert torch.allclose(found, plain(x, known), atol=1e-12)
    assert torch.allclose(each, plain.each(x, known.expand(others, 30, 8)), atol=1e-12)


def test_long_texts_are_read_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    reader = Counting(nn.Sequential(nn.Embedding(9, 400), nn.Flatten(), nn.Linear(4_000, 2)))
    game = masked_ids(reader, torch.arange(10) % 8 + 1, stand_in=0)
    monkeypatch.setattr(portions, "BYTES", AT_MOST * 16_000)
    explain_exactly(game, game.whole)
    assert 2 < reader.most <= AT_MOST


def test_parts_may_be_chosen() -> None:
    network = Counting(convolutions())
    model = in_parts(as_model(network), 7)
    images = randoms(20, 1, 6, 6)
    assert torch.allclose(model(images), convolutions()(images), atol=1e-6)
    assert network.most == 7
    with pytest.raises(ValueError, match="some inputs at once; got most=0"):
        in_parts(model, 0)
