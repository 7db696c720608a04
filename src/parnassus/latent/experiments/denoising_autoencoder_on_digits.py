"""A denoising autoencoder cleans spoilt digits better than any matrix can (book sec. 4.4)."""

from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor
from torch.optim import Adam

from parnassus.data import open_data
from parnassus.latent.autoencoder import Autoencoder, dense_decoder, dense_encoder
from parnassus.latent.denoising import (
    Corruption,
    DenoisingAutoencoder,
    gaussian,
    ideal_denoiser,
    masking,
    psnr,
    salt_and_pepper,
)
from parnassus.report import bars, image_grid
from parnassus.train import Run, at_least, at_most, descend, reported

covers = ("B4.4-2", "B4.4-3")
expected = {
    "psnr": reported("signal to noise of the cleaned test digits, in decibels"),
    "gain": at_least(7.2, "decibels above the spoilt digits"),
    "gain_over_a_matrix": at_least(1.4, "decibels above the best linear denoiser"),
    "error_over_identity": at_most(0.19, "squared error over that of doing nothing"),
}
profiles = {"smoke": {"steps": 20}, "gpu": {"data": "mnist", "steps": 20_000, "width": 1024}}


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # a built-in name, or your own folder of images
    corruption: Literal["gaussian", "masking", "salt_and_pepper"] = "gaussian"  # what is done to the input
    level: float = 0.3  # standard deviation of the noise, or share of the pixels spoilt
    steps: int = 4_000  # gradient steps
    width: int = 256  # hidden units of encoder and decoder
    latent: int = 64  # numbers in the code

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data).to(run.device)
        kernels: dict[str, Corruption] = {
            "gaussian": partial(gaussian, std=self.level),
            "masking": partial(masking, share=self.level),
            "salt_and_pepper": partial(salt_and_pepper, share=self.level),
        }
        corrupt = kernels[self.corruption]
        encoder = dense_encoder(data.shape, self.latent, width=self.width)
        decoder = dense_decoder(self.latent, data.shape, width=self.width)
        model = DenoisingAutoencoder(Autoencoder(encoder, decoder), corrupt)
        model, optimizer = run.prepare(model, partial(Adam, lr=1e-3))
        for step, loss in descend(run, model, optimizer, data.train.batches(128, self.steps)):
            run.log(step, loss=loss)

        model.eval()
        clean, known = data.test.x, data.train.x.flatten(1)
        noisy = corrupt(clean)
        rows = {"clean": clean, "spoilt": noisy, "best matrix": _best_matrix(known, corrupt, noisy)}
        if self.corruption == "gaussian":
            rows["known images"] = ideal_denoiser(known, noisy.flatten(1), std=self.level).view_as(noisy)
        with torch.no_grad():
            rows["autoencoder"] = model(noisy)
        decibels = {name: float(psnr(images, clean)) for name, images in rows.items() if name != "clean"}

        strip = torch.stack([images[:10] for images in rows.values()]).flatten(0, 1)
        figure = image_grid(strip, columns=min(10, len(clean)), row_labels=list(rows))
        run.figure("strips", figure, "Unseen images, spoilt, and what three denoisers make of them.")
        run.figure("decibels", bars(decibels, x_label="peak signal-to-noise ratio, dB"), "More is cleaner.")
        return {
            "psnr": decibels["autoencoder"],
            "gain": decibels["autoencoder"] - decibels["spoilt"],
            "gain_over_a_matrix": decibels["autoencoder"] - decibels["best matrix"],
            "error_over_identity": 10 ** ((decibels["spoilt"] - decibels["autoencoder"]) / 10),
        }


def _best_matrix(known: Tensor, corrupt: Corruption, noisy: Tensor) -> Tensor:
    """Least squares from spoilt to clean over twenty draws: for Gaussian data nothing would be better."""
    clean = known.repeat(20, 1)
    ones = clean.new_ones(len(clean), 1)
    spoilt = torch.cat([corrupt(clean), ones], 1)
    gram = spoilt.mT @ spoilt + 1e-3 * torch.eye(spoilt.shape[1], device=spoilt.device)  # unspoilt pixels may be all 0
    matrix = torch.linalg.solve(gram, spoilt.mT @ clean)
    x_hat = noisy.flatten(1)
    cleaned: Tensor = torch.cat([x_hat, x_hat.new_ones(len(x_hat), 1)], 1) @ matrix
    return cleaned.view_as(noisy)
