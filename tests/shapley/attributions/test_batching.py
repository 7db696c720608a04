"""Batch sizes: no evaluation exceeds the limits, which are measured from the model."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from parnassus.shapley.attributions import batching
from parnassus.shapley.attributions.adaptive_kernel_shap import explain_to_tolerance
from parnassus.shapley.attributions.attribution import explain, explain_exactly
from parnassus.shapley.attributions.batching import bytes_per_input, limit_batch_size, max_batch_size
from parnassus.shapley.attributions.conditional_gaussian import ConditionalGaussian
from parnassus.shapley.attributions.deletion_curve import deletion_curve
from parnassus.shapley.attributions.estimator_explanations import explain_with_estimator
from parnassus.shapley.attributions.interventional import Interventional
from parnassus.shapley.attributions.linear_first_layer import LinearFirstLayer, interventional_value_function
from parnassus.shapley.attributions.masked_images import masked_images
from parnassus.shapley.attributions.masked_text import masked_ids
from parnassus.shapley.attributions.model_adapters import as_model
from parnassus.shapley.attributions.superpixels import tiles
from parnassus.shapley.estimators.permutation_sampling import permutation_sampling
from parnassus.shapley.games.cooperative_games import all_coalitions
from parnassus.shapley.gradients.deep_lift import deep_lift
from parnassus.shapley.gradients.expected_gradients import expected_gradients
from parnassus.shapley.gradients.integrated_gradients import gradient_times_input, integrated_gradients

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


def test_memory_per_input_is_measured() -> None:
    network, image = convolutions(), randoms(1, 1, 6, 6)
    asked = as_model(network)
    assert bytes_per_input(lambda n: asked(image.expand(n, 1, 6, 6).clone())) == NEEDED
    table = nn.Linear(6, 5)  # whatever is made for any number of inputs, such as W ⊙ W, is no part of it
    assert bytes_per_input(lambda n: torch.zeros(n, 6) @ (table.weight * table.weight).mT) == 4 * (6 + 5)
    assert bytes_per_input(lambda n: np.zeros((n, 100))) == 0


def test_bounds_are_kept_by_inputs_and_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, images = as_model(convolutions()), randoms(2, 1, 6, 6)
    assert max_batch_size(asked, images, 100) == max_batch_size(asked, images, 10**9) == batching.MAX_BATCH_SIZE
    monkeypatch.setattr(batching, "MAX_BATCH_BYTES", 1_000_000)
    assert max_batch_size(asked, images, 10**9) == 1_000_000 // NEEDED
    assert max_batch_size(asked, images, 100) == batching.MAX_BATCH_SIZE  # so few need not be counted
    monkeypatch.setattr(batching, "MAX_BATCH_BYTES", 10)
    assert max_batch_size(asked, images, 10**9) == 1
    monkeypatch.setattr(batching, "MAX_BATCH_BYTES", 2**40)
    assert max_batch_size(asked, images, 10**9) == batching.MAX_BATCH_SIZE
    assert max_batch_size(lambda x: x.sum((1, 2, 3)), images[:0], 0) == batching.MAX_BATCH_SIZE


WAYS: dict[str, Callable[[nn.Module, Tensor, Tensor], object]] = {
    "coalitions": lambda net, x, others: explain(masked_images(net, others, tiles(6, 6, 1)), x.flatten(1), 90),
    "all coalitions": lambda net, x, others: explain_exactly(masked_images(net, others, tiles(6, 6, 3)), x.flatten(1)),
    "until": lambda net, x, others: explain_to_tolerance(
        masked_images(net, others, tiles(6, 6, 2)), x.flatten(1), 1e-9, max_coalitions=200
    ),
    "orders": lambda net, x, others: explain_with_estimator(
        permutation_sampling, masked_images(net, others, tiles(6, 6, 2)), x.flatten(1), 100
    ),
    "deletion": lambda net, x, others: deletion_curve(
        masked_images(net, others, tiles(6, 6, 1)), x.flatten(1), torch.zeros(len(x)).long(), randoms(len(x), 36)
    ),
    "a Gaussian": lambda net, x, others: ConditionalGaussian(
        lambda z: as_model(net)(z.unflatten(1, (1, 6, 6))), others.flatten(1), num_draws=50
    )(x.flatten(1), randoms(3, 36) < 0.5),
    "integrated gradients": lambda net, x, others: integrated_gradients(net, x, others, max_gradients=60),
    "expected gradients": lambda net, x, others: expected_gradients(net, x, others, 40),
    "gradients": gradient_times_input,
    "DeepLIFT": deep_lift,
}


@pytest.mark.parametrize("way", WAYS)
def test_no_batch_exceeds_the_limit(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    x, others = randoms(5, 1, 6, 6), randoms(40, 1, 6, 6, seed=1)
    network = Counting(convolutions())
    monkeypatch.setattr(batching, "MAX_BATCH_BYTES", AT_MOST * NEEDED)
    WAYS[way](network, x, others)
    assert 2 < network.most <= AT_MOST


@pytest.mark.parametrize("others", [3, 40], ids=["few others", "more others than fit"])
def test_worths_do_not_depend_on_batches(monkeypatch: pytest.MonkeyPatch, others: int) -> None:
    x, known = randoms(5, 1, 6, 6).double().flatten(1), randoms(7, 36) < 0.5
    game = masked_images(convolutions().double(), randoms(others, 1, 6, 6, seed=1).double(), tiles(6, 6, 1))
    whole, each = game(x, known), game.per_background_row(x, known.expand(others, 7, 36))
    monkeypatch.setattr(batching, "MAX_BATCH_BYTES", AT_MOST * 2 * NEEDED)
    assert torch.allclose(game(x, known), whole, atol=1e-13)
    assert torch.allclose(game.per_background_row(x, known.expand(others, 7, 36)), each, atol=1e-13)


@pytest.mark.parametrize("others", [3, 90], ids=["few others", "more others than fit"])
def test_remaining_layers_are_evaluated_in_batches(monkeypatch: pytest.MonkeyPatch, others: int) -> None:
    torch.manual_seed(0)
    rest = Counting(nn.Sequential(nn.Tanh(), nn.Linear(50, 2)))
    network, background = nn.Sequential(nn.Linear(8, 50), rest).double(), randoms(others, 8).double()
    x, known = randoms(5, 8, seed=1).double(), randoms(30, 8) < 0.5
    value, plain = interventional_value_function(network, background), Interventional(as_model(network), background)
    assert isinstance(value, LinearFirstLayer)
    monkeypatch.setattr(batching, "MAX_BATCH_BYTES", 4 * AT_MOST * 50 * 8 * batching.MIN_INPUT_FACTOR)
    found, each = value(x, known), value.per_background_row(x, known.expand(others, 30, 8))
    assert 2 < rest.most <= AT_MOST
    rest.most = 0
    every = value(x, all_coalitions(8))
    assert 0 < rest.most <= AT_MOST
    assert torch.allclose(every, plain(x, all_coalitions(8)), atol=1e-12)
    assert torch.allclose(found, plain(x, known), atol=1e-12)
    assert torch.allclose(each, plain.per_background_row(x, known.expand(others, 30, 8)), atol=1e-12)


def test_long_texts_are_evaluated_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    reader = Counting(nn.Sequential(nn.Embedding(9, 400), nn.Flatten(), nn.Linear(4_000, 2)))
    game = masked_ids(reader, torch.arange(10) % 8 + 1, mask_token_id=0)
    monkeypatch.setattr(batching, "MAX_BATCH_BYTES", AT_MOST * 16_000)
    explain_exactly(game, game.full_input)
    assert 2 < reader.most <= AT_MOST


def test_the_batch_size_can_be_limited() -> None:
    network = Counting(convolutions())
    model = limit_batch_size(as_model(network), 7)
    images = randoms(20, 1, 6, 6)
    assert torch.allclose(model(images), convolutions()(images), atol=1e-6)
    assert network.most == 7
    with pytest.raises(ValueError, match="must be positive; got batch_size=0"):
        limit_batch_size(model, 0)
