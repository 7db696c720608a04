"""Memorisation by a large autoencoder trained on few examples, with and without input noise (book sec. 4.4)."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.optim import Adam

from parnassus.data import Dataset, open_data
from parnassus.latent.autoencoders.autoencoder import Autoencoder
from parnassus.latent.autoencoders.denoising_autoencoder import DenoisingAutoencoder, add_gaussian_noise
from parnassus.latent.autoencoders.dense_networks import dense_decoder, dense_encoder
from parnassus.report import curves, image_grid
from parnassus.setting_types import ImageData
from parnassus.train import Positive, Run, at_least, at_most, descend

covers = ("B4.4-1", "B4.4-5")
expected = {
    "train_error_few": at_most(3e-4, "training error per pixel with the smallest training set"),
    "test_train_ratio_few": at_least(150.0, "ratio of test to training error with the smallest training set"),
    "test_train_ratio_many": at_most(1.6, "ratio of test to training error with the largest training set"),
    "noise_test_error_ratio": at_most(
        0.9, "ratio of the test errors with and without input noise, smallest training set"
    ),
}
profiles = {"smoke": {"train_sizes": (20, 200), "steps": 40}}


@dataclass(frozen=True)
class Experiment:
    data: ImageData = "digits"  # images: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    train_sizes: tuple[Positive[int], ...] = (20, 60, 200, 600, 1_400)  # sizes of the training sets
    steps: Positive[int] = 1_500  # gradient steps per network
    width: Positive[int] = 256  # hidden units of encoder and decoder
    latent_dim: Positive[int] = 32  # dimension of the code
    noise_std: Positive[float] = 0.2  # standard deviation of the input noise of the denoising networks

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data, size=self.image_size).to(run.device)
        plain = {size: self._train(run, data, size, std=0.0) for size in self.train_sizes}
        denoising = {size: self._train(run, data, size, std=self.noise_std) for size in self.train_sizes}

        train_errors = [_error(model, data.train.x[:size]) for size, model in plain.items()]
        test_errors = [_error(model, data.test.x) for model in plain.values()]
        denoising_errors = [_error(model, data.test.x) for model in denoising.values()]
        lines = {
            "training examples": (self.train_sizes, train_errors),
            "test examples": (self.train_sizes, test_errors),
            "test examples, trained with noise": (self.train_sizes, denoising_errors),
        }
        figure = curves(lines, x_label="training set size", y_label="squared error per pixel", log_x=True, log_y=True)
        run.figure("errors", figure, "The gap between training and test error closes as the training set grows.")
        few, many = min(self.train_sizes), max(self.train_sizes)
        models = {f"n = {few}": plain[few], f"n = {few}, noise": denoising[few], f"n = {many}": plain[many]}
        self._plot_reconstructions(run, data, models)
        return {
            "train_error_few": train_errors[0],
            "test_train_ratio_few": test_errors[0] / train_errors[0],
            "test_train_ratio_many": test_errors[-1] / train_errors[-1],
            "noise_test_error_ratio": denoising_errors[0] / test_errors[0],
        }

    def _train(self, run: Run, data: Dataset, size: int, *, std: float) -> Autoencoder:
        encoder = dense_encoder(data.shape, self.latent_dim, width=self.width, norm=nn.Identity)
        decoder = dense_decoder(self.latent_dim, data.shape, width=self.width, norm=nn.Identity)
        autoencoder = Autoencoder(encoder, decoder)
        model = DenoisingAutoencoder(autoencoder, partial(add_gaussian_noise, std=std))
        model, optimizer = run.prepare(model, partial(Adam, lr=1e-3))
        for step, loss in descend(run, model, optimizer, data.train.take(size).batches(64, self.steps)):
            run.log(step, **{f"{size}{'_noise' if std else ''}_loss": loss})
        return autoencoder

    def _plot_reconstructions(self, run: Run, data: Dataset, models: dict[str, Autoencoder]) -> None:
        x = data.test.x[:10]
        with torch.no_grad():
            rows = {"test image": x, **{name: model(x) for name, model in models.items()}}
        figure = image_grid(torch.cat(list(rows.values())), columns=len(x), row_labels=list(rows))
        run.figure("reconstructions", figure, "Reconstructions of test images; small training sets are memorised.")


@torch.no_grad()
def _error(model: Autoencoder, x: Tensor) -> float:
    return float(model.reconstruction_error(x).mean())
