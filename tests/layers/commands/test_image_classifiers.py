"""`parnassus predict` and `parnassus evaluate` for experiments that save one classifier of images."""

import importlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import cast

import numpy as np
import pytest
import torch
from PIL import Image

from parnassus.atlas.index import Atlas
from parnassus.train.sample_predict_evaluate import Input
from parnassus.train.trained import TrainedRun

COMPARISONS: dict[str, tuple[str, dict[str, object]]] = {
    "classifier_with_relu_logits": (
        "fixed_accuracy",
        {"steps": 20, "num_networks": 1, "width": 16, "learning_rate": 0.1},
    ),
    "one_cycle_classifier": (
        "cycle_momentum_fixed",
        {"steps": 20, "width": 16, "learning_rate": 0.03, "max_learning_rate": 0.1},
    ),
    "resnet_vs_plain": ("residual_accuracy", {"batch_size": 200, "learning_rate": 0.2}),
    "bayes_classifier_on_digits": ("small_cnn", {}),
}
"""Experiments that save one of several networks: the result that is its accuracy, and settings of a short run."""
PREDICTORS = (
    "classifier_with_relu_logits",
    "one_cycle_classifier",
    "resnet_vs_plain",
    "bayes_classifier_on_digits",
    "gradient_attributions_digits",
    "shap_image_tiles",
    "vit_few_shot_transfer",
    "softmax_regression_on_tiny_images",
)


def module_of(name: str) -> ModuleType:
    return importlib.import_module(Atlas().experiment(name).module)


@pytest.mark.parametrize("name", COMPARISONS)
def test_evaluate_reproduces_the_accuracy_of_the_saved_network(
    trained_run: Callable[..., TrainedRun], name: str
) -> None:
    key, settings = COMPARISONS[name]
    run = trained_run(name, **settings)
    (row,) = module_of(name).Evaluate()([run])
    result = cast("dict[str, float]", run.folder.read_json("result.json")["result"])
    assert row["accuracy"] == pytest.approx(result[key])


@pytest.mark.parametrize("name", PREDICTORS)
def test_predictions_are_the_softmax_of_the_model(
    untrained_run: Callable[..., TrainedRun], name: str, tmp_path: Path
) -> None:
    shape, classes = (1, 12, 8), ["shirt", "bag", "coat", "boot"]
    run = untrained_run(name, {"shape": shape, "classes": classes})
    image = torch.rand(shape, generator=torch.Generator().manual_seed(0)).mul(255).round()
    Image.fromarray(image[0].numpy().astype(np.uint8)).save(tmp_path / "image.png")
    with torch.no_grad():
        expected = run.model(image[None] / 255)[0].softmax(0)
    rows = list(module_of(name).Predict(top_k=3)(run, [Input(tmp_path / "image.png")]))
    ranked = sorted(zip(expected.tolist(), classes, strict=True), reverse=True)[:3]
    assert [row["class"] for row in rows] == [label for _, label in ranked]
    assert [row["probability"] for row in rows] == pytest.approx([value for value, _ in ranked], rel=1e-4)
