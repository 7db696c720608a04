"""Gaussian conditioning against regression, Bayes' rule in precisions and densities."""

import pytest
import torch
from torch import Tensor

from parnassus.probability import Gaussian, condition, joint_of_independent, solve_by_cholesky, solve_by_pseudo_inverse


def random_gaussian(dim: int, *, rank: int | None = None, seed: int = 0) -> Gaussian:
    torch.manual_seed(seed)
    factor = torch.randn(dim, rank or dim, dtype=torch.float64)
    return Gaussian(torch.randn(dim, dtype=torch.float64), factor @ factor.mT)


def test_conditional_of_a_pair_matches_hand_computation() -> None:
    joint = Gaussian(torch.tensor([1.0, -1.0]), torch.tensor([[2.0, 0.5], [0.5, 1.0]]))
    conditional = condition(joint, torch.tensor([1.0]), observed=[1])
    assert conditional.mean.tolist() == pytest.approx([2.0])  # 1 + ½ · (1 + 1)
    assert conditional.covariance.tolist() == [pytest.approx([1.75])]  # 2 − ½²


def test_posterior_of_a_linear_model_matches_the_precision_form() -> None:
    """For y = Ax + noise: Σ = (Λ + AᵀLA)⁻¹ and μ = Σ (AᵀLy + Λm)."""
    prior, noise = random_gaussian(3), random_gaussian(2, seed=1)
    noise = Gaussian(torch.zeros(2, dtype=torch.float64), noise.covariance)
    A, y = torch.randn(2, 3, dtype=torch.float64), torch.randn(2, dtype=torch.float64)
    unit = torch.eye(3, dtype=torch.float64), torch.zeros(3, 2, dtype=torch.float64)
    joint_map = torch.cat([torch.cat(unit, 1), torch.cat([A, torch.eye(2, dtype=torch.float64)], 1)])
    conditional = condition(joint_of_independent(prior, noise).affine(joint_map), y, observed=[3, 4])
    precision, weight = torch.linalg.inv(prior.covariance), torch.linalg.inv(noise.covariance)
    covariance = torch.linalg.inv(precision + A.mT @ weight @ A)
    torch.testing.assert_close(conditional.covariance, covariance)
    torch.testing.assert_close(conditional.mean, covariance @ (A.mT @ weight @ y + precision @ prior.mean))


def test_conditional_mean_matches_least_squares() -> None:
    joint = random_gaussian(3)
    z = joint.sample(200_000)
    design = torch.cat([torch.ones(len(z), 1, dtype=torch.float64), z[:, 1:]], 1)
    slopes = torch.linalg.lstsq(design, z[:, :1]).solution
    values = torch.randn(6, 2, dtype=torch.float64)
    expected = torch.cat([torch.ones(6, 1, dtype=torch.float64), values], 1) @ slopes
    torch.testing.assert_close(condition(joint, values, observed=[1, 2]).mean, expected, atol=0.02, rtol=0.02)


@pytest.mark.parametrize("solve", [solve_by_cholesky, solve_by_pseudo_inverse])
def test_batched_conditioning_matches_single_calls(solve: object) -> None:
    distributions = [random_gaussian(4, seed=seed) for seed in range(3)]
    batch = Gaussian(
        torch.stack([distribution.mean for distribution in distributions]),
        torch.stack([distribution.covariance for distribution in distributions]),
    )
    y = torch.randn(5, 3, 2, dtype=torch.float64)
    conditional = condition(batch, y, observed=[2, 0], solve=solve)  # type: ignore[arg-type]
    for j, distribution in enumerate(distributions):
        single = condition(distribution, y[4, j], observed=[2, 0])
        torch.testing.assert_close(conditional.mean[4, j], single.mean)
        torch.testing.assert_close(conditional.covariance[j], single.covariance)


def test_order_of_observed_coordinates_follows_the_values() -> None:
    joint, y = random_gaussian(4), torch.tensor([0.3, -1.0], dtype=torch.float64)
    forward, backward = condition(joint, y, observed=[1, 3]), condition(joint, y.flip(0), observed=[3, 1])
    torch.testing.assert_close(forward.mean, backward.mean)


def test_determined_coordinate_has_zero_variance() -> None:
    gaussian = random_gaussian(2).affine(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]], dtype=torch.float64))
    z = gaussian.sample(1)[0]
    conditional = condition(gaussian, z[:2], observed=[0, 1])
    torch.testing.assert_close(conditional.mean, z[2:])
    assert conditional.covariance.tolist() == [[0.0]]
    assert int(conditional.rank) == 0


def test_duplicate_observation_does_not_change_the_conditional() -> None:
    """Observing a coordinate twice is equivalent to observing it once."""
    joint = random_gaussian(3)
    double = joint.affine(torch.tensor([[1, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]], dtype=torch.float64))
    y = torch.tensor([0.7, 0.7], dtype=torch.float64)
    single, duplicated = condition(joint, y[:1], observed=[2]), condition(double, y, observed=[2, 3])
    torch.testing.assert_close(duplicated.mean, single.mean)
    torch.testing.assert_close(duplicated.covariance, single.covariance)
    with pytest.raises(ValueError, match=r"have probability 0: they lie .* outside the support"):
        condition(double, torch.tensor([0.7, 0.8], dtype=torch.float64), observed=[2, 3])


def test_gradcheck() -> None:
    joint = random_gaussian(4)
    covariance = joint.covariance.clone().requires_grad_()

    def conditional_mean(sigma: Tensor) -> Tensor:
        return condition(Gaussian(joint.mean, sigma), joint.mean[:2] + 1, observed=[0, 1], solve=solve_by_cholesky).mean

    assert torch.autograd.gradcheck(lambda sigma: conditional_mean((sigma + sigma.mT) / 2), (covariance,))


@pytest.mark.parametrize(
    ("observed", "count", "message"),
    [
        ([0, 0], 2, "distinct coordinates from 0 to 2; got"),
        ([3], 1, "distinct coordinates from 0 to 2; got"),
        ([0], 2, "need one value per observed coordinate"),
        ([0, 1, 2], 3, "and an unobserved one; got 3 values"),
        ([], 0, "need one value per observed coordinate"),
    ],
)
def test_invalid_coordinates_raise_value_error(observed: list[int], count: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        condition(random_gaussian(3), torch.zeros(count, dtype=torch.float64), observed=observed)
