"""The discrepancy of two samples against its closed form, a plain double loop and its laws."""

import pytest
import torch
from torch import Tensor

from parnassus.probability.mmd import (
    RBF,
    InverseMultiquadric,
    Likeness,
    normal_squared_mmd,
    squared_mmd,
    unbiased_squared_mmd,
)

DOUBLE = torch.float64
KERNELS = [RBF(0.7), InverseMultiquadric(2.0)]


def draw(count: int, seed: int, *, mean: float = 0.0, std: float = 1.0) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return mean + std * torch.randn(count, 2, generator=generator, dtype=DOUBLE)


def one_by_one(x: Tensor, y: Tensor, kernel: Likeness, *, skip: bool) -> float:
    """The mean over pairs, written as loops."""
    values = [
        float(kernel(a[None], b[None])) for i, a in enumerate(x) for j, b in enumerate(y) if not (skip and i == j)
    ]
    return sum(values) / len(values)


def test_kernels_are_their_formulas() -> None:
    x, y = torch.tensor([[0.0, 0.0], [1.0, 2.0]], dtype=DOUBLE), torch.tensor([[3.0, 4.0]], dtype=DOUBLE)
    distances = torch.tensor([[25.0], [8.0]], dtype=DOUBLE)
    torch.testing.assert_close(RBF(2.0)(x, y), (-distances / 8).exp())
    torch.testing.assert_close(InverseMultiquadric(3.0)(x, y), 3 / (3 + distances))


@pytest.mark.parametrize("kernel", KERNELS, ids=["rbf", "multiquadric"])
def test_both_forms_are_means_over_pairs(kernel: Likeness) -> None:
    x, y = draw(5, 0), draw(7, 1, mean=1.0)
    across = one_by_one(x, y, kernel, skip=False)
    for form, skip in ((squared_mmd, False), (unbiased_squared_mmd, True)):
        wanted = one_by_one(x, x, kernel, skip=skip) + one_by_one(y, y, kernel, skip=skip) - 2 * across
        assert float(form(x, y, kernel=kernel)) == pytest.approx(wanted, abs=1e-12)


@pytest.mark.parametrize("kernel", KERNELS, ids=["rbf", "multiquadric"])
def test_a_sample_has_no_distance_from_itself_and_the_biased_form_is_never_negative(kernel: Likeness) -> None:
    x = draw(40, 0)
    assert float(squared_mmd(x, x, kernel=kernel)) == pytest.approx(0, abs=1e-12)
    assert all(float(squared_mmd(draw(10, seed), draw(10, 100 + seed), kernel=kernel)) > 0 for seed in range(50))


def test_the_unbiased_form_has_the_mean_of_the_closed_form() -> None:
    kernel, one, other = RBF(0.8), torch.tensor([0.0, 0.0], dtype=DOUBLE), torch.tensor([0.6, 0.6], dtype=DOUBLE)
    exact = normal_squared_mmd(one, one + 1, other, one + 1.5**2, kernel=kernel)
    values = torch.stack(
        [
            unbiased_squared_mmd(draw(30, seed), draw(30, 1_000 + seed, mean=0.6, std=1.5), kernel=kernel)
            for seed in range(400)
        ]
    )
    assert abs(float(values.mean() - exact)) < 4 * float(values.std()) / 400**0.5
    assert float(values.min()) < 0 < float(exact)


def test_equal_normals_have_none() -> None:
    mean, variance = torch.tensor([0.3, -2.0]), torch.tensor([1.0, 0.2])
    assert float(normal_squared_mmd(mean, variance, mean, variance, kernel=RBF())) == pytest.approx(0, abs=1e-7)


def test_gradients_are_finite_where_points_meet() -> None:
    x = torch.zeros(4, 2, requires_grad=True)
    squared_mmd(x, torch.zeros(4, 2), kernel=RBF()).backward()
    assert x.grad is not None
    assert bool(x.grad.isfinite().all())


def test_wrong_input_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match="the width of a kernel must be positive; got width=0"):
        RBF(0.0)
    with pytest.raises(ValueError, match="the scale of a kernel must be positive; got scale=-1"):
        InverseMultiquadric(-1.0)
    with pytest.raises(ValueError, match="needs points in both; got 0 and 3"):
        squared_mmd(draw(0, 0), draw(3, 0), kernel=RBF())
    with pytest.raises(ValueError, match="need two in each sample; got 3 and 1"):
        unbiased_squared_mmd(draw(3, 0), draw(1, 0), kernel=RBF())
