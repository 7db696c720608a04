"""Random features compared with the kernels they approximate."""

import pytest
import torch

from parnassus.attention import (
    antithetic_pairs,
    cosh_features,
    draw_phases,
    fourier_features,
    gaussian_directions,
    log_positive_features,
    orthogonal_directions,
    positive_features,
    positive_rbf_features,
)
from parnassus.probability import seeded_generator, standard_normal


def test_positive_features_match_their_formula() -> None:
    x, directions = torch.tensor([[1.0, 2.0]]), torch.tensor([[1.0, 0.0], [0.0, -1.0]])
    expected = torch.tensor([[1.0 - 2.5, -2.0 - 2.5]]).exp() / 2**0.5
    torch.testing.assert_close(positive_features(x, directions), expected)
    torch.testing.assert_close(log_positive_features(x, directions), expected.log())


def test_product_of_cosh_features_matches_closed_form() -> None:
    x, y = standard_normal(2, 5)
    directions = gaussian_directions(7, 5, generator=seeded_generator(1)).double()
    product = cosh_features(x, directions) @ cosh_features(y, directions)
    expected = (-(x.square().sum() + y.square().sum()) / 2).exp() * (directions @ (x + y)).cosh().mean()
    torch.testing.assert_close(product, expected)
    assert antithetic_pairs(directions).shape == (14, 5)


def test_orthogonal_directions_have_chi_distributed_norms() -> None:
    directions = orthogonal_directions(10, 4, generator=seeded_generator())
    for block in (directions[:4], directions[4:8]):
        products = block @ block.mT
        torch.testing.assert_close(products, torch.diag(products.diagonal()), atol=1e-5, rtol=0)
    samples = torch.cat([orthogonal_directions(4, 4, generator=seeded_generator(s)) for s in range(3_000)])
    torch.testing.assert_close(samples.mT @ samples / len(samples), torch.eye(4), atol=0.05, rtol=0)
    torch.testing.assert_close(samples.mean(0), torch.zeros(4), atol=0.05, rtol=0)
    torch.testing.assert_close(samples.pow(4).mean(), torch.tensor(3.0), atol=0.2, rtol=0)  # fourth moment of N(0, 1)


def test_rbf_features_approximate_the_kernel() -> None:
    x = 0.5 * standard_normal(6, 3)
    kernel = (-0.8 * torch.cdist(x, x).square()).exp()
    directions = gaussian_directions(200_000, 3, generator=seeded_generator(1)).double()
    phases = draw_phases(200_000, generator=seeded_generator(2)).double()
    for psi in (
        positive_rbf_features(x, directions, gamma=0.8),
        fourier_features(x, directions, phases, gamma=0.8),
    ):
        torch.testing.assert_close(psi @ psi.mT, kernel, atol=0.05, rtol=0)


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="count and width must be at least 1; got count=0, width=3"):
        gaussian_directions(0, 3)
    with pytest.raises(ValueError, match="count and width must be at least 1; got count=3, width=0"):
        orthogonal_directions(3, 0)
    with pytest.raises(ValueError, match="gamma must be positive; got gamma=0"):
        positive_rbf_features(torch.zeros(1, 2), torch.zeros(3, 2), gamma=0.0)
    with pytest.raises(ValueError, match="gamma must be positive; got gamma=-1"):
        fourier_features(torch.zeros(1, 2), torch.zeros(3, 2), torch.zeros(3), gamma=-1.0)
