"""`parnassus evaluate` of the diffusion model of digits."""

from collections.abc import Callable
from dataclasses import replace
from math import isfinite

import pytest
import torch

from parnassus.data import open_data
from parnassus.data.preparation.signed_pixels import signed_labelled_images
from parnassus.diffusion import DDPM
from parnassus.diffusion.experiments.diffusion_on_digits import Evaluate, evaluate_samples
from parnassus.diffusion.samplers.image_sampling import ddim_images
from parnassus.layers.pixel_classifier import classifier_accuracy, fit_classifier
from parnassus.metrics.pixel_metrics import nearest_distance
from parnassus.train.trained import TrainedRun


@pytest.fixture(scope="module")
def trained(trained_run: Callable[..., TrainedRun]) -> TrainedRun:
    return trained_run("diffusion_on_digits")


def test_metrics_match_the_samples(trained: TrainedRun) -> None:
    evaluate = Evaluate(num_samples=40, num_inference_steps=4, classifier_steps=4, seed=5)
    (row,) = evaluate([trained])
    model, data = trained.model, signed_labelled_images(open_data("digits"))
    assert isinstance(model, DDPM)
    label = torch.arange(40) % 10
    torch.manual_seed(5)
    samples = ddim_images(model, label, guidance_scale=2.0, steps=4).detach()
    assert row["run"] == trained.folder.path.name
    assert row["num_samples"] == 40
    classifier = fit_classifier(data.train.x, data.train.y)
    assert row["class_accuracy"] == classifier_accuracy(classifier, samples, label)
    novelty = nearest_distance(samples, data.train.x) / nearest_distance(data.test.x, data.train.x)
    assert row["novelty"] == pytest.approx(float(novelty))
    assert isinstance(row["frechet_distance"], float)
    assert isfinite(row["frechet_distance"])
    assert row["frechet_distance"] > 0
    assert evaluate([trained, replace(trained)]) == [row, row]  # one row per run, reproducible


def test_metrics_of_training_images() -> None:
    data = signed_labelled_images(open_data("digits"))
    assert data.train.y is not None
    metrics = evaluate_samples(data.train.x, data.train.y, data)
    assert metrics["novelty"] == pytest.approx(0, abs=1e-2)  # torch.cdist is inaccurate at distance 0
    assert metrics["trained_on_samples_accuracy"] == metrics["real_accuracy"]
    assert metrics["class_accuracy"] > 0.99
