"""`parnassus evaluate` for autoencoders, and for several VAEs of one run."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np
import pytest
import torch
from PIL import Image

from parnassus.data import DataError, open_data
from parnassus.latent.commands.evaluate_autoencoder import AutoencoderEvaluate
from parnassus.latent.experiments import vae_posterior_collapse
from parnassus.latent.variational.vae import VAE
from parnassus.train import ModelCollection
from parnassus.train.trained import TrainedRun


def result_of(run: TrainedRun) -> dict[str, float]:
    return cast("dict[str, float]", run.folder.read_json("result.json")["result"])


def test_evaluation_reproduces_the_error_of_the_run(trained_run: Callable[..., TrainedRun]) -> None:
    run = trained_run("autoencoder_latent_map", width=16)
    (row,) = AutoencoderEvaluate()([run])
    assert (row["run"], row["data"]) == (run.folder.path.name, "mnist_mini")
    assert row["images"] == len(open_data("mnist_mini").test)
    assert row["error"] == pytest.approx(result_of(run)["test_error"], rel=1e-5)


def test_both_autoencoders_of_a_run_are_evaluated_on_other_images(
    trained_run: Callable[..., TrainedRun], tmp_path: Path
) -> None:
    run = trained_run("convolutional_autoencoder_on_digits", data="digits")
    (row,) = AutoencoderEvaluate()([run])
    for name in ("convolutional", "dense"):
        assert row[f"{name}_error"] == pytest.approx(result_of(run)[f"{name}_error"], rel=1e-5)
    for number in range(10):
        folder = tmp_path / f"class {number % 2}"
        folder.mkdir(exist_ok=True)
        Image.fromarray(np.full((16, 16), 20 * number, dtype=np.uint8)).save(folder / f"{number}.png")
    (other,) = AutoencoderEvaluate(data=str(tmp_path), num_examples=1)([run])
    image = open_data(tmp_path, size=(8, 8)).test.x[:1]
    with torch.no_grad():
        expected = (run.model.get_submodule("dense")(image) - image).square().mean()
    assert other["images"] == 1
    assert other["dense_error"] == pytest.approx(float(expected), rel=1e-5)
    with pytest.raises(DataError, match=r"images must have the shape \(1, 8, 8\) of the training images; mnist_mini"):
        AutoencoderEvaluate(data="mnist_mini")([run])


def test_every_vae_of_a_run_is_evaluated(trained_run: Callable[..., TrainedRun]) -> None:
    run = trained_run("vae_posterior_collapse")
    rows = vae_posterior_collapse.Evaluate(num_examples=400, num_importance_samples=50, device="cpu")([run])
    assert [row["model"] for row in rows] == list(vae_posterior_collapse.NAMES)
    models, result = cast("ModelCollection[VAE]", run.model), result_of(run)
    for row in rows:
        assert row["rate"] == pytest.approx(result[f"rate_{str(row['model']).replace(' ', '_').replace('β', 'beta')}"])
        assert float(str(row["nll"])) < float(str(row["negative_elbo"])) + 0.1  # −log p(x) ≤ −ELBO
    x = open_data("digits").test.x[:400]
    with torch.no_grad():
        distortion = torch.stack([models.model("narrow").terms(x).distortion for _ in range(50)]).mean()
    assert rows[4]["distortion"] == pytest.approx(float(distortion), rel=0.02)
