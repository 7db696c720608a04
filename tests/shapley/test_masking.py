"""Value functions: what is not known comes from elsewhere."""

import pytest
import torch
from torch import Tensor

from parnassus.shapley import portions
from parnassus.shapley.game import members
from parnassus.shapley.masking import (
    ConditionalGaussian,
    Interventional,
    ValueFunction,
    as_mean,
    mean_imputed,
    with_groups,
)


def normals(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def squares(x: Tensor) -> Tensor:
    return torch.stack([x.square().sum(1), x.prod(1)], 1)


BACKGROUND, X = normals(5, 3), normals(4, 3, seed=1)


def test_worths_are_means_over_the_background() -> None:
    worth = Interventional(squares, BACKGROUND)(X, members(3))
    assert worth.shape == (4, 2, 8)
    for row in range(4):
        for number, known in enumerate(members(3)):
            mixed = torch.where(known, X[row], BACKGROUND)
            assert torch.allclose(worth[row, :, number], squares(mixed).mean(0))


def test_portions_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Interventional(squares, BACKGROUND)(X, members(3))
    monkeypatch.setattr(portions, "ROWS", 15)
    assert torch.equal(Interventional(squares, BACKGROUND)(X, members(3)), whole)


def test_each_row_of_the_background_may_be_asked_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    value = Interventional(squares, BACKGROUND)
    asked = torch.rand(5, 6, 3, generator=torch.Generator().manual_seed(0)) < 0.5
    worth = value.each(X, asked)
    assert worth.shape == (5, 4, 2, 6)
    for other in range(5):
        assert torch.allclose(worth[other], value.of(slice(other, other + 1))(X, asked[other]))
    monkeypatch.setattr(portions, "ROWS", 7)
    assert torch.equal(value.each(X, asked), worth)
    assert as_mean(value) is value
    one = as_mean(ConditionalGaussian(squares, BACKGROUND, draws=2))
    assert one.each(X, asked[:1]).shape == (1, 4, 2, 6)
    assert one.of(slice(0, 1)).others == 1


def test_groups_come_and_go_together() -> None:
    groups = torch.tensor([[True, False, True], [False, True, False]])
    value = Interventional(squares, BACKGROUND, groups)
    assert isinstance(value, ValueFunction)
    assert value.players == 2
    assert torch.equal(with_groups(torch.tensor([[True, False]]), groups), torch.tensor([[True, False, True]]))
    first = value(X, torch.tensor([[True, False]]))
    assert torch.allclose(first, Interventional(squares, BACKGROUND)(X, torch.tensor([[True, False, True]])))


def test_the_mean_stands_for_what_is_missing() -> None:
    worth = mean_imputed(squares, BACKGROUND)(X, torch.zeros(1, 3, dtype=torch.bool))
    assert torch.allclose(worth[0, :, 0], squares(BACKGROUND.mean(0, keepdim=True))[0])


def test_a_gaussian_guess_follows_what_is_known() -> None:
    first = normals(4_000, 1, seed=2)
    background = torch.cat([first, 3 * first + 0.1 * normals(4_000, 1, seed=3)], 1)
    x = torch.tensor([[2.0, -1.0]], dtype=torch.float64)
    known = torch.tensor([[True, False], [False, False], [True, True]])
    worth = ConditionalGaussian(lambda z: z[:, 1:], background, draws=64)(x, known)[0, 0]
    assert worth.tolist() == pytest.approx([6.0, float(background[:, 1].mean()), -1.0], abs=0.02)


def test_wrong_input_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match="rows have 2 features, the background has 3"):
        Interventional(squares, BACKGROUND)(X[:, :2], members(3))
    with pytest.raises(ValueError, match="rows of features"):
        Interventional(squares, BACKGROUND[:0])
    with pytest.raises(ValueError, match="in one group"):
        Interventional(squares, BACKGROUND, torch.ones(2, 3, dtype=torch.bool))
    with pytest.raises(ValueError, match="two rows"):
        ConditionalGaussian(squares, BACKGROUND[:1])
