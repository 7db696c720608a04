"""DDIM inversion encodes digits as noise; reconstructions and interpolations (book secs. 13.2.5, 13.2.8)."""

from dataclasses import dataclass

import torch
from torch import Tensor

from parnassus.data import open_data
from parnassus.data.preparation.signed_pixels import signed_labelled_images
from parnassus.diffusion.chain.forward_process import Denoiser
from parnassus.diffusion.chain.objectives import weighted_objective
from parnassus.diffusion.chain.predictions import VELOCITY, NoisePredictor
from parnassus.diffusion.chain.schedules import Schedule, linear_schedule
from parnassus.diffusion.commands.averaged_training import train_with_averaging
from parnassus.diffusion.models.ddpm import DDPM
from parnassus.diffusion.networks.mlp_denoisers import ResidualMLP
from parnassus.diffusion.samplers.ddim import ddim
from parnassus.diffusion.samplers.ddim_inversion import ddim_inversion, ddim_reconstruction
from parnassus.diffusion.samplers.image_sampling import to_pixels
from parnassus.diffusion.samplers.time_steps import evenly_spaced_steps
from parnassus.probability.distributions.slerp import slerp
from parnassus.report import curves, histograms, image_grid
from parnassus.setting_types import GreyImageData
from parnassus.train import Positive, Run, at_most, between, no_band

covers = ("B13.2.4-4", "B13.2.5-3", "B13.2.8-3")
expected = {
    "reconstruction_error_20": no_band(
        "root mean squared error of a pixel in [−1, 1] after inversion and sampling in 20 steps"
    ),
    "reconstruction_error_all": at_most(
        0.05, "root mean squared error of a pixel after inversion and sampling over all steps"
    ),
    "corrected_error_20": at_most(
        0.02, "root mean squared error of a pixel after 20 steps, 5 fixed-point corrections per inversion step"
    ),
    "code_variance": between(0.7, 1.2, "variance of a coordinate of the codes; standard normal noise has 1"),
    "midpoint_norm_slerp": between(
        0.85, 1.15, "norm of the midpoint of spherical interpolation of two codes, relative to noise"
    ),
    "midpoint_norm_linear": no_band("norm of the midpoint of linear interpolation of two codes, relative to noise"),
}
profiles = {
    "smoke": {"steps": 10, "width": 32, "num_train_timesteps": 40, "num_test": 20},
    "gpu": {
        "data": "mnist",
        "steps": 20_000,
        "batch_size": 512,
        "width": 1_536,
        "num_blocks": 6,
        "num_train_timesteps": 1_000,
        "learning_rate": 5e-4,
    },
}
FRACTIONS = tuple(index / 8 for index in range(9))  # positions along an interpolation


@dataclass(frozen=True)
class Experiment:
    data: GreyImageData = "digits"  # images by class: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    steps: Positive[int] = 1_200  # gradient steps
    batch_size: Positive[int] = 128  # images per gradient step
    width: Positive[int] = 256  # hidden units of the denoiser
    num_blocks: Positive[int] = 3  # residual blocks of the denoiser
    num_train_timesteps: Positive[int] = 100  # number of diffusion steps T
    learning_rate: Positive[float] = 2e-3  # peak learning rate of Adam, reached after 10 % of the steps
    num_test: Positive[int] = 100  # test images to encode

    def __call__(self, run: Run) -> dict[str, float]:
        data = signed_labelled_images(open_data(self.data, size=self.image_size)).to(run.device)
        classes = len(data.classes)
        scale = min(1_000 / self.num_train_timesteps, 45.0)  # a shorter chain takes larger steps
        schedule = linear_schedule(self.num_train_timesteps, 1e-4 * scale, 0.02 * scale)
        network = ResidualMLP(data.shape, self.width, blocks=self.num_blocks, classes=classes)
        # predicts v: near pure noise an error of ε would be amplified by 1/√ᾱ in x_0
        denoiser, objective = NoisePredictor(network, VELOCITY, schedule), weighted_objective(VELOCITY.weight)
        model = DDPM(denoiser, data.shape, schedule=schedule, classes=classes, objective=objective)
        batches = data.train.pairs(self.batch_size, self.steps)
        model = train_with_averaging(run, model, batches, self.learning_rate)

        with torch.no_grad():
            x = data.test.x[: self.num_test]
            errors = self.measure_reconstruction_errors(run, model.denoiser, schedule, x)  # unconditional
            codes = ddim_inversion(model.denoiser, schedule, x)
            self.plot_codes(run, model.denoiser, schedule, x, codes)
            lengths = self.plot_interpolations(run, model, x, codes)
        return {
            "reconstruction_error_20": errors["no correction"][1],
            "reconstruction_error_all": errors["no correction"][-1],
            "corrected_error_20": errors["5 corrections"][1],
            "code_variance": float(codes.var()),
            **lengths,
        }

    def measure_reconstruction_errors(
        self, run: Run, denoiser: Denoiser, schedule: Schedule, x: Tensor
    ) -> dict[str, list[float]]:
        """The reconstruction error against the number of steps, for several numbers of fixed-point corrections."""
        counts = sorted({min(count, self.num_train_timesteps) for count in (10, 20, 50, self.num_train_timesteps)})
        names = {"no correction": 0, "1 correction": 1, "5 corrections": 5}
        errors = {
            name: [
                rms(
                    ddim_reconstruction(
                        denoiser,
                        schedule,
                        x,
                        grid=evenly_spaced_steps(self.num_train_timesteps, count),
                        corrections=corrections,
                    )
                    - x
                )
                for count in counts
            ]
            for name, corrections in names.items()
        }
        figure = curves(
            {name: (counts, row) for name, row in errors.items()},
            x_label="steps of inversion and of sampling",
            y_label="RMS error per pixel",
            log_x=True,
            log_y=True,
        )
        run.figure(
            "reconstruction error",
            figure,
            "Test images after inversion and sampling. An inversion step needs the noise prediction at the next state; "
            "fixed-point corrections, which evaluate it there, make even few steps accurate.",
        )
        return errors

    def plot_codes(self, run: Run, denoiser: Denoiser, schedule: Schedule, x: Tensor, codes: Tensor) -> None:
        """Images, codes and reconstructions; and the distribution of the codes."""
        few = ddim_reconstruction(
            denoiser, schedule, x, grid=evenly_spaced_steps(self.num_train_timesteps, min(20, self.num_train_timesteps))
        )
        full = ddim(denoiser, schedule, codes)
        rows = torch.cat([to_pixels(x[:10]), to_pixels(codes[:10] / 2), to_pixels(few[:10]), to_pixels(full[:10])])
        names = ("image", "code", "20 steps", "all steps")
        run.figure(
            "codes",
            image_grid(rows, columns=min(10, len(x)), row_labels=names),
            "Test images, their codes by DDIM inversion, and reconstructions over 20 steps and over all steps.",
        )
        run.figure(
            "distribution of the codes",
            histograms(
                {"codes of images": codes.flatten(), "noise": torch.randn_like(codes).flatten()}, x_label="value"
            ),
            "Coordinates of all codes and of as many standard normal samples.",
        )

    def plot_interpolations(self, run: Run, model: DDPM, x: Tensor, codes: Tensor) -> dict[str, float]:
        """Spherical and linear interpolation of codes, and linear interpolation of pixels."""
        left, right = codes[:4].flatten(1), codes[4:8].flatten(1)
        arcs = torch.stack([slerp(left, right, fraction) for fraction in FRACTIONS], 1)
        lines = torch.stack([(1 - fraction) * left + fraction * right for fraction in FRACTIONS], 1)
        pixels = torch.stack([(1 - fraction) * x[:4] + fraction * x[4:8] for fraction in FRACTIONS], 1)
        decoded = [
            ddim(model.denoiser, model.schedule, path.reshape(-1, *model.shape)).reshape(pixels.shape)
            for path in (arcs, lines)
        ]
        rows = torch.stack([*decoded, pixels], 1).flatten(0, 2)
        names = ("codes, slerp", "codes, linear", "pixels, linear") * 4
        run.figure(
            "interpolations",
            image_grid(to_pixels(rows), columns=len(FRACTIONS), row_labels=names[: len(rows) // len(FRACTIONS)]),
            "Interpolations between test images: spherical and linear interpolation of their codes, and linear "
            "interpolation of pixels. The midpoint of the linear path has a smaller norm than noise. On images of few "
            "pixels the three look similar.",
        )
        noise_norm = codes[0].numel() ** 0.5
        middle = len(FRACTIONS) // 2
        return {
            "midpoint_norm_slerp": float(arcs[:, middle].norm(dim=1).mean()) / noise_norm,
            "midpoint_norm_linear": float(lines[:, middle].norm(dim=1).mean()) / noise_norm,
        }


def rms(error: Tensor) -> float:
    return float(error.square().mean().sqrt())
