"""Convolutional autoencoder compared with a dense one and PCA at equal code size (book secs. 4.5, 6.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.optim import Adam

from parnassus.data import DataError, open_images
from parnassus.latent.autoencoders.autoencoder import Autoencoder, mean_reconstruction_error
from parnassus.latent.autoencoders.convolutional_networks import conv_decoder, conv_encoder
from parnassus.latent.autoencoders.dense_networks import mlp_decoder, mlp_encoder
from parnassus.latent.commands.evaluate_autoencoder import AutoencoderEvaluate as Evaluate  # noqa: F401 - declares `parnassus evaluate`
from parnassus.latent.linear.pca import PCA
from parnassus.layers import count_parameters
from parnassus.report import bar_chart, image_grid
from parnassus.setting_types import GreyImageData
from parnassus.train import ModelCollection, Positive, Run, at_most, descend, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B6.3-5",)
expected = {
    "convolutional_error": at_most(0.02, "squared error per pixel of test images, convolutional autoencoder"),
    "dense_error": no_band("squared error per pixel of test images, dense autoencoder"),
    "pca_error": no_band("squared error per pixel of test images, PCA with as many components"),
    "error_ratio_to_dense": at_most(0.75, "ratio of the convolutional to the dense error"),
    "error_ratio_to_pca": at_most(0.65, "ratio of the convolutional to the PCA error"),
    "shifted_error": no_band("squared error per pixel of test images shifted by one pixel, convolutional autoencoder"),
    "dense_shifted_error": no_band("squared error per pixel of test images shifted by one pixel, dense autoencoder"),
    "parameters": no_band("number of parameters of the convolutional autoencoder"),
    "dense_parameters": no_band("number of parameters of the dense autoencoder"),
}
profiles = {
    "smoke": {"steps": 4, "width": 4},
    "gpu": {
        "data": "mnist",
        "steps": 8_000,
        "batch_size": 256,
        "width": 32,
        "num_blocks": 2,
        "hidden_size": 1_024,
        "learning_rate": 1e-3,
    },
}


@dataclass(frozen=True)
class Experiment:
    data: GreyImageData = "mnist_mini"  # images: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # height and width to which images of a folder are resized
    steps: Positive[int] = 500  # gradient steps
    batch_size: Positive[int] = 64  # images per gradient step
    latent_dim: Positive[int] = 16  # dimension of the code
    width: Positive[int] = 8  # channels of the first convolution, doubled at each downsampling
    num_blocks: Positive[int] = 1  # residual blocks per resolution
    hidden_size: Positive[int] = 128  # hidden units of the dense autoencoder
    learning_rate: Positive[float] = 2e-3  # Adam's learning rate

    def model(self, shape: Sequence[int]) -> ModelCollection[Autoencoder]:
        """Both autoencoders, with linear outputs: with a squared error a sigmoid can saturate at black."""
        encoder = conv_encoder(shape, self.latent_dim, width=self.width, blocks=self.num_blocks)
        decoder = conv_decoder(self.latent_dim, shape, width=self.width, blocks=self.num_blocks)
        return ModelCollection(
            {
                "convolutional": Autoencoder(encoder, decoder),
                "dense": Autoencoder(
                    mlp_encoder(shape, self.latent_dim, width=self.hidden_size),
                    mlp_decoder(self.latent_dim, shape, width=self.hidden_size),
                ),
            }
        )

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_images(self.data, self.image_size).to(run.device)
        if data.shape[1] % 4 or data.shape[2] % 4:
            raise DataError(
                f"height and width must be divisible by 4; the images of {data.name} have shape {data.shape}"
            )
        model, optimizer = run.prepare(run.build(self.model, shape=data.shape), partial(Adam, lr=self.learning_rate))
        for step, loss in descend(run, model, optimizer, data.train.batches(self.batch_size, self.steps)):
            run.log(step, loss=loss)

        pca = PCA.fit(data.train.x.flatten(1)[:10_000], self.latent_dim)
        x = data.test.x[:1_000]
        shifted_x = x.roll((1, 1), (2, 3))
        errors = {name: mean_reconstruction_error(autoencoder, x) for name, autoencoder in model.named_models()}
        pca_error = float((pca.reconstruct(x.flatten(1)) - x.flatten(1)).square().mean())
        run.figure(
            "errors", bar_chart({**errors, "PCA": pca_error}, x_label="squared error per pixel of test images"), ERRORS
        )
        run.figure("reconstructions", self.plot_reconstructions(model, pca, x[:10]), RECONSTRUCTIONS)
        shifted = {name: mean_reconstruction_error(model.model(name), shifted_x) for name in errors}
        return {
            "convolutional_error": errors["convolutional"],
            "dense_error": errors["dense"],
            "pca_error": pca_error,
            "error_ratio_to_dense": errors["convolutional"] / errors["dense"],
            "error_ratio_to_pca": errors["convolutional"] / pca_error,
            "shifted_error": shifted["convolutional"],
            "dense_shifted_error": shifted["dense"],
            "parameters": float(count_parameters(model.model("convolutional"))),
            "dense_parameters": float(count_parameters(model.model("dense"))),
        }

    @torch.no_grad()
    def plot_reconstructions(self, model: ModelCollection[Autoencoder], pca: PCA, x: Tensor) -> "Figure":
        reconstructions = [
            model.model("convolutional")(x),
            model.model("dense")(x),
            pca.reconstruct(x.flatten(1)).view_as(x),
        ]
        names = ["image", "convolutional", "dense", "PCA"]
        return image_grid(torch.cat([x, *reconstructions]), columns=len(x), row_labels=names)


ERRORS = "Squared error per pixel of test images, with codes of the same dimension."
RECONSTRUCTIONS = "Test images and their reconstructions from codes of the same dimension."
