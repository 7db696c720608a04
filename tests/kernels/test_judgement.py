"""Judgements against predictions whose calibration is known."""

import pytest
import torch

from parnassus.kernels import Judgement


def test_numbers_drawn_from_the_prediction_are_covered_as_they_should_be() -> None:
    torch.manual_seed(0)
    mean, variance = torch.randn(40_000, 1, dtype=torch.float64), torch.rand(40_000, dtype=torch.float64) + 0.1
    t = mean + variance.sqrt()[:, None] * torch.randn(40_000, 1, dtype=torch.float64)
    found = Judgement.of_numbers(mean, variance, t)
    assert found.error < 0.005
    low, high = found.interval()
    assert bool(((low < found.stated) & (found.stated < high)).float().mean() > 0.8)
    entropy = (2 * torch.pi * torch.e * variance).log().mean() / 2  # what a well calibrated Gaussian is surprised by
    assert found.surprise == pytest.approx(float(entropy), abs=0.01)
    assert Judgement.of_numbers(mean, variance / 4, t).error > 0.1


def test_classes_are_judged_by_their_confidence_and_the_probability_of_the_truth() -> None:
    probabilities = torch.tensor([[0.8, 0.2]] * 5, dtype=torch.float64)
    found = Judgement.of_classes(probabilities, torch.tensor([0, 0, 0, 0, 1]))
    assert found.stated.tolist() == pytest.approx([0.8])
    assert found.observed.tolist() == pytest.approx([0.8])
    assert found.counts.tolist() == pytest.approx([5.0])
    assert found.error == pytest.approx(0.0, abs=1e-7)
    wanted = -(4 * torch.tensor(0.8).log() + torch.tensor(0.2).log()) / 5
    assert found.surprise == pytest.approx(float(wanted), rel=1e-6)
