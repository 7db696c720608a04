"""A VQ-VAE writes digits with a finite alphabet, and learns to spell new ones (book sec. 13.3.1)."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import log, log2

import torch
from torch import Tensor
from torch.optim import Adam

from parnassus.data import Split, open_data
from parnassus.latent.code_priors import IndependentPrior, NeighbourPrior
from parnassus.latent.vector_quantiser import MovingCodebook, perplexity
from parnassus.latent.vq_vae import VQVAE, raster_decoder, raster_encoder
from parnassus.report import bars, curves, image_grid
from parnassus.train import Run, at_least, at_most, descend, reported

covers = ("B13.3.1-10",)
expected = {
    "test_error": at_most(0.014, "squared error a pixel of unseen images, rebuilt from their codes"),
    "codes_in_use": at_least(25.0, "perplexity of the codes over unseen images"),
    "bits": at_most(150.0, "bits an unseen image costs under the prior that sees neighbours"),
    "bits_by_frequency": reported("the same under a prior of frequencies, position by position"),
    "bits_by_count": reported("the same if every code counts alike: positions times log₂ K"),
}
profiles = {
    "smoke": {"steps": 6, "prior_steps": 6, "codes": 16, "examples": 128},
    "gpu": {"data": "fashion_mnist", "steps": 20_000, "prior_steps": 20_000, "codes": 512, "width": 64, "decay": 0.99},
}


@dataclass(frozen=True)
class Experiment:
    data: str = "mnist_mini"  # a built-in name, or your own folder of images; sides must be multiples of 4
    codes: int = 64  # entries of the codebook, K
    dim: int = 16  # size of an entry
    width: int = 16  # channels of the convolutions
    steps: int = 600  # gradient steps of encoder and decoder
    prior_steps: int = 800  # gradient steps of each prior
    batch: int = 64  # images a step
    rate: float = 2e-3  # Adam's learning rate
    decay: float = 0.95  # of the codebook's moving averages
    examples: int = 60_000  # images to use at most, and as many unseen ones

    def model(self, shape: Sequence[int]) -> VQVAE:
        channels, height, width = shape
        raster = (height // 4, width // 4)
        return VQVAE(
            raster_encoder(channels, self.dim, width=self.width),
            raster_decoder(self.dim, channels, width=self.width),
            MovingCodebook(self.codes, self.dim, decay=self.decay),
            NeighbourPrior(self.codes, raster),
            raster=raster,
        )

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data).to(run.device)
        train, test = data.train.take(self.examples), data.test.take(self.examples).x
        model = run.build(self.model, shape=data.shape)
        model, optimizer = run.prepare(model, partial(Adam, lr=self.rate))
        every = max(1, self.steps // 12)
        for step, loss in descend(run, model, optimizer, train.batches(self.batch, self.steps)):
            run.log(step, loss=loss)
            if step % every == 0 or step == self.steps - 1:
                run.record(step, codes_in_use=perplexity(codes_of(model, test[:200]), self.codes))

        model.eval()
        seen, unseen = codes_of(model, train.x), codes_of(model, test)
        sequences = Split(seen.flatten(1))
        prior, optimizer = run.prepare(model.prior, partial(Adam, lr=self.rate))
        for step, loss in descend(run, prior, optimizer, sequences.batches(self.batch, self.prior_steps)):
            run.log(step, prior_bits=loss / log(2))
        run.publish(model)

        frequencies = IndependentPrior.fit(seen.flatten(1), self.codes)
        with torch.no_grad():
            bits = {
                "every code alike": unseen[0].numel() * log2(self.codes),
                "frequencies": float(-frequencies.log_prob(unseen.flatten(1)).mean() / log(2)),
                "neighbours": float(model.bits(unseen).mean()),
            }
            error = torch.cat([(model(x) - x).square().flatten(1).mean(1) for x in test.split(500)]).mean()
            self.show(run, model, frequencies, test, unseen)
        run.figure(
            "bits",
            bars(bits, x_label="bits an unseen image"),
            f"What an image costs: {unseen[0].numel()} codes of an alphabet of {self.codes}, by three priors. To know "
            "which codes go together saves more than half.",
        )
        run.figure(
            "alphabet in use",
            curves({"codes in use": run.curve("codes_in_use")}, x_label="step", y_label="perplexity of the codes"),
            f"How many of the {self.codes} codes are in use, as exp of their entropy. Few at first; codes that nothing "
            "is near to are put down again amid the data.",
        )
        return {
            "test_error": float(error),
            "codes_in_use": float(perplexity(unseen, self.codes)),
            "bits": bits["neighbours"],
            "bits_by_frequency": bits["frequencies"],
            "bits_by_count": bits["every code alike"],
        }

    def show(self, run: Run, model: VQVAE, frequencies: IndependentPrior, test: Tensor, unseen: Tensor) -> None:
        shown, codes = test[:12], unseen[:12]
        shades = (codes[:, None] / max(1, self.codes - 1)).expand(-1, shown.shape[1], -1, -1)
        large = shades.repeat_interleave(4, -1).repeat_interleave(4, -2)
        run.figure(
            "rebuilt",
            image_grid(
                torch.cat([shown, large, model(shown)]), columns=12, row_labels=["unseen", "its codes", "rebuilt"]
            ),
            "Unseen images, their codes (a shade for each number, in no order), and what the codes alone give back.",
        )
        rows = {
            "any codes": torch.randint(self.codes, unseen[:12].shape, device=unseen.device),
            "frequencies": frequencies.sample(12).unflatten(1, model.raster),
            "neighbours": model.prior.sample(12).unflatten(1, model.raster),
        }
        images = torch.cat([model.decode(indices) for indices in rows.values()])
        run.figure(
            "drawn",
            image_grid(images, columns=12, row_labels=list(rows)),
            "Decoded from codes drawn at random, by the frequencies at each place, and by the prior that sees its "
            "neighbours: strokes hold together, whole digits only at times.",
        )


@dataclass(frozen=True)
class Sample:
    count: int = 100  # how many

    def __call__(self, model: VQVAE) -> Tensor:
        return model.sample(self.count)


@torch.no_grad()
def codes_of(model: VQVAE, x: Tensor) -> Tensor:
    return torch.cat([model.encode(part) for part in x.split(500)])
