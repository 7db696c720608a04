"""Reconstruction errors of trained autoencoders on a data set of images (book sec. 4.5)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from parnassus.data import DataError, open_data
from parnassus.latent.autoencoders.autoencoder import Autoencoder, mean_reconstruction_error
from parnassus.layers.commands.image_classifiers import HasData
from parnassus.setting_types import GreyImageData
from parnassus.train import ModelCollection, Positive
from parnassus.train.sample_predict_evaluate import ResultRow
from parnassus.train.trained import TrainedRun


@dataclass(frozen=True)
class AutoencoderEvaluate:
    """Squared error per pixel of test images, for every autoencoder of a run."""

    data: GreyImageData | None = None  # images: name of a data set, or path of a folder; by default those of the run
    num_examples: Positive[int] = 10_000  # maximum number of test images

    def __call__(self, runs: Sequence[TrainedRun]) -> list[ResultRow]:
        return [self.evaluate(trained) for trained in runs]

    def evaluate(self, trained: TrainedRun) -> ResultRow:
        """Errors on the test images; those of a folder are resized to the size of the training images."""
        shape = tuple(cast("list[int]", trained.folder.read_json("model.json")["shape"]))
        name = self.data or cast("HasData", trained.experiment).data
        x = open_data(name, size=(shape[1], shape[2])).test.x[: self.num_examples]
        if x.shape[1:] != shape:
            raise DataError(f"images must have the shape {shape} of the training images; {name} has {(*x.shape[1:],)}")
        row: dict[str, str | float] = {"run": trained.folder.path.name, "data": name, "images": len(x)}
        if isinstance(trained.model, ModelCollection):
            models = cast("ModelCollection[Autoencoder]", trained.model).named_models()
            return row | {f"{name}_error": mean_reconstruction_error(model, x) for name, model in models}
        return row | {"error": mean_reconstruction_error(cast("Autoencoder", trained.model), x)}
