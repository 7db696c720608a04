"""The noise-aware classifier: gradients, training, and chance level at high noise."""

import pytest
import torch
from torch import Tensor

from parnassus.diffusion.chain.forward_process import diffuse
from parnassus.diffusion.chain.schedules import cosine_schedule
from parnassus.diffusion.guidance import class_gradient
from parnassus.diffusion.networks.noisy_classifier import NoisyClassifier

SCHEDULE = cosine_schedule(50)


def two_classes(count: int) -> tuple[Tensor, Tensor]:
    """Images of 4 × 4 pixels with a bright left or a bright right half."""
    y = torch.arange(count) % 2
    x = torch.full((count, 1, 4, 4), -1.0)
    x[y == 0, :, :, :2], x[y == 1, :, :, 2:] = 1.0, 1.0
    return x, y


def test_gradient_matches_finite_differences() -> None:
    torch.manual_seed(0)
    classifier = NoisyClassifier((1, 4, 4), 3, schedule=SCHEDULE, width=8).double()
    x, t, label = torch.randn(2, 1, 4, 4, dtype=torch.float64), torch.tensor([3, 30]), torch.tensor([0, 2])
    gradient = class_gradient(classifier, x, t, label)
    direction = torch.randn_like(x)

    def log_prob(step: float) -> Tensor:
        logits: Tensor = classifier(x + step * direction, t)
        return logits.log_softmax(1)[torch.arange(2), label]

    slope = (log_prob(1e-5) - log_prob(-1e-5)) / 2e-5
    torch.testing.assert_close((gradient * direction).sum((1, 2, 3)), slope, rtol=1e-6, atol=1e-9)


def test_classifier_is_accurate_at_low_noise_and_uncertain_at_high_noise() -> None:
    torch.manual_seed(0)
    classifier = NoisyClassifier((1, 4, 4), 2, schedule=SCHEDULE, width=8)
    optimizer = torch.optim.Adam(classifier.parameters(), lr=1e-2)
    x, y = two_classes(256)
    for _ in range(60):
        optimizer.zero_grad()
        classifier.loss(x, y).backward()
        optimizer.step()
    confidences, accuracies = [], []
    for step in (2, 20, 49):
        t = torch.full((256,), step)
        log_probs = classifier(diffuse(SCHEDULE, x, t, torch.randn_like(x)), t).log_softmax(1)
        accuracies.append(float((log_probs.argmax(1) == y).double().mean()))
        confidences.append(float(log_probs.exp().amax(1).mean().detach()))
    assert accuracies[0] == 1.0
    assert accuracies[1] > 0.95
    assert 0.35 < accuracies[2] < 0.65  # chance level
    assert confidences[0] > 0.99
    assert confidences[2] < 0.9


def test_single_class_raises_value_error() -> None:
    with pytest.raises(ValueError, match="classes must be at least 2; got classes=1"):
        NoisyClassifier((1, 4, 4), 1, schedule=SCHEDULE)
