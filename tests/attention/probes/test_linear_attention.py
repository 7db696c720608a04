"""The probe of softmax and linear attention against known properties."""

from typing import cast

import pytest
import torch

from parnassus.attention.probes.linear_attention import TEXT, exact_and_linear_attention
from parnassus.widgets import Curves, Images, Numbers, evaluate_probe, read_controls


def shown(tokens: int, match: float, features: int = 128) -> tuple[torch.Tensor, dict[str, float]]:
    """The maps and the statistics."""
    images, _, numbers = exact_and_linear_attention(tokens, 48, match, features, 0)
    return cast("Images", images).images, cast("dict[str, float]", cast("Numbers", numbers).values)


def test_uniform_attention_is_approximated_by_all_methods() -> None:
    _, flat = shown(0, 0.1)
    assert flat["total variation, random features"] < 0.02
    assert flat["total variation, elu + 1"] < 0.02


@pytest.mark.parametrize("tokens", [0, 1])
def test_random_features_approximate_concentrated_attention_better(tokens: int) -> None:
    _, few = shown(tokens, 4.0, 8)
    _, many = shown(tokens, 4.0, 1_024)
    assert many["total variation, random features"] < few["total variation, random features"]
    assert many["total variation, random features"] < 0.6 * many["total variation, elu + 1"]


def test_a_letter_attends_to_equal_letters() -> None:
    images, _ = shown(0, 12.0)
    place, other = TEXT.index("h"), [i for i, letter in enumerate(TEXT[:48]) if letter == "h"]
    assert images[0, 0, place].topk(len(other)).indices.sort().values.tolist() == other


def test_extreme_control_values_work() -> None:
    controls = read_controls(exact_and_linear_attention, None)
    given = {"tokens": 1, "length": 8, "match": 16.0, "features": 1, "draw": 9}
    images, curves, _ = evaluate_probe(exact_and_linear_attention, None, controls, given)
    assert cast("Images", images).images.shape == (3, 1, 8, 8)
    assert bool(cast("Images", images).images.isfinite().all())
    assert len(cast("Curves", curves).lines) == 2
