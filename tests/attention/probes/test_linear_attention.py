"""The probe of softmax and linear attention."""

from typing import cast

import pytest
import torch

from parnassus.attention.probes.linear_attention import TEXT, exact_and_linear_attention
from parnassus.widgets import Curves, Images, Numbers, evaluate_probe, read_controls


def evaluate(tokens: int, self_score: float, features: int = 128) -> tuple[torch.Tensor, dict[str, float]]:
    """The maps and the statistics."""
    images, _, numbers = exact_and_linear_attention(tokens, 48, self_score, features, 0)
    return cast("Images", images).images, cast("dict[str, float]", cast("Numbers", numbers).values)


def test_uniform_attention_is_approximated_by_all_methods() -> None:
    _, uniform = evaluate(0, 0.1)
    assert uniform["total variation, random features"] < 0.02
    assert uniform["total variation, elu + 1"] < 0.02


@pytest.mark.parametrize("tokens", [0, 1])
def test_random_features_approximate_concentrated_attention_better(tokens: int) -> None:
    _, few = evaluate(tokens, 4.0, 8)
    _, many = evaluate(tokens, 4.0, 1_024)
    assert many["total variation, random features"] < few["total variation, random features"]
    assert many["total variation, random features"] < 0.6 * many["total variation, elu + 1"]


def test_letter_attends_to_equal_letters() -> None:
    images, _ = evaluate(0, 12.0)
    position, equal_positions = TEXT.index("h"), [i for i, letter in enumerate(TEXT[:48]) if letter == "h"]
    assert images[0, 0, position].topk(len(equal_positions)).indices.sort().values.tolist() == equal_positions


def test_extreme_control_values_are_accepted() -> None:
    controls = read_controls(exact_and_linear_attention, None)
    values = {"tokens": 1, "length": 8, "self_score": 16.0, "features": 1, "seed": 9}
    images, curves, _ = evaluate_probe(exact_and_linear_attention, None, controls, values)
    assert cast("Images", images).images.shape == (3, 1, 8, 8)
    assert bool(cast("Images", images).images.isfinite().all())
    assert len(cast("Curves", curves).lines) == 2
