"""Evaluation of a trained Real NVP on other images."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np
import pytest
import torch
from PIL import Image

from parnassus.data import DataError, open_data
from parnassus.flows import DequantisedFlow, independent_bits, quantise
from parnassus.flows.experiments.real_nvp_on_images import Evaluate
from parnassus.train.trained import TrainedRun


@pytest.fixture(scope="module")
def run(trained_run: Callable[..., TrainedRun]) -> TrainedRun:
    return trained_run("real_nvp_on_images")


@pytest.fixture
def noise_images(tmp_path: Path) -> Path:
    """A folder of images of uniform noise, 16 × 16 pixels, in two classes."""
    generator = np.random.default_rng(0)
    for index in range(40):
        folder = tmp_path / f"class {index % 2}"
        folder.mkdir(exist_ok=True)
        Image.fromarray(generator.integers(0, 256, (16, 16), dtype=np.uint8)).save(folder / f"{index}.png")
    return tmp_path


def test_evaluation_uses_the_test_images_of_the_run_by_default(run: TrainedRun) -> None:
    (row,) = Evaluate()([run])
    test = open_data("digits").test.x
    assert (row["data"], row["images"]) == ("digits", len(test))
    model = cast("DequantisedFlow", run.model)
    torch.manual_seed(1)
    with torch.no_grad():
        bits = float(model.bits(quantise(test, levels=model.levels)).mean())
    assert row["bits_per_dimension"] == pytest.approx(bits, rel=0.01)  # up to the dequantisation noise
    result = cast("dict[str, float]", run.folder.read_json("result.json")["result"])
    assert row["independent_bits"] == pytest.approx(result["independent_bits"])


def test_evaluation_is_reproducible_and_keeps_the_global_random_state(run: TrainedRun) -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    not_built = TrainedRun.open(run.folder)
    assert Evaluate()([not_built, run]) == [*Evaluate()([run])] * 2
    assert torch.equal(torch.get_rng_state(), before)


def test_other_images_are_resized_and_quantised_as_in_the_run(run: TrainedRun, noise_images: Path) -> None:
    (row,) = Evaluate(data=str(noise_images))([run])
    data = open_data(noise_images, size=(8, 8))
    levels = cast("DequantisedFlow", run.model).levels
    assert row["images"] == len(data.test)
    assert row["independent_bits"] == pytest.approx(independent_bits(data.train.x, data.test.x, levels=levels))
    assert float(str(row["bits_per_dimension"])) > float(str(Evaluate()([run])[0]["bits_per_dimension"]))


def test_images_of_another_shape_raise_data_error(run: TrainedRun) -> None:
    with pytest.raises(DataError, match=r"mnist_mini must have images of the shape of the run"):
        Evaluate(data="mnist_mini")([run])
