"""Data sets and estimators have a `repr` of at most two lines."""

import importlib
import inspect
from dataclasses import dataclass, field, is_dataclass

import pytest
import torch
from torch import Tensor, nn

from parnassus.atlas.symbols import exported_symbols
from parnassus.data import TableSettings, german_phrases, iris, load_digits, mnist_mini, open_points, vowels
from parnassus.latent import PCA
from parnassus.layers import LinearRegression
from parnassus.probability import GaussianMixture
from parnassus.short_repr import short_repr
from parnassus.text import CharacterTokeniser


@dataclass(frozen=True)
class Example:
    matrix: Tensor
    scalar: Tensor
    text: str
    words: tuple[str, ...]
    network: nn.Module
    missing: Tensor | None = None
    hidden: int = field(default=1, repr=False)

    __repr__ = short_repr


def test_fields_are_described_by_their_sizes() -> None:
    network = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    example = Example(torch.zeros(2, 3), torch.tensor(0.25), "x" * 1_000, ("word",) * 100, network)
    assert repr(example) == (
        "Example(matrix=Tensor[2 × 3], scalar=0.25, text='xxxxxxxxxxxxxxxxxxxx'… (1,000 characters), "
        "words=tuple of 100, network=Sequential)"
    )


def test_every_data_set_and_estimator_uses_it() -> None:
    for symbol in exported_symbols():
        found = getattr(importlib.import_module(symbol.package), symbol.name)
        if not (inspect.isclass(found) and is_dataclass(found)):
            continue
        if symbol.package != "parnassus.data" and not hasattr(found, "fit"):
            continue
        if not issubclass(found, TableSettings):  # settings, which are compared and printed whole
            assert found.__repr__ is short_repr, found


@pytest.mark.parametrize(
    "instance",
    [
        load_digits(),
        load_digits().test,
        load_digits().train.pairs(64, 10),
        iris(),
        mnist_mini(),
        vowels(),
        german_phrases(),
        open_points("moons"),
        PCA.fit(load_digits().train.x.flatten(1), 10),
        LinearRegression(torch.zeros(100), torch.tensor(0.5)),
        GaussianMixture(torch.ones(1), torch.zeros(1, 2), torch.eye(2)[None]),
        CharacterTokeniser.fit("a text with many different characters: 0123456789"),
    ],
    ids=lambda instance: type(instance).__name__,
)
def test_representation_is_short(instance: object) -> None:
    assert len(repr(instance)) <= 240
    assert "\n" not in repr(instance)
    assert repr(instance).startswith(type(instance).__name__)


def test_data_set_shows_its_name_and_sizes() -> None:
    shown = repr(load_digits())
    for part in ("'digits'", "1 × 8 × 8", "train=Split(x=Tensor[", "classes=tuple of 10"):
        assert part in shown
