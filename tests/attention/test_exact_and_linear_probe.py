"""What the probe of exact and linear attention shows, against what must be so."""

from typing import cast

import pytest
import torch

from parnassus.attention.probes.exact_and_linear import TEXT, exact_and_linear
from parnassus.touch import Curves, Images, Numbers, answer, controls_of


def shown(tokens: int, match: float, features: int = 128) -> tuple[torch.Tensor, dict[str, float]]:
    """The maps and the numbers."""
    images, _, numbers = exact_and_linear(tokens, 48, match, features, 0)
    return cast("Images", images).images, cast("dict[str, float]", cast("Numbers", numbers).values)


def test_flat_attention_is_the_same_in_all_ways() -> None:
    _, flat = shown(0, 0.1)
    assert flat["distance of random features"] < 0.02
    assert flat["distance of elu + 1"] < 0.02


@pytest.mark.parametrize("tokens", [0, 1])
def test_only_random_features_follow_sharp_attention(tokens: int) -> None:
    _, few = shown(tokens, 4.0, 8)
    _, many = shown(tokens, 4.0, 1_024)
    assert many["distance of random features"] < few["distance of random features"]
    assert many["distance of random features"] < 0.6 * many["distance of elu + 1"]


def test_on_the_text_a_letter_looks_at_the_same_letter() -> None:
    images, _ = shown(0, 12.0)
    place, other = TEXT.index("h"), [i for i, letter in enumerate(TEXT[:48]) if letter == "h"]
    assert images[0, 0, place].topk(len(other)).indices.sort().values.tolist() == other


def test_the_ends_of_the_sliders() -> None:
    controls = controls_of(exact_and_linear, None)
    given = {"tokens": 1, "length": 8, "match": 16.0, "features": 1, "draw": 9}
    images, curves, _ = answer(exact_and_linear, None, controls, given)
    assert cast("Images", images).images.shape == (3, 1, 8, 8)
    assert bool(cast("Images", images).images.isfinite().all())
    assert len(cast("Curves", curves).lines) == 2
