"""Convolutions for an autoencoder: beside dense layers and PCA of the same code (book secs. 4.5, 6.3)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.optim import Adam

from parnassus.data import DataError, open_data
from parnassus.latent.autoencoder import Autoencoder
from parnassus.latent.convolutional import conv_decoder, conv_encoder
from parnassus.latent.dense import flat_decoder, flat_encoder
from parnassus.latent.pca import PCA
from parnassus.layers import parameter_count
from parnassus.report import bars, image_grid
from parnassus.train import Run, SideBySide, at_most, descend, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B6.3-5",)
expected = {
    "convolutional_error": at_most(0.02, "squared error a pixel of unseen images"),
    "dense_error": reported("the same with dense layers"),
    "pca_error": reported("the same with as many principal components"),
    "over_dense": at_most(0.75, "the first over the second"),
    "over_pca": at_most(0.65, "the first over the third"),
    "shifted_error": reported("the first when the images are moved by one pixel, as none in training was"),
    "dense_shifted_error": reported("the same with dense layers"),
    "parameters": reported("numbers that training chooses, convolutional"),
    "dense_parameters": reported("the same, dense"),
}
profiles = {
    "smoke": {"steps": 4, "width": 4},
    "gpu": {"data": "mnist", "steps": 8_000, "batch": 256, "width": 32, "blocks": 2, "hidden": 1_024, "lr": 1e-3},
}


@dataclass(frozen=True)
class Experiment:
    data: str = "mnist_mini"  # images: mnist_mini, digits, mnist, fashion_mnist, or a folder of yours
    size: int | None = None  # resize the pictures of a folder to this height and width
    steps: int = 500  # gradient steps
    batch: int = 64  # images a step
    latent: int = 16  # numbers in a code
    width: int = 8  # channels of the first convolution; doubled at each halving of the image
    blocks: int = 1  # residual blocks at each size
    hidden: int = 128  # hidden units of the dense autoencoder
    lr: float = 2e-3  # Adam's learning rate

    def model(self, shape: Sequence[int]) -> SideBySide[Autoencoder]:
        """The last layers are linear: a sigmoid under squared errors can saturate at black and stay there."""
        encoder = conv_encoder(shape, self.latent, width=self.width, blocks=self.blocks)
        decoder = conv_decoder(self.latent, shape, width=self.width, blocks=self.blocks)
        return SideBySide(
            {
                "convolutional": Autoencoder(encoder, decoder),
                "dense": Autoencoder(
                    flat_encoder(shape, self.latent, width=self.hidden),
                    flat_decoder(self.latent, shape, width=self.hidden),
                ),
            }
        )

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data, size=None if self.size is None else (self.size, self.size)).to(run.device)
        if len(data.shape) != 3 or data.shape[1] % 4 or data.shape[2] % 4:
            raise DataError(f"images need sides that divide by 4; those of {data.name} have shape {data.shape}")
        model, optimizer = run.prepare(run.build(self.model, shape=data.shape), partial(Adam, lr=self.lr))
        for step, loss in descend(run, model, optimizer, data.train.batches(self.batch, self.steps)):
            run.log(step, loss=loss)

        pca = PCA.fit(data.train.x.flatten(1)[:10_000], self.latent)
        x = data.test.x[:1_000]
        moved = x.roll((1, 1), (2, 3))
        errors = {name: error(model.one(name), x) for name in ("convolutional", "dense")}
        pca_error = float((pca.reconstruct(x.flatten(1)) - x.flatten(1)).square().mean())
        run.figure("errors", bars({**errors, "PCA": pca_error}, x_label="squared error a pixel, unseen images"), ERRORS)
        run.figure("copies", self.copies(model, pca, x[:10]), "Unseen images and their copies from as many numbers.")
        shifted = {name: error(model.one(name), moved) for name in errors}
        return {
            "convolutional_error": errors["convolutional"],
            "dense_error": errors["dense"],
            "pca_error": pca_error,
            "over_dense": errors["convolutional"] / errors["dense"],
            "over_pca": errors["convolutional"] / pca_error,
            "shifted_error": shifted["convolutional"],
            "dense_shifted_error": shifted["dense"],
            "parameters": float(parameter_count(model.one("convolutional"))),
            "dense_parameters": float(parameter_count(model.one("dense"))),
        }

    @torch.no_grad()
    def copies(self, model: SideBySide[Autoencoder], pca: PCA, x: Tensor) -> "Figure":
        rebuilt = [model.one("convolutional")(x), model.one("dense")(x), pca.reconstruct(x.flatten(1)).view_as(x)]
        names = ["image", "convolutional", "dense", "PCA"]
        return image_grid(torch.cat([x, *rebuilt]), columns=len(x), row_labels=names)


ERRORS = "What is left after a code of the same size: squared error a pixel of unseen images."


@torch.no_grad()
def error(model: Autoencoder, x: Tensor) -> float:
    return float(torch.cat([model.reconstruction_error(part) for part in x.split(500)]).mean())
