"""Samples that are determined by a seed."""

import torch

from parnassus.probability import (
    float64_tensor,
    points_on_sphere,
    random_orthogonal,
    seeded_generator,
    standard_normal,
    uniform_samples,
)


def test_samples_depend_on_the_seed_alone() -> None:
    torch.manual_seed(7)
    state = torch.get_rng_state()
    for sample in (standard_normal, uniform_samples, points_on_sphere):
        torch.testing.assert_close(sample(5, 3, seed=4), sample(5, 3, seed=4), rtol=0, atol=0)
        assert not bool((sample(5, 3, seed=4) == sample(5, 3, seed=5)).any())
    assert torch.equal(torch.get_rng_state(), state)


def test_samples_are_those_of_a_seeded_generator() -> None:
    for sample, draw in ((standard_normal, torch.randn), (uniform_samples, torch.rand)):
        expected = draw((4, 2), generator=seeded_generator(9), dtype=torch.float64)
        torch.testing.assert_close(sample(4, 2, seed=9), expected, rtol=0, atol=0)


def test_points_on_the_sphere_have_norm_one_and_mean_zero() -> None:
    points = points_on_sphere(20_000, 3)
    torch.testing.assert_close(points.norm(dim=1), torch.ones(20_000, dtype=torch.float64))
    torch.testing.assert_close(points.mean(0), torch.zeros(3, dtype=torch.float64), rtol=0, atol=0.02)


def test_random_orthogonal_matrices_have_orthonormal_columns() -> None:
    generator = seeded_generator()
    first, second = (random_orthogonal(4, generator=generator) for _ in range(2))
    for q in (first, second):
        torch.testing.assert_close(q.mT @ q, torch.eye(4, dtype=torch.float64))
    assert not first.allclose(second)  # the generator advances


def test_values_are_in_double_precision() -> None:
    torch.testing.assert_close(float64_tensor(0.1, 2), torch.tensor([0.1, 2], dtype=torch.float64), rtol=0, atol=0)
