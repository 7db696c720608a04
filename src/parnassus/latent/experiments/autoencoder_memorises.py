"""A large autoencoder memorises few examples; noise at its input makes that harder (book sec. 4.4)."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor, nn
from torch.optim import Adam

from parnassus.data import Dataset, open_data
from parnassus.latent.autoencoder import Autoencoder, dense_decoder, dense_encoder
from parnassus.latent.denoising import DenoisingAutoencoder, gaussian
from parnassus.report import curves, image_grid
from parnassus.train import Run, at_least, at_most, descend

covers = ("B4.4-1", "B4.4-5")
expected = {
    "seen_error_of_few": at_most(3e-4, "squared error a pixel on the few images it was trained on"),
    "unseen_over_seen_of_few": at_least(150.0, "error on unseen images over that, trained on few"),
    "unseen_over_seen_of_many": at_most(1.6, "the same, trained on many"),
    "unseen_with_noise_over_without": at_most(
        0.9, "error on unseen images with noise at the input over without, trained on few"
    ),
}
profiles = {"smoke": {"counts": (20, 200), "steps": 40}}


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # a built-in name, or your own folder of images
    counts: tuple[int, ...] = (20, 60, 200, 600, 1_400)  # how many examples each network may see
    steps: int = 1_500  # gradient steps of each network
    width: int = 256  # hidden units of encoder and decoder
    latent: int = 32  # numbers in the code
    std: float = 0.2  # noise at the input of the denoising networks

    def __call__(self, run: Run) -> dict[str, float]:
        data = open_data(self.data).to(run.device)
        plain = {count: self._trained(run, data, count, std=0.0) for count in self.counts}
        noisy = {count: self._trained(run, data, count, std=self.std) for count in self.counts}

        seen = [_error(model, data.train.x[:count]) for count, model in plain.items()]
        unseen = [_error(model, data.test.x) for model in plain.values()]
        with_noise = [_error(model, data.test.x) for model in noisy.values()]
        lines = {
            "seen examples": (self.counts, seen),
            "unseen examples": (self.counts, unseen),
            "unseen, trained with noise": (self.counts, with_noise),
        }
        figure = curves(lines, x_label="training examples", y_label="squared error a pixel", log_x=True, log_y=True)
        run.figure("errors", figure, "The gap between seen and unseen closes with the number of examples.")
        few, many = min(self.counts), max(self.counts)
        self._draw(run, data, {f"{few} seen": plain[few], f"{few}, noise": noisy[few], f"{many} seen": plain[many]})
        return {
            "seen_error_of_few": seen[0],
            "unseen_over_seen_of_few": unseen[0] / seen[0],
            "unseen_over_seen_of_many": unseen[-1] / seen[-1],
            "unseen_with_noise_over_without": with_noise[0] / unseen[0],
        }

    def _trained(self, run: Run, data: Dataset, count: int, *, std: float) -> Autoencoder:
        encoder = dense_encoder(data.shape, self.latent, width=self.width, norm=nn.Identity)
        decoder = dense_decoder(self.latent, data.shape, width=self.width, norm=nn.Identity)
        autoencoder = Autoencoder(encoder, decoder)
        model = DenoisingAutoencoder(autoencoder, partial(gaussian, std=std))
        model, optimizer = run.prepare(model, partial(Adam, lr=1e-3))
        for step, loss in descend(run, model, optimizer, data.train.take(count).batches(64, self.steps)):
            run.log(step, **{f"{count}{'_noisy' if std else ''}_loss": loss})
        return autoencoder

    def _draw(self, run: Run, data: Dataset, models: dict[str, Autoencoder]) -> None:
        x = data.test.x[:10]
        with torch.no_grad():
            rows = {"unseen": x, **{name: model(x) for name, model in models.items()}}
        figure = image_grid(torch.cat(list(rows.values())), columns=len(x), row_labels=list(rows))
        run.figure("unseen", figure, "Who has seen few examples answers with what it knows.")


@torch.no_grad()
def _error(model: Autoencoder, x: Tensor) -> float:
    return float(model.reconstruction_error(x).mean())
