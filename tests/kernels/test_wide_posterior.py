"""The probe of wide networks, asked from outside: what its numbers must say."""

from parnassus.kernels.probes.wide_posterior import SIGMAS, wide_posterior
from parnassus.touch import Numbers, Path

RELU = tuple(SIGMAS).index("ReLU")


def farthest(**controls: float) -> float:
    """How far the mean stays from the target that it misses most."""
    numbers = wide_posterior(noise=1e-4, **controls)[-1]  # type: ignore[arg-type]
    assert isinstance(numbers, Numbers)
    return float(numbers.values["farthest from a target"])


def test_without_a_bias_relu_knows_two_rays_only() -> None:
    assert farthest(sigma=RELU, depth=2, bias=0.0) > 0.5
    assert farthest(sigma=RELU, depth=2, bias=1.0) < 0.05


def test_the_tangent_kernel_comes_closer() -> None:
    assert farthest(kind=1, sigma=RELU, depth=2, bias=1.0) < farthest(kind=0, sigma=RELU, depth=2, bias=1.0)


def test_without_targets_the_prior_is_shown() -> None:
    path, _, numbers = wide_posterior(())
    assert isinstance(path, Path)
    assert isinstance(numbers, Numbers)
    assert bool((path.places["mean"][:, 1] == 0).all())
    assert "farthest from a target" not in numbers.values
