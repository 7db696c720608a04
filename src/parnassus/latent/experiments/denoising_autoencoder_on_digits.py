"""Denoising autoencoder of digits, compared with the best linear denoiser (book sec. 4.4)."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor
from torch.optim import Adam

from parnassus.data import open_data
from parnassus.latent.autoencoders.autoencoder import Autoencoder
from parnassus.latent.autoencoders.denoising_autoencoder import (
    Corruption,
    DenoisingAutoencoder,
    add_gaussian_noise,
    add_salt_and_pepper_noise,
    exact_denoiser,
    mask_at_random,
    psnr,
)
from parnassus.latent.autoencoders.dense_networks import dense_decoder, dense_encoder
from parnassus.report import bar_chart, image_grid
from parnassus.setting_types import ImageData
from parnassus.train import NonNegative, Positive, Run, at_least, at_most, descend, no_band

covers = ("B4.4-2", "B4.4-3")
expected = {
    "psnr": no_band("peak signal-to-noise ratio of denoised test images, dB"),
    "psnr_gain": at_least(7.2, "PSNR gain over the corrupted images, dB"),
    "psnr_gain_over_linear": at_least(1.4, "PSNR gain over the best linear denoiser, dB"),
    "error_ratio_to_identity": at_most(0.19, "ratio of the squared errors of denoised and corrupted images"),
}
profiles = {"smoke": {"steps": 20}, "gpu": {"data": "mnist", "steps": 20_000, "width": 1024}}


@dataclass(frozen=True)
class Experiment:
    data: ImageData = "digits"  # images: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    corruption: Literal["gaussian", "masking", "salt_and_pepper"] = "gaussian"  # corruption of the input
    corruption_level: NonNegative[float] = 0.3  # standard deviation of Gaussian noise, or fraction of corrupted pixels
    steps: Positive[int] = 4_000  # gradient steps
    width: Positive[int] = 256  # hidden units of encoder and decoder
    latent_dim: Positive[int] = 64  # dimension of the code

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data, size=self.image_size).to(run.device)
        kernels: dict[str, Corruption] = {
            "gaussian": partial(add_gaussian_noise, std=self.corruption_level),
            "masking": partial(mask_at_random, probability=self.corruption_level),
            "salt_and_pepper": partial(add_salt_and_pepper_noise, probability=self.corruption_level),
        }
        corrupt = kernels[self.corruption]
        encoder = dense_encoder(data.shape, self.latent_dim, width=self.width)
        decoder = dense_decoder(self.latent_dim, data.shape, width=self.width)
        model = DenoisingAutoencoder(Autoencoder(encoder, decoder), corrupt)
        model, optimizer = run.prepare(model, partial(Adam, lr=1e-3))
        for step, loss in descend(run, model, optimizer, data.train.batches(128, self.steps)):
            run.log(step, loss=loss)

        model.eval()
        clean, train = data.test.x, data.train.x.flatten(1)
        noisy = corrupt(clean)
        rows = {"clean": clean, "corrupted": noisy, "linear": _denoise_linearly(train, corrupt, noisy)}
        if self.corruption == "gaussian":
            rows["exact for training set"] = exact_denoiser(train, noisy.flatten(1), std=self.corruption_level).view_as(
                noisy
            )
        with torch.no_grad():
            rows["autoencoder"] = model(noisy)
        ratios = {name: float(psnr(images, clean)) for name, images in rows.items() if name != "clean"}

        grid = torch.stack([images[:10] for images in rows.values()]).flatten(0, 1)
        figure = image_grid(grid, columns=min(10, len(clean)), row_labels=list(rows))
        run.figure("images", figure, "Test images, corrupted and denoised.")
        run.figure(
            "psnr", bar_chart(ratios, x_label="peak signal-to-noise ratio (dB)"), "Test images; higher is better."
        )
        return {
            "psnr": ratios["autoencoder"],
            "psnr_gain": ratios["autoencoder"] - ratios["corrupted"],
            "psnr_gain_over_linear": ratios["autoencoder"] - ratios["linear"],
            "error_ratio_to_identity": 10 ** ((ratios["corrupted"] - ratios["autoencoder"]) / 10),
        }


def _denoise_linearly(train: Tensor, corrupt: Corruption, noisy: Tensor) -> Tensor:
    """The linear least-squares denoiser, fitted to twenty corruptions; for Gaussian data it is optimal."""
    clean = train.repeat(20, 1)
    ones = clean.new_ones(len(clean), 1)
    corrupted = torch.cat([corrupt(clean), ones], 1)
    gram = corrupted.mT @ corrupted + 1e-3 * torch.eye(
        corrupted.shape[1], device=corrupted.device
    )  # some pixels may always be 0
    matrix = torch.linalg.solve(gram, corrupted.mT @ clean)
    x_hat = noisy.flatten(1)
    denoised: Tensor = torch.cat([x_hat, x_hat.new_ones(len(x_hat), 1)], 1) @ matrix
    return denoised.view_as(noisy)
