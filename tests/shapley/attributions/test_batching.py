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
from parnassus.shapley.attributions.conditional_gaussian import ConditionalGaussianValue
from parnassus.shapley.attributions.deletion_curve import deletion_curve
from parnassus.shapley.attributions.estimator_explanations import explain_with_estimator
from parnassus.shapley.attributions.interventional import InterventionalValue
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

BATCH_LIMIT = 24
"""Largest batch of 1 × 6 × 6 inputs that is allowed."""


def random_images(*shape: int, seed: int = 0) -> Tensor:
    return torch.rand(*shape, generator=torch.Generator().manual_seed(seed))


class BatchRecorder(nn.Module):
    """A network that records its largest batch."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner, self.max_batch = inner, 0

    def forward(self, x: Tensor) -> Tensor:
        self.max_batch = max(self.max_batch, len(x))
        output: Tensor = self.inner(x)
        return output


def convolutional_network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(1, 12, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(12 * 36, 3))


BYTES_PER_IMAGE = 4 * (36 + 12 * 36 + 12 * 36 + 3) + 3
"""Bytes for one image: input, convolution, ReLU, three logits, three finiteness flags."""


def test_memory_per_input_is_measured() -> None:
    network, image = convolutional_network(), random_images(1, 1, 6, 6)
    model = as_model(network)
    assert bytes_per_input(lambda n: model(image.expand(n, 1, 6, 6).clone())) == BYTES_PER_IMAGE
    table = nn.Linear(6, 5)  # memory independent of the number of inputs, such as W ⊙ W, is not counted
    assert bytes_per_input(lambda n: torch.zeros(n, 6) @ (table.weight * table.weight).mT) == 4 * (6 + 5)
    assert bytes_per_input(lambda n: np.zeros((n, 100))) == 0


def test_batch_size_is_limited_by_inputs_and_by_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    model, images = as_model(convolutional_network()), random_images(2, 1, 6, 6)
    assert max_batch_size(model, images, 100) == max_batch_size(model, images, 10**9) == batching.MAX_BATCH_SIZE
    monkeypatch.setattr(batching, "MAX_BATCH_BYTES", 1_000_000)
    assert max_batch_size(model, images, 10**9) == 1_000_000 // BYTES_PER_IMAGE
    assert max_batch_size(model, images, 100) == batching.MAX_BATCH_SIZE  # too few inputs to be measured
    monkeypatch.setattr(batching, "MAX_BATCH_BYTES", 10)
    assert max_batch_size(model, images, 10**9) == 1
    monkeypatch.setattr(batching, "MAX_BATCH_BYTES", 2**40)
    assert max_batch_size(model, images, 10**9) == batching.MAX_BATCH_SIZE
    assert max_batch_size(lambda x: x.sum((1, 2, 3)), images[:0], 0) == batching.MAX_BATCH_SIZE


METHODS: dict[str, Callable[[nn.Module, Tensor, Tensor], object]] = {
    "coalitions": lambda net, x, background: explain(masked_images(net, background, tiles(6, 6, 1)), x.flatten(1), 90),
    "all coalitions": lambda net, x, background: explain_exactly(
        masked_images(net, background, tiles(6, 6, 3)), x.flatten(1)
    ),
    "until": lambda net, x, background: explain_to_tolerance(
        masked_images(net, background, tiles(6, 6, 2)), x.flatten(1), 1e-9, max_coalitions=200
    ),
    "orders": lambda net, x, background: explain_with_estimator(
        permutation_sampling, masked_images(net, background, tiles(6, 6, 2)), x.flatten(1), 100
    ),
    "deletion": lambda net, x, background: deletion_curve(
        masked_images(net, background, tiles(6, 6, 1)),
        x.flatten(1),
        torch.zeros(len(x)).long(),
        random_images(len(x), 36),
    ),
    "a Gaussian": lambda net, x, background: ConditionalGaussianValue(
        lambda z: as_model(net)(z.unflatten(1, (1, 6, 6))), background.flatten(1), num_draws=50
    )(x.flatten(1), random_images(3, 36) < 0.5),
    "integrated gradients": lambda net, x, background: integrated_gradients(net, x, background, max_gradients=60),
    "expected gradients": lambda net, x, background: expected_gradients(net, x, background, 40),
    "gradients": gradient_times_input,
    "DeepLIFT": deep_lift,
}


@pytest.mark.parametrize("method", METHODS)
def test_no_batch_exceeds_the_limit(monkeypatch: pytest.MonkeyPatch, method: str) -> None:
    x, background = random_images(5, 1, 6, 6), random_images(40, 1, 6, 6, seed=1)
    network = BatchRecorder(convolutional_network())
    monkeypatch.setattr(batching, "MAX_BATCH_BYTES", BATCH_LIMIT * BYTES_PER_IMAGE)
    METHODS[method](network, x, background)
    assert 2 < network.max_batch <= BATCH_LIMIT


@pytest.mark.parametrize("count", [3, 40], ids=["small background", "background larger than the limit"])
def test_worths_do_not_depend_on_batches(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    x, coalitions = random_images(5, 1, 6, 6).double().flatten(1), random_images(7, 36) < 0.5
    game = masked_images(
        convolutional_network().double(), random_images(count, 1, 6, 6, seed=1).double(), tiles(6, 6, 1)
    )
    worths, worths_per_row = game(x, coalitions), game.per_background_row(x, coalitions.expand(count, 7, 36))
    monkeypatch.setattr(batching, "MAX_BATCH_BYTES", BATCH_LIMIT * 2 * BYTES_PER_IMAGE)
    assert torch.allclose(game(x, coalitions), worths, atol=1e-13)
    assert torch.allclose(game.per_background_row(x, coalitions.expand(count, 7, 36)), worths_per_row, atol=1e-13)


@pytest.mark.parametrize("count", [3, 90], ids=["small background", "background larger than the limit"])
def test_remaining_layers_are_evaluated_in_batches(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    torch.manual_seed(0)
    remaining = BatchRecorder(nn.Sequential(nn.Tanh(), nn.Linear(50, 2)))
    network, background = nn.Sequential(nn.Linear(8, 50), remaining).double(), random_images(count, 8).double()
    x, coalitions = random_images(5, 8, seed=1).double(), random_images(30, 8) < 0.5
    value, reference = (
        interventional_value_function(network, background),
        InterventionalValue(as_model(network), background),
    )
    assert isinstance(value, LinearFirstLayer)
    monkeypatch.setattr(batching, "MAX_BATCH_BYTES", 4 * BATCH_LIMIT * 50 * 8 * batching.MIN_INPUT_FACTOR)
    worths, worths_per_row = value(x, coalitions), value.per_background_row(x, coalitions.expand(count, 30, 8))
    assert 2 < remaining.max_batch <= BATCH_LIMIT
    remaining.max_batch = 0
    all_worths = value(x, all_coalitions(8))
    assert 0 < remaining.max_batch <= BATCH_LIMIT
    assert torch.allclose(all_worths, reference(x, all_coalitions(8)), atol=1e-12)
    assert torch.allclose(worths, reference(x, coalitions), atol=1e-12)
    assert torch.allclose(worths_per_row, reference.per_background_row(x, coalitions.expand(count, 30, 8)), atol=1e-12)


def test_long_texts_are_evaluated_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    model = BatchRecorder(nn.Sequential(nn.Embedding(9, 400), nn.Flatten(), nn.Linear(4_000, 2)))
    game = masked_ids(model, torch.arange(10) % 8 + 1, mask_token_id=0)
    monkeypatch.setattr(batching, "MAX_BATCH_BYTES", BATCH_LIMIT * 16_000)
    explain_exactly(game, game.full_input)
    assert 2 < model.max_batch <= BATCH_LIMIT


def test_limit_batch_size() -> None:
    network = BatchRecorder(convolutional_network())
    model = limit_batch_size(as_model(network), 7)
    images = random_images(20, 1, 6, 6)
    assert torch.allclose(model(images), convolutional_network()(images), atol=1e-6)
    assert network.max_batch == 7
    with pytest.raises(ValueError, match="must be positive; got batch_size=0"):
        limit_batch_size(model, 0)
