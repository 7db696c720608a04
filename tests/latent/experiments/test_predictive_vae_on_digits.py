"""`parnassus predict` for the VAEs with a prediction head."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np
import pytest
import torch
from PIL import Image

from parnassus.data import DataError
from parnassus.latent.experiments.predictive_vae_on_digits import Predict, PredictiveVAEs
from parnassus.train.sample_predict_evaluate import Input
from parnassus.train.trained import TrainedRun


def test_predictions_are_those_of_the_model_with_the_given_weight(
    untrained_run: Callable[..., TrainedRun], tmp_path: Path
) -> None:
    classes = ["one", "two", "three"]
    run = untrained_run("predictive_vae_on_digits", {"shape": (1, 8, 8), "classes": classes}, gammas=(0.0, 30.0, 3.0))
    models = cast("PredictiveVAEs", run.model)
    image = torch.rand(8, 8, generator=torch.Generator().manual_seed(0)).mul(255).round()
    Image.fromarray(image.numpy().astype(np.uint8)).save(tmp_path / "image.png")
    for index, how in ((0, Predict(gamma=0.0)), (2, Predict(gamma=3.0)), (1, Predict())):  # by default the largest
        rows = list(how(run, [Input(tmp_path / "image.png")]))
        with torch.no_grad():
            expected = models.model(index).class_probabilities(image[None, None] / 255)[0]
        found = {str(row["class"]): row["probability"] for row in rows}
        assert found == pytest.approx(dict(zip(classes, expected.tolist(), strict=True)), rel=1e-4)
    with pytest.raises(DataError, match="gamma must be one of 0, 30, 3; got gamma=2"):
        list(Predict(gamma=2.0)(run, [Input(tmp_path / "image.png")]))
