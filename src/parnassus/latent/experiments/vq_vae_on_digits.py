"""VQ-VAE of digits with an autoregressive prior over its codes (book sec. 13.3.1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import log, log2

import torch
from torch import Tensor
from torch.optim import Adam

from parnassus.data import Split, open_data
from parnassus.latent.vector_quantised.code_priors import IndependentPrior, NeighbourPrior
from parnassus.latent.vector_quantised.codebook import EMACodebook, codebook_perplexity
from parnassus.latent.vector_quantised.vq_vae import VQVAE, code_grid_decoder, code_grid_encoder
from parnassus.report import bar_chart, curves, image_grid
from parnassus.setting_types import ImageData
from parnassus.train import Positive, Run, UnitInterval, at_least, at_most, descend, no_band

covers = ("B13.3.1-10",)
expected = {
    "test_error": at_most(0.014, "squared error per pixel of test images, reconstructed from their codes"),
    "codebook_perplexity": at_least(25.0, "perplexity of the codes over test images"),
    "bits": at_most(150.0, "bits per test image under the prior conditioned on neighbouring codes"),
    "bits_independent": no_band("bits per test image under independent code frequencies per position"),
    "bits_uniform": no_band("bits per test image under uniform codes: positions × log₂ K"),
}
profiles = {
    "smoke": {"steps": 6, "prior_steps": 6, "codebook_size": 16, "num_examples": 128},
    "gpu": {
        "data": "fashion_mnist",
        "steps": 20_000,
        "prior_steps": 20_000,
        "codebook_size": 512,
        "width": 64,
        "ema_decay": 0.99,
    },
}


@dataclass(frozen=True)
class Experiment:
    data: ImageData = "mnist_mini"  # images (sides divisible by 4): name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    codebook_size: Positive[int] = 64  # number of codebook vectors K
    codebook_dim: Positive[int] = 16  # dimension of the codebook vectors
    width: Positive[int] = 16  # channels of the convolutions
    steps: Positive[int] = 600  # gradient steps of encoder and decoder
    prior_steps: Positive[int] = 800  # gradient steps of the prior
    batch_size: Positive[int] = 64  # images per gradient step
    learning_rate: Positive[float] = 2e-3  # Adam's learning rate
    ema_decay: UnitInterval = 0.95  # decay of the moving averages of the codebook
    num_examples: Positive[int] = 60_000  # maximum number of training images, and of test images

    def model(self, shape: Sequence[int]) -> VQVAE:
        channels, height, width = shape
        grid_shape = (height // 4, width // 4)
        return VQVAE(
            code_grid_encoder(channels, self.codebook_dim, width=self.width),
            code_grid_decoder(self.codebook_dim, channels, width=self.width),
            EMACodebook(self.codebook_size, self.codebook_dim, decay=self.ema_decay),
            NeighbourPrior(self.codebook_size, grid_shape),
            grid_shape=grid_shape,
        )

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data, size=self.image_size).to(run.device)
        train, test = data.train.take(self.num_examples), data.test.take(self.num_examples).x
        model = run.build(self.model, shape=data.shape)
        model, optimizer = run.prepare(model, partial(Adam, lr=self.learning_rate))
        every = max(1, self.steps // 12)
        for step, loss in descend(run, model, optimizer, train.batches(self.batch_size, self.steps)):
            run.log(step, loss=loss)
            if step % every == 0 or step == self.steps - 1:
                run.record(
                    step, codebook_perplexity=codebook_perplexity(encode_images(model, test[:200]), self.codebook_size)
                )

        model.eval()
        train_codes, test_codes = encode_images(model, train.x), encode_images(model, test)
        sequences = Split(train_codes.flatten(1))
        prior, optimizer = run.prepare(model.prior, partial(Adam, lr=self.learning_rate))
        for step, loss in descend(run, prior, optimizer, sequences.batches(self.batch_size, self.prior_steps)):
            run.log(step, prior_bits=loss / log(2))
        run.publish(model)

        independent = IndependentPrior.fit(train_codes.flatten(1), self.codebook_size)
        with torch.no_grad():
            bits = {
                "uniform": test_codes[0].numel() * log2(self.codebook_size),
                "independent": float(-independent.log_prob(test_codes.flatten(1)).mean() / log(2)),
                "autoregressive": float(model.bits(test_codes).mean()),
            }
            error = torch.cat([(model(x) - x).square().flatten(1).mean(1) for x in test.split(500)]).mean()
            self.plot_samples(run, model, independent, test, test_codes)
        run.figure(
            "bits",
            bar_chart(bits, x_label="bits per test image"),
            f"Bits per image ({test_codes[0].numel()} codes, codebook of {self.codebook_size}) under three priors: "
            "uniform codes, independent frequencies per position, and the prior conditioned on neighbouring codes.",
        )
        run.figure(
            "perplexity",
            curves({"perplexity": run.curve("codebook_perplexity")}, x_label="step", y_label="perplexity of the codes"),
            f"Perplexity of the {self.codebook_size} codes, the exponential of their entropy. It increases as unused "
            "codebook vectors are reset to encoded data.",
        )
        return {
            "test_error": float(error),
            "codebook_perplexity": float(codebook_perplexity(test_codes, self.codebook_size)),
            "bits": bits["autoregressive"],
            "bits_independent": bits["independent"],
            "bits_uniform": bits["uniform"],
        }

    def plot_samples(
        self, run: Run, model: VQVAE, independent: IndependentPrior, test: Tensor, test_codes: Tensor
    ) -> None:
        images, codes = test[:12], test_codes[:12]
        shades = (codes[:, None] / max(1, self.codebook_size - 1)).expand(-1, images.shape[1], -1, -1)
        code_images = shades.repeat_interleave(4, -1).repeat_interleave(4, -2)
        run.figure(
            "reconstructions",
            image_grid(
                torch.cat([images, code_images, model(images)]),
                columns=12,
                row_labels=["image", "codes", "reconstruction"],
            ),
            "Test images, their codes (the grey value is the index of the code), and their reconstructions.",
        )
        rows = {
            "uniform codes": torch.randint(self.codebook_size, test_codes[:12].shape, device=test_codes.device),
            "independent codes": independent.sample(12).unflatten(1, model.grid_shape),
            "autoregressive": model.prior.sample(12).unflatten(1, model.grid_shape),
        }
        samples = torch.cat([model.decode(indices) for indices in rows.values()])
        run.figure(
            "samples",
            image_grid(samples, columns=12, row_labels=list(rows)),
            "Images decoded from uniform codes, from independent codes with the frequencies of each position, and from "
            "the autoregressive prior conditioned on neighbouring codes.",
        )


@dataclass(frozen=True)
class Sample:
    num_samples: Positive[int] = 100  # number of samples

    def __call__(self, model: VQVAE) -> Tensor:
        return model.sample(self.num_samples)


@torch.no_grad()
def encode_images(model: VQVAE, x: Tensor) -> Tensor:
    return torch.cat([model.encode(part) for part in x.split(500)])
