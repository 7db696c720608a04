"""Metrics on pixels: closed forms for known images."""

import pytest
import torch

from parnassus.layers.pixel_classifier import classifier_accuracy, fit_classifier
from parnassus.metrics.pixel_metrics import nearest_distance, within_class_std


def test_diversity_is_measured_within_classes() -> None:
    images = torch.tensor([0.0, 2.0, 10.0, 14.0])[:, None].expand(4, 3)
    label = torch.tensor([0, 0, 1, 1])
    assert float(within_class_std(images, label)) == pytest.approx(5**0.5)  # of the variances 2 and 8
    with pytest.raises(ValueError, match="labels must not be None"):
        within_class_std(images, None)


def test_nearest_distance_is_the_median() -> None:
    real = torch.tensor([[0.0, 0.0], [3.0, 4.0]])
    images = torch.tensor([[3.0, 4.0], [0.0, 2.0], [9.0, 12.0]])
    assert float(nearest_distance(images, real)) == pytest.approx(2.0)


def test_classifier_separates_distant_classes() -> None:
    images, label = torch.cat([torch.randn(50, 1, 2, 2), torch.randn(50, 1, 2, 2) + 8]), torch.arange(100) // 50
    classifier = fit_classifier(images, label)
    assert classifier_accuracy(classifier, images, label) == 1.0
    assert classifier_accuracy(classifier, images, 1 - label) == 0.0
