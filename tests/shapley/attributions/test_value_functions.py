"""Value functions: unknown features from the background, from means, or given the known ones."""

import pytest
import torch
from torch import Tensor

from parnassus.probability import standard_normal
from parnassus.probability.distributions.gaussian import Gaussian
from parnassus.probability.distributions.gaussian_conditioning import condition
from parnassus.shapley.attributions import batching
from parnassus.shapley.attributions.attribution import Attribution, average_repeats, explain_exactly
from parnassus.shapley.attributions.conditional_gaussian import ConditionalGaussianValue
from parnassus.shapley.attributions.interventional import InterventionalValue, mean_imputation
from parnassus.shapley.attributions.model_adapters import Model
from parnassus.shapley.attributions.value_functions import ValueFunction, as_background_average, expand_groups
from parnassus.shapley.games.cooperative_games import all_coalitions
from parnassus.shapley.games.shapley_values import shapley_values


def squares(x: Tensor) -> Tensor:
    return torch.stack([x.square().sum(1), x.prod(1)], 1)


BACKGROUND, X = standard_normal(5, 3), standard_normal(4, 3, seed=1)


def test_worths_are_means_over_the_background() -> None:
    worth = InterventionalValue(squares, BACKGROUND)(X, all_coalitions(3))
    assert worth.shape == (4, 2, 8)
    for row in range(4):
        for index, is_known in enumerate(all_coalitions(3)):
            mixed = torch.where(is_known, X[row], BACKGROUND)
            assert torch.allclose(worth[row, :, index], squares(mixed).mean(0))


def test_batches_do_not_change_results(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = InterventionalValue(squares, BACKGROUND)(X, all_coalitions(3))
    monkeypatch.setattr(batching, "MAX_BATCH_SIZE", 15)
    assert torch.equal(InterventionalValue(squares, BACKGROUND)(X, all_coalitions(3)), expected)


def test_each_background_row_may_have_its_own_coalitions(monkeypatch: pytest.MonkeyPatch) -> None:
    value = InterventionalValue(squares, BACKGROUND)
    coalitions = torch.rand(5, 6, 3, generator=torch.Generator().manual_seed(0)) < 0.5
    worth = value.per_background_row(X, coalitions)
    assert worth.shape == (5, 4, 2, 6)
    for index in range(5):
        assert torch.allclose(worth[index], value.subset(slice(index, index + 1))(X, coalitions[index]))
    monkeypatch.setattr(batching, "MAX_BATCH_SIZE", 7)
    assert torch.equal(value.per_background_row(X, coalitions), worth)
    assert as_background_average(value) is value
    average = as_background_average(ConditionalGaussianValue(squares, BACKGROUND, num_draws=2))
    assert average.per_background_row(X, coalitions[:1]).shape == (1, 4, 2, 6)
    assert average.subset(slice(0, 1)).background_size == 1


def test_features_of_a_group_are_masked_together() -> None:
    groups = torch.tensor([[True, False, True], [False, True, False]])
    value = InterventionalValue(squares, BACKGROUND, groups)
    assert isinstance(value, ValueFunction)
    assert value.players == 2
    assert torch.equal(expand_groups(torch.tensor([[True, False]]), groups), torch.tensor([[True, False, True]]))
    first = value(X, torch.tensor([[True, False]]))
    assert torch.allclose(first, InterventionalValue(squares, BACKGROUND)(X, torch.tensor([[True, False, True]])))


def test_mean_imputation_replaces_unknown_features_by_their_mean() -> None:
    worth = mean_imputation(squares, BACKGROUND)(X, torch.zeros(1, 3, dtype=torch.bool))
    assert torch.allclose(worth[0, :, 0], squares(BACKGROUND.mean(0, keepdim=True))[0])


def test_conditional_gaussian_follows_the_known_features() -> None:
    first = standard_normal(4_000, 1, seed=2)
    background = torch.cat([first, 3 * first + 0.1 * standard_normal(4_000, 1, seed=3)], 1)
    x = torch.tensor([[2.0, -1.0]], dtype=torch.float64)
    known = torch.tensor([[True, False], [False, False], [True, True]])
    worth = ConditionalGaussianValue(lambda z: z[:, 1:], background, num_draws=64)(x, known)[0, 0]
    assert worth.tolist() == pytest.approx([6.0, float(background[:, 1].mean()), -1.0], abs=0.02)


def test_errors_of_conditional_sampling_are_estimated_from_repeats() -> None:
    """The worths of a sum of squares have a closed form: E z² = mean² + variance, given the known features."""
    x, coalitions = BACKGROUND[:2], all_coalitions(3)
    joint = Gaussian(BACKGROUND.mean(0), torch.cov(BACKGROUND.mT))
    worth = torch.zeros(2, len(coalitions), dtype=torch.float64)
    for index, is_known in enumerate(coalitions):
        observed = is_known.nonzero()[:, 0].tolist()
        rest = condition(joint, x[:, is_known], observed=observed) if 0 < len(observed) < 3 else joint
        expected_square = (
            (rest.mean.square() + rest.covariance.diagonal()).sum(-1) if len(observed) < 3 else torch.zeros(2)
        )
        worth[:, index] = x[:, is_known].square().sum(1) + expected_square
    exact = shapley_values(worth - worth[:, :1])

    def averaged(model: Model) -> Attribution:
        return average_repeats(
            [explain_exactly(ConditionalGaussianValue(model, BACKGROUND, 64, seed), x) for seed in range(8)]
        )

    result = averaged(lambda z: z.square().sum(1, keepdim=True))
    error = (result.values[:, 0] - exact).abs()
    assert bool((error < 3 * result.errors[:, 0]).all())
    assert bool((result.errors > 0.003).all())
    assert float(error.square().mean().sqrt()) > 0.2 * float(result.errors.square().mean().sqrt())
    assert torch.allclose(result.prediction[:, 0], x.square().sum(1))
    assert float(averaged(lambda z: z.sum(1, keepdim=True)).errors.max()) < 1e-12


def test_invalid_inputs_raise_value_error() -> None:
    with pytest.raises(ValueError, match="same features; got 2 and 3"):
        InterventionalValue(squares, BACKGROUND)(X[:, :2], all_coalitions(3))
    with pytest.raises(ValueError, match="rows of features"):
        InterventionalValue(squares, BACKGROUND[:0])
    with pytest.raises(ValueError, match="in one group"):
        InterventionalValue(squares, BACKGROUND, torch.ones(2, 3, dtype=torch.bool))
    with pytest.raises(ValueError, match=r"two (background )?rows"):
        ConditionalGaussianValue(squares, BACKGROUND[:1])
