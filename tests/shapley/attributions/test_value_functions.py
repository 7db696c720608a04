"""Value functions: unknown features from the background, from means, or given the known ones."""

import pytest
import torch
from torch import Tensor

from parnassus.probability import standard_normal
from parnassus.probability.distributions.gaussian import Gaussian
from parnassus.probability.distributions.gaussian_conditioning import condition
from parnassus.shapley.attributions import batching
from parnassus.shapley.attributions.attribution import Attribution, average_repeats, explain_exactly
from parnassus.shapley.attributions.conditional_gaussian import ConditionalGaussian
from parnassus.shapley.attributions.interventional import Interventional, mean_imputation
from parnassus.shapley.attributions.model_adapters import Model
from parnassus.shapley.attributions.value_functions import ValueFunction, as_background_average, expand_groups
from parnassus.shapley.games.cooperative_games import all_coalitions
from parnassus.shapley.games.shapley_values import shapley_values


def squares(x: Tensor) -> Tensor:
    return torch.stack([x.square().sum(1), x.prod(1)], 1)


BACKGROUND, X = standard_normal(5, 3), standard_normal(4, 3, seed=1)


def test_worths_are_means_over_the_background() -> None:
    worth = Interventional(squares, BACKGROUND)(X, all_coalitions(3))
    assert worth.shape == (4, 2, 8)
    for row in range(4):
        for number, known in enumerate(all_coalitions(3)):
            mixed = torch.where(known, X[row], BACKGROUND)
            assert torch.allclose(worth[row, :, number], squares(mixed).mean(0))


def test_batches_do_not_change_results(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Interventional(squares, BACKGROUND)(X, all_coalitions(3))
    monkeypatch.setattr(batching, "MAX_BATCH_SIZE", 15)
    assert torch.equal(Interventional(squares, BACKGROUND)(X, all_coalitions(3)), whole)


def test_each_background_row_may_have_its_own_coalitions(monkeypatch: pytest.MonkeyPatch) -> None:
    value = Interventional(squares, BACKGROUND)
    asked = torch.rand(5, 6, 3, generator=torch.Generator().manual_seed(0)) < 0.5
    worth = value.per_background_row(X, asked)
    assert worth.shape == (5, 4, 2, 6)
    for other in range(5):
        assert torch.allclose(worth[other], value.subset(slice(other, other + 1))(X, asked[other]))
    monkeypatch.setattr(batching, "MAX_BATCH_SIZE", 7)
    assert torch.equal(value.per_background_row(X, asked), worth)
    assert as_background_average(value) is value
    one = as_background_average(ConditionalGaussian(squares, BACKGROUND, num_draws=2))
    assert one.per_background_row(X, asked[:1]).shape == (1, 4, 2, 6)
    assert one.subset(slice(0, 1)).background_size == 1


def test_groups_come_and_go_together() -> None:
    groups = torch.tensor([[True, False, True], [False, True, False]])
    value = Interventional(squares, BACKGROUND, groups)
    assert isinstance(value, ValueFunction)
    assert value.players == 2
    assert torch.equal(expand_groups(torch.tensor([[True, False]]), groups), torch.tensor([[True, False, True]]))
    first = value(X, torch.tensor([[True, False]]))
    assert torch.allclose(first, Interventional(squares, BACKGROUND)(X, torch.tensor([[True, False, True]])))


def test_the_mean_stands_for_what_is_missing() -> None:
    worth = mean_imputation(squares, BACKGROUND)(X, torch.zeros(1, 3, dtype=torch.bool))
    assert torch.allclose(worth[0, :, 0], squares(BACKGROUND.mean(0, keepdim=True))[0])


def test_a_gaussian_guess_follows_what_is_known() -> None:
    first = standard_normal(4_000, 1, seed=2)
    background = torch.cat([first, 3 * first + 0.1 * standard_normal(4_000, 1, seed=3)], 1)
    x = torch.tensor([[2.0, -1.0]], dtype=torch.float64)
    known = torch.tensor([[True, False], [False, False], [True, True]])
    worth = ConditionalGaussian(lambda z: z[:, 1:], background, num_draws=64)(x, known)[0, 0]
    assert worth.tolist() == pytest.approx([6.0, float(background[:, 1].mean()), -1.0], abs=0.02)


def test_the_errors_of_guesses_show_in_repeats() -> None:
    """Of a sum of squares worths are known: E z² is the square of the mean and the variance, given what is known."""
    x, every = BACKGROUND[:2], all_coalitions(3)
    joint = Gaussian(BACKGROUND.mean(0), torch.cov(BACKGROUND.mT))
    worth = torch.zeros(2, len(every), dtype=torch.float64)
    for place, known in enumerate(every):
        seen = known.nonzero()[:, 0].tolist()
        rest = condition(joint, x[:, known], observed=seen) if 0 < len(seen) < 3 else joint
        guessed = (rest.mean.square() + rest.covariance.diagonal()).sum(-1) if len(seen) < 3 else torch.zeros(2)
        worth[:, place] = x[:, known].square().sum(1) + guessed
    truth = shapley_values(worth - worth[:, :1])

    def repeated(model: Model) -> Attribution:
        return average_repeats(
            [explain_exactly(ConditionalGaussian(model, BACKGROUND, 64, seed), x) for seed in range(8)]
        )

    found = repeated(lambda z: z.square().sum(1, keepdim=True))
    off = (found.values[:, 0] - truth).abs()
    assert bool((off < 3 * found.errors[:, 0]).all())
    assert bool((found.errors > 0.003).all())
    assert float(off.square().mean().sqrt()) > 0.2 * float(found.errors.square().mean().sqrt())
    assert torch.allclose(found.prediction[:, 0], x.square().sum(1))
    assert float(repeated(lambda z: z.sum(1, keepdim=True)).errors.max()) < 1e-12


def test_wrong_input_is_rejected() -> None:
    with pytest.raises(ValueError, match="same features; got 2 and 3"):
        Interventional(squares, BACKGROUND)(X[:, :2], all_coalitions(3))
    with pytest.raises(ValueError, match="rows of features"):
        Interventional(squares, BACKGROUND[:0])
    with pytest.raises(ValueError, match="in one group"):
        Interventional(squares, BACKGROUND, torch.ones(2, 3, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"two (background )?rows"):
        ConditionalGaussian(squares, BACKGROUND[:1])
