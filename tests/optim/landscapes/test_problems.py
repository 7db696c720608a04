"""Problems: declared minimisers and curvatures."""

import pytest
import torch
from torch.func import grad, jacrev, vmap

from parnassus.optim import (
    OptimisationProblem,
    ellipse,
    gradient_descent,
    huber_worst_case,
    infinity_norm,
    quadratic,
    quartic,
    ridge_logistic,
    smooth_problems,
)
from parnassus.probability import standard_normal

NAMES = list(smooth_problems())


@pytest.mark.parametrize("name", NAMES)
def test_no_point_is_lower_than_the_minimiser(name: str) -> None:
    problem = smooth_problems()[name]
    near = problem.minimiser + 1e-3 * standard_normal(500, len(problem.start))
    far = problem.minimiser + 5 * standard_normal(500, len(problem.start))
    assert bool((problem.excess(torch.cat([near, far])) >= 0).all())
    torch.testing.assert_close(problem.gradients(problem.minimiser[None])[0], 0 * problem.start, atol=1e-12, rtol=0)


@pytest.mark.parametrize("name", NAMES)
def test_second_derivatives_lie_between_alpha_and_beta(name: str) -> None:
    problem = smooth_problems()[name]
    inside = problem.start.abs().max() * (2 * torch.rand(400, len(problem.start), dtype=torch.float64) - 1)
    spectrum = torch.linalg.eigvalsh(vmap(jacrev(grad(problem.loss)))(torch.cat([inside, problem.minimiser[None]])))
    assert float(spectrum.min()) >= problem.alpha - 1e-10
    assert float(spectrum.max()) <= problem.beta + 1e-10


def test_quadratic_has_the_given_spectrum() -> None:
    spectrum = torch.tensor([0.0, 0.5, 2.0, 7.0], dtype=torch.float64)
    problem = quadratic(spectrum, generator=torch.Generator().manual_seed(0))
    torch.testing.assert_close(torch.linalg.eigvalsh(jacrev(grad(problem.loss))(problem.start)), spectrum)
    assert (problem.alpha, problem.beta) == (0.0, 7.0)


def test_egg_box_attains_both_curvature_bounds() -> None:
    problem = smooth_problems()["egg box"]
    points = torch.tensor([[0.0], [torch.pi / 2]], dtype=torch.float64)
    torch.testing.assert_close(vmap(jacrev(grad(problem.loss)))(points).flatten(), torch.tensor([9.0, -7.0]).double())


def test_radius_is_the_distance_from_start_to_minimiser() -> None:
    assert ellipse(3.0).radius == pytest.approx(10**0.5)


@pytest.mark.parametrize("steps", [1, 4, 30])
def test_descent_on_the_worst_case_huber_loss_stays_on_the_linear_part(steps: int) -> None:
    problem = huber_worst_case(float(steps), beta=3.0, radius=2.0)
    path = gradient_descent(problem.loss, problem.start, learning_rate=1 / 3, steps=steps)
    torch.testing.assert_close(-path.diff(dim=0)[:, 0], torch.full((steps,), 2 / (2 * steps + 1)).double())
    assert float(problem.excess(path)[-1]) == pytest.approx(3 * 4 / (4 * steps + 2))


def test_infinity_norm_matches_torch() -> None:
    problem = infinity_norm(torch.zeros(5, dtype=torch.float64))
    w = standard_normal(20, 5)
    torch.testing.assert_close(problem.excess(w), torch.linalg.vector_norm(w, ord=torch.inf, dim=1))
    assert bool((problem.gradients(w).abs().sum(1) <= 1).all())


def test_descent_on_a_quartic_stays_within_the_cube_where_beta_holds() -> None:
    problem = quartic(torch.tensor([2.0, -1.0], dtype=torch.float64))
    path = gradient_descent(problem.loss, problem.start, learning_rate=2 / problem.beta, steps=50)
    assert float(path.abs().max()) <= 2.0


def test_invalid_problems_raise_value_error() -> None:
    one = torch.ones(1, dtype=torch.float64)
    with pytest.raises(ValueError, match=r"need alpha ≤ beta and beta > 0; got alpha=2\.0, beta=1\.0"):
        OptimisationProblem(torch.sum, one, one, alpha=2.0, beta=1.0)
    with pytest.raises(ValueError, match="the spectrum must be ≥ 0 and not all 0"):
        quadratic(-one, generator=torch.Generator())
    with pytest.raises(ValueError, match=r"at least 1; got condition_number=0\.5"):
        ellipse(0.5)
    with pytest.raises(ValueError, match=r"labels ±1 and ridge > 0; got labels \[0\.0\]"):
        ridge_logistic(one[:, None], 0 * one, ridge=1.0)
    with pytest.raises(ValueError, match=r"displacement ≥ 0 and radius > 0; got displacement=-1"):
        huber_worst_case(-1.0)
