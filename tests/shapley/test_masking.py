"""Value functions: what is not known comes from elsewhere."""

import pytest
import torch
from torch import Tensor

from parnassus.probability.conditioning import condition
from parnassus.probability.gaussian import Gaussian
from parnassus.shapley import portions
from parnassus.shapley.attribution import Attribution, explain_exactly, of_repeats
from parnassus.shapley.game import members
from parnassus.shapley.masking import (
    ConditionalGaussian,
    Interventional,
    ValueFunction,
    as_mean,
    mean_imputed,
    with_groups,
)
from parnassus.shapley.model import Model
from parnassus.shapley.values import shapley_values


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


def test_the_errors_of_guesses_show_in_repeats() -> None:
    """Of a sum of squares worths are known: E z² is the square of the mean and the variance, given what is known."""
    x, every = BACKGROUND[:2], members(3)
    joint = Gaussian(BACKGROUND.mean(0), torch.cov(BACKGROUND.mT))
    worth = torch.zeros(2, len(every), dtype=torch.float64)
    for place, known in enumerate(every):
        seen = known.nonzero()[:, 0].tolist()
        rest = condition(joint, x[:, known], observed=seen) if 0 < len(seen) < 3 else joint
        guessed = (rest.mean.square() + rest.covariance.diagonal()).sum(-1) if len(seen) < 3 else torch.zeros(2)
        worth[:, place] = x[:, known].square().sum(1) + guessed
    truth = shapley_values(worth - worth[:, :1])

    def repeated(model: Model) -> Attribution:
        return of_repeats([explain_exactly(ConditionalGaussian(model, BACKGROUND, 64, seed), x) for seed in range(8)])

    found = repeated(lambda z: z.square().sum(1, keepdim=True))
    off = (found.values[:, 0] - truth).abs()
    assert bool((off < 3 * found.errors[:, 0]).all())
    assert bool((found.errors > 0.003).all())
    assert float(off.square().mean().sqrt()) > 0.2 * float(found.errors.square().mean().sqrt())
    assert torch.allclose(found.prediction[:, 0], x.square().sum(1))
    assert float(repeated(lambda z: z.sum(1, keepdim=True)).errors.max()) < 1e-12


def test_wrong_input_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match="rows have 2 features, the background has 3"):
        Interventional(squares, BACKGROUND)(X[:, :2], members(3))
    with pytest.raises(ValueError, match="rows of features"):
        Interventional(squares, BACKGROUND[:0])
    with pytest.raises(ValueError, match="in one group"):
        Interventional(squares, BACKGROUND, torch.ones(2, 3, dtype=torch.bool))
    with pytest.raises(ValueError, match="two rows"):
        ConditionalGaussian(squares, BACKGROUND[:1])
