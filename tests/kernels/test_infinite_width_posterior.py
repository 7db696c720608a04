"""The probe of wide networks: its values."""

from parnassus.kernels.probes.infinite_width_posterior import SIGMAS, infinite_width_posterior
from parnassus.widgets import Numbers, Trajectories

RELU = tuple(SIGMAS).index("ReLU")


def largest_error(**controls: float) -> float:
    """The largest error of the mean at a target."""
    numbers = infinite_width_posterior(noise=1e-4, **controls)[-1]  # type: ignore[arg-type]
    assert isinstance(numbers, Numbers)
    return float(numbers.values["largest error at a target"])


def test_relu_networks_without_bias_cannot_fit_the_targets() -> None:
    assert largest_error(sigma=RELU, depth=2, bias=0.0) > 0.5
    assert largest_error(sigma=RELU, depth=2, bias=1.0) < 0.05


def test_ntk_has_a_smaller_error_than_nngp() -> None:
    assert largest_error(kind=1, sigma=RELU, depth=2, bias=1.0) < largest_error(kind=0, sigma=RELU, depth=2, bias=1.0)


def test_prior_is_shown_without_targets() -> None:
    path, _, numbers = infinite_width_posterior(())
    assert isinstance(path, Trajectories)
    assert isinstance(numbers, Numbers)
    assert bool((path.paths["mean"][:, 1] == 0).all())
    assert "largest error at a target" not in numbers.values
