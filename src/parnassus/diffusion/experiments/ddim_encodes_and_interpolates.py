"""DDIM runs backwards: digits stored as noise, drawn again, and walks between them (book secs. 13.2.5, 13.2.8)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from parnassus.data import open_data
from parnassus.diffusion.ddpm import DDPM
from parnassus.diffusion.denoisers import ResidualMLP
from parnassus.diffusion.experiments.diffusion_on_digits import centred, learn, visible
from parnassus.diffusion.inversion import encode, reconstruct
from parnassus.diffusion.objectives import weighted
from parnassus.diffusion.predictions import VELOCITY, AsNoise
from parnassus.diffusion.process import Denoiser
from parnassus.diffusion.samplers import ddim, even_grid, slerp
from parnassus.diffusion.schedules import Schedule, linear_schedule
from parnassus.report import curves, histograms, image_grid
from parnassus.train import Run, at_most, between, reported

covers = ("B13.2.4-4", "B13.2.5-3", "B13.2.8-3")
expected = {
    "copy_error_20": reported(
        "root of the mean squared error of a pixel in [−1, 1] after encoding and drawing, 20 steps"
    ),
    "copy_error_all": at_most(0.05, "the same over all steps of the chain"),
    "corrected_error_20": at_most(0.02, "the same over 20 steps, each asked again 5 times on the way to the code"),
    "code_variance": between(0.7, 1.2, "variance of a coordinate of the codes; pure noise has 1"),
    "middle_length_arc": between(0.85, 1.15, "length of the middle of an arc between two codes, over that of noise"),
    "middle_length_line": reported("the same for the middle of the straight line"),
}
profiles = {
    "smoke": {"steps": 10, "width": 32, "chain": 40, "count": 20},
    "gpu": {"data": "mnist", "steps": 20_000, "batch": 512, "width": 1_536, "blocks": 6, "chain": 1_000, "lr": 5e-4},
}
SHARES = tuple(index / 8 for index in range(9))


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # a set of images by class: digits, mnist_mini, mnist, fashion_mnist, or a folder of yours
    steps: int = 1_200  # gradient steps
    batch: int = 128  # images a step
    width: int = 256  # hidden units of the denoiser
    blocks: int = 3  # its residual blocks
    chain: int = 100  # diffusion steps T
    lr: float = 2e-3  # Adam's largest learning rate, reached after a tenth of the steps
    count: int = 100  # unseen images that are encoded

    def __call__(self, run: Run) -> dict[str, float]:
        data = centred(open_data(self.data)).to(run.device)
        classes = len(data.classes)
        scale = min(1_000 / self.chain, 45.0)  # a shorter chain takes larger steps
        schedule = linear_schedule(self.chain, 1e-4 * scale, 0.02 * scale)
        network = ResidualMLP(data.shape, self.width, blocks=self.blocks, classes=classes)
        # to predict v: an error of ε in nearly pure noise would become one of the image 1/√ᾱ times as large
        denoiser, objective = AsNoise(network, VELOCITY, schedule), weighted(VELOCITY.weight)
        model = DDPM(denoiser, data.shape, schedule=schedule, classes=classes, objective=objective)
        model = learn(run, model, data.train, steps=self.steps, batch=self.batch, lr=self.lr)

        with torch.no_grad():
            unseen = data.test.take(self.count)
            errors = self.measure_round_trips(run, model.denoiser, schedule, unseen.x)  # no class is told
            codes = encode(model.denoiser, schedule, unseen.x)
            self.show_codes(run, model.denoiser, schedule, unseen.x, codes)
            lengths = self.show_walks(run, model, unseen.x, codes)
        return {
            "copy_error_20": errors["as it is"][1],
            "copy_error_all": errors["as it is"][-1],
            "corrected_error_20": errors["asked again 5 times"][1],
            "code_variance": float(codes.var()),
            **lengths,
        }

    def measure_round_trips(
        self, run: Run, denoiser: Denoiser, schedule: Schedule, x: Tensor
    ) -> dict[str, list[float]]:
        """The error of a copy against the number of steps, with more and more care on the way to the code."""
        counts = sorted({min(count, self.chain) for count in (10, 20, 50, self.chain)})
        names = {"as it is": 0, "asked again once": 1, "asked again 5 times": 5}
        errors = {
            name: [
                rms(reconstruct(denoiser, schedule, x, grid=even_grid(self.chain, count), corrections=corrections) - x)
                for count in counts
            ]
            for name, corrections in names.items()
        }
        figure = curves(
            {name: (counts, row) for name, row in errors.items()},
            x_label="steps there, and back again",
            y_label="RMS error of a pixel",
            log_x=True,
            log_y=True,
        )
        run.figure(
            "round trip",
            figure,
            "Unseen images encoded and drawn again. DDIM backwards must guess the noise of the step it is about to "
            "reach; asking again at that step mends the guess and makes even few steps return.",
        )
        return errors

    def show_codes(self, run: Run, denoiser: Denoiser, schedule: Schedule, x: Tensor, codes: Tensor) -> None:
        """Images, their codes and their copies; and how normal the codes are."""
        few = reconstruct(denoiser, schedule, x, grid=even_grid(self.chain, min(20, self.chain)))
        every = ddim(denoiser, schedule, codes)
        rows = torch.cat([visible(x[:10]), visible(codes[:10] / 2), visible(few[:10]), visible(every[:10])])
        names = ("image", "its code", "20 steps", "all steps")
        run.figure(
            "codes",
            image_grid(rows, columns=min(10, len(x)), row_labels=names),
            "Unseen images, the noise DDIM stores them as, and what comes back over few steps and over all.",
        )
        run.figure(
            "law of the codes",
            histograms(
                {"codes of images": codes.flatten(), "noise": torch.randn_like(codes).flatten()}, x_label="value"
            ),
            "The coordinates of all codes beside as many draws of noise: where they agree, codes can be drawn.",
        )

    def show_walks(self, run: Run, model: DDPM, x: Tensor, codes: Tensor) -> dict[str, float]:
        """Arcs between codes, straight lines between codes, and straight lines between images, drawn side by side."""
        left, right = codes[:4].flatten(1), codes[4:8].flatten(1)
        arcs = torch.stack([slerp(left, right, share) for share in SHARES], 1)
        lines = torch.stack([(1 - share) * left + share * right for share in SHARES], 1)
        pixels = torch.stack([(1 - share) * x[:4] + share * x[4:8] for share in SHARES], 1)
        drawn = [
            ddim(model.denoiser, model.schedule, path.reshape(-1, *model.shape)).reshape(pixels.shape)
            for path in (arcs, lines)
        ]
        strips = torch.stack([*drawn, pixels], 1).flatten(0, 2)
        names = ("arc of codes", "line of codes", "images mixed") * 4
        run.figure(
            "walks",
            image_grid(visible(strips), columns=len(SHARES), row_labels=names[: len(strips) // len(SHARES)]),
            "From one unseen image to another: along the great arc between their codes; along the straight line, whose "
            "middle is a code shorter than noise is; and by mixing pixels. The ends are the images. On images "
            "of few pixels the three ways look much alike.",
        )
        usual = codes[0].numel() ** 0.5
        middle = len(SHARES) // 2
        return {
            "middle_length_arc": float(arcs[:, middle].norm(dim=1).mean()) / usual,
            "middle_length_line": float(lines[:, middle].norm(dim=1).mean()) / usual,
        }


def rms(error: Tensor) -> float:
    return float(error.square().mean().sqrt())
