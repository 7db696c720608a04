from collections.abc import Callable
from math import pi

import pytest
import torch

from parnassus.data import Split
from parnassus.data.built_in.toy import (
    TINY_CLASSES,
    TINY_PROTOTYPES,
    boolean_table,
    checkerboard,
    curve,
    eight_gaussians,
    linear,
    moons,
    polynomial,
    rings,
    sines,
    spirals,
    swiss_roll,
    tiny_images,
    xor,
)

GENERATORS = [
    moons,
    rings,
    spirals,
    eight_gaussians,
    checkerboard,
    swiss_roll,
    sines,
    curve,
    linear,
    polynomial,
    tiny_images,
]
NOISE_ON_TARGETS = (curve, linear, polynomial)


def labels(split: Split) -> torch.Tensor:
    assert split.y is not None
    return split.y


@pytest.mark.parametrize("generator", GENERATORS)
def test_generators_are_reproducible_and_do_not_change_the_global_generator(generator: Callable[..., Split]) -> None:
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first, repeated, other = generator(64, seed=5), generator(64, seed=5), generator(64, seed=6)
    assert torch.get_rng_state().equal(before)
    assert first.x.equal(repeated.x)
    assert labels(first).equal(labels(repeated))
    assert not first.x.equal(other.x)
    assert first.x.dtype == torch.float32
    assert len(first) == 64


@pytest.mark.parametrize("generator", GENERATORS)
def test_noise_has_the_given_standard_deviation(generator: Callable[..., Split]) -> None:
    clean, noisy = generator(4_000, noise=0.0, seed=2), generator(4_000, noise=0.3, seed=2)
    added_noise = (labels(noisy) - labels(clean)) if generator in NOISE_ON_TARGETS else (noisy.x - clean.x)
    assert abs(float(added_noise.std()) - 0.3) < 0.02
    with pytest.raises(ValueError, match="noise must not be negative"):
        generator(4, noise=-1.0)


def test_xor_has_four_rows() -> None:
    assert xor().x.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert labels(xor()).tolist() == [0, 1, 1, 0]


def test_truth_table_has_every_row_once() -> None:
    majority = boolean_table(3, lambda bits: bits.sum(1) >= 2)
    assert len({tuple(row) for row in majority.x.tolist()}) == 8
    assert labels(majority).tolist() == [0, 0, 0, 1, 0, 1, 1, 1]
    with pytest.raises(ValueError, match="inputs must be from 1 to 20; got inputs=0"):
        boolean_table(0, lambda bits: bits.sum(1))


def test_moons_lie_on_two_half_circles() -> None:
    split = moons(500, noise=0.0)
    upper, lower = (split.x[labels(split) == label] for label in (0, 1))
    torch.testing.assert_close(upper.norm(dim=1), torch.ones(250))
    torch.testing.assert_close((lower - torch.tensor([1.0, 0.5])).norm(dim=1), torch.ones(250))
    assert upper[:, 1].min() >= 0
    assert lower[:, 1].max() <= 0.5


def test_rings_have_the_given_radii() -> None:
    split = rings(600, noise=0.0, radii=(0.5, 1.0, 2.0))
    torch.testing.assert_close(split.x.norm(dim=1), torch.tensor([0.5, 1.0, 2.0])[labels(split)])


def test_angle_of_a_spiral_is_linear_in_the_radius() -> None:
    split = spirals(900, noise=0.0, arms=3, turns=0.25)
    radius = split.x.norm(dim=1)
    angle = torch.atan2(split.x[:, 1], split.x[:, 0])
    expected = 2 * pi * (0.25 * radius + labels(split) / 3)
    torch.testing.assert_close((angle - expected).cos(), torch.ones(900), atol=1e-4, rtol=0)
    assert radius.max() <= 1


def test_means_of_eight_gaussians_lie_on_a_circle() -> None:
    split = eight_gaussians(8_000, noise=0.2)
    means = torch.stack([split.x[labels(split) == label].mean(0) for label in range(8)])
    torch.testing.assert_close(means.norm(dim=1), torch.full((8,), 2.0), atol=0.03, rtol=0)
    torch.testing.assert_close(means[0], torch.tensor([2.0, 0.0]), atol=0.03, rtol=0)
    assert abs(float(split.x[labels(split) == 3].std(0).mean()) - 0.2) < 0.01


def test_checkerboard_leaves_white_squares_empty() -> None:
    split = checkerboard(4_000)
    squares = split.x.floor()
    assert (squares.sum(1) % 2 == 0).all()
    assert len({tuple(square) for square in squares.tolist()}) == 8
    assert split.x.abs().max() <= 2


def test_swiss_roll_matches_its_parametrisation() -> None:
    split = swiss_roll(1_000)
    t, height = labels(split).T
    torch.testing.assert_close(split.x[:, [0, 2]].norm(dim=1), t)
    assert split.x[:, 1].equal(height)
    assert (1.5 * pi <= t).all()
    assert (t <= 4.5 * pi).all()


def test_sines_have_their_frequency_and_phase() -> None:
    split = sines(50, length=128)
    assert split.x.shape == (50, 128, 1)
    frequency, phase = labels(split).T
    torch.testing.assert_close(split.x[:, 0, 0], phase.sin())
    torch.testing.assert_close(split.x[:, 64, 0], (pi * frequency + phase).sin(), atol=1e-5, rtol=0)


def test_curve_has_the_values_of_its_function() -> None:
    split = curve(100, lambda x: x**2, noise=0.0, low=0.0, high=3.0)
    torch.testing.assert_close(labels(split), split.x**2)
    assert 0 <= split.x.min() <= split.x.max() <= 3


def test_zero_count_raises_value_error() -> None:
    with pytest.raises(ValueError, match="count must be positive; got count=0"):
        moons(0)


def test_linear_data_without_noise_lie_on_the_plane() -> None:
    clean = linear(50, (1.0, -2.0, 0.5), 3.0, noise=0.0, seed=4)
    expected = clean.x[:, 0] - 2 * clean.x[:, 1] + 0.5 * clean.x[:, 2] + 3
    torch.testing.assert_close(labels(clean), expected)


def test_polynomial_data_without_noise_lie_on_the_cubic() -> None:
    clean = polynomial(50, noise=0.0, seed=4)
    x = clean.x
    torch.testing.assert_close(labels(clean), 5 + 1.2 * x - 1.7 * x**2 + 5.6 / 6 * x**3)
    assert float(x.abs().max()) <= 1


def test_tiny_images_are_their_prototypes_without_noise() -> None:
    clean = tiny_images(9, noise=0.0)
    assert clean.x.shape == (9, 1, 2, 2)
    assert labels(clean).tolist() == [0, 1, 2] * 3
    for kind, pixels in enumerate(TINY_PROTOTYPES):
        torch.testing.assert_close(clean.x[kind].flatten(), torch.tensor(pixels))
    assert len(TINY_CLASSES) == len(TINY_PROTOTYPES)
