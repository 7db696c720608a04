"""Calibration of predictions whose distribution is known."""

from math import log, pi

import pytest
import torch
from torch.distributions import Normal

from parnassus.kernels import (
    CalibrationCurve,
    class_probabilities,
    interval_coverage,
    negative_log_density,
    reliability,
    root_mean_squared_error,
    wilson_interval,
)

LEVELS = torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64)


def test_intervals_of_the_true_distribution_have_nominal_coverage() -> None:
    torch.manual_seed(0)
    mean, variance = torch.randn(20_000, 2).double(), torch.rand(20_000).double() + 0.1
    t = mean + variance.sqrt()[:, None] * torch.randn(20_000, 2).double()
    torch.testing.assert_close(interval_coverage(mean, variance, t, LEVELS), LEVELS, rtol=0, atol=0.01)
    assert bool((interval_coverage(mean, variance / 4, t, LEVELS) < LEVELS - 0.03).all())


def test_negative_log_density_matches_torch() -> None:
    torch.manual_seed(0)
    mean, t, variance = torch.randn(9, 2).double(), torch.randn(9, 2).double(), torch.rand(9).double()
    expected = -Normal(mean, variance.sqrt()[:, None]).log_prob(t).mean()
    torch.testing.assert_close(negative_log_density(mean, variance, t), expected)
    assert float(negative_log_density(t[:, 0], torch.ones(9).double(), t[:, 0])) == pytest.approx(log(2 * pi) / 2)
    assert float(root_mean_squared_error(mean, mean + 3)) == pytest.approx(3)


def test_two_class_probability_is_the_probit() -> None:
    mean = torch.tensor([[0.3, -0.1], [1.0, 3.0], [0.0, 0.0]], dtype=torch.float64)
    variance = torch.tensor([0.2, 1.5, 1.0], dtype=torch.float64)
    expected = torch.special.ndtr((mean[:, 0] - mean[:, 1]) / (2 * variance).sqrt())
    torch.testing.assert_close(class_probabilities(mean, variance)[:, 0], expected, rtol=0, atol=1e-8)


def test_class_probabilities_match_sampled_frequencies() -> None:
    torch.manual_seed(0)
    mean = torch.tensor([[0.5, 0.0, 0.2, -1.0]], dtype=torch.float64)
    draws = mean + 0.8**0.5 * torch.randn(200_000, 4).double()
    frequencies = torch.bincount(draws.argmax(1), minlength=4) / 200_000
    probabilities = class_probabilities(mean, torch.tensor([0.8], dtype=torch.float64))[0]
    torch.testing.assert_close(probabilities, frequencies.double(), rtol=0, atol=0.005)


def test_calibrated_probabilities_have_no_calibration_error() -> None:
    probabilities = torch.tensor([[0.8, 0.2]] * 5 + [[0.3, 0.7]] * 10, dtype=torch.float64)
    labels = torch.tensor([0, 0, 0, 0, 1] + [1] * 7 + [0] * 3)
    curve = reliability(probabilities, labels, bins=10)
    torch.testing.assert_close(curve.accuracy, torch.tensor([0.7, 0.8], dtype=torch.float64))
    torch.testing.assert_close(curve.fraction, torch.tensor([10 / 15, 5 / 15]))
    assert curve.error == pytest.approx(0.0, abs=1e-7)


def test_calibration_error_is_the_mean_gap() -> None:
    probabilities = torch.tensor([[1.0, 0.0]] * 4, dtype=torch.float64)
    curve = reliability(probabilities, torch.tensor([0, 0, 1, 1]))
    assert curve.error == pytest.approx(0.5)


def test_wilson_interval_ends_are_the_given_deviations_away() -> None:
    fraction, count = torch.tensor([0.0, 0.3, 1.0]).double(), torch.tensor([4.0, 50.0, 9.0]).double()
    for end in wilson_interval(fraction, count, deviations=2.0):
        distance = (fraction - end).abs() / (end * (1 - end) / count).sqrt()
        is_inside = (end > 1e-9) & (end < 1 - 1e-9)  # a fraction of 0 or 1 is itself an end
        torch.testing.assert_close(distance[is_inside], torch.full_like(distance[is_inside], 2.0))
    assert float(wilson_interval(fraction, count)[0][0]) == pytest.approx(0)


def test_targets_sampled_from_the_prediction_are_calibrated() -> None:
    torch.manual_seed(0)
    mean, variance = torch.randn(40_000, 1, dtype=torch.float64), torch.rand(40_000, dtype=torch.float64) + 0.1
    t = mean + variance.sqrt()[:, None] * torch.randn(40_000, 1, dtype=torch.float64)
    curve = CalibrationCurve.from_regression(mean, variance, t)
    assert curve.error < 0.005
    low, high = curve.interval()
    assert bool(((low < curve.predicted) & (curve.predicted < high)).float().mean() > 0.8)
    entropy = (2 * torch.pi * torch.e * variance).log().mean() / 2  # expected negative log-likelihood
    assert curve.negative_log_likelihood == pytest.approx(float(entropy), abs=0.01)
    assert CalibrationCurve.from_regression(mean, variance / 4, t).error > 0.1


def test_classification_curve_and_log_likelihood() -> None:
    probabilities = torch.tensor([[0.8, 0.2]] * 5, dtype=torch.float64)
    curve = CalibrationCurve.from_classification(probabilities, torch.tensor([0, 0, 0, 0, 1]))
    assert curve.predicted.tolist() == pytest.approx([0.8])
    assert curve.observed.tolist() == pytest.approx([0.8])
    assert curve.counts.tolist() == pytest.approx([5.0])
    assert curve.error == pytest.approx(0.0, abs=1e-7)
    expected = -(4 * torch.tensor(0.8).log() + torch.tensor(0.2).log()) / 5
    assert curve.negative_log_likelihood == pytest.approx(float(expected), rel=1e-6)


def test_invalid_input_raises() -> None:
    mean, variance = torch.zeros(3, 2), torch.zeros(3)
    with pytest.raises(ValueError, match="variance must be positive"):
        class_probabilities(mean, variance)
    with pytest.raises(ValueError, match="minimum of 0"):
        negative_log_density(mean, variance, mean)
    with pytest.raises(ValueError, match="levels must lie between"):
        interval_coverage(mean, variance + 1, mean, torch.tensor([1.0]))
    with pytest.raises(ValueError, match="bins=0"):
        reliability(mean, torch.zeros(3).long(), bins=0)
    with pytest.raises(ValueError, match="minimum of 0"):
        wilson_interval(torch.ones(2), torch.zeros(2))
