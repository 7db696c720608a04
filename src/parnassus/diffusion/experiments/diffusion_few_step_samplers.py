"""DDPM, DDIM, Heun and DPM-Solver++ at equal numbers of network evaluations on digits (book sec. 13.2.5)."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from parnassus.data import Dataset, open_data
from parnassus.data.preparation.signed_pixels import signed_labelled_images
from parnassus.diffusion.chain.forward_process import Denoiser
from parnassus.diffusion.chain.schedules import cosine_schedule
from parnassus.diffusion.commands.averaged_training import train_with_averaging
from parnassus.diffusion.guidance import clip_x0
from parnassus.diffusion.models.ddpm import DDPM
from parnassus.diffusion.networks.mlp_denoisers import ResidualMLP
from parnassus.diffusion.samplers.heun import heun_sampler
from parnassus.diffusion.samplers.image_sampling import SAMPLER_PATHS, to_pixels
from parnassus.diffusion.samplers.time_steps import evenly_spaced_steps, last_state
from parnassus.layers.pixel_classifier import classifier_accuracy, fit_classifier
from parnassus.probability import energy_distance
from parnassus.report import curves, image_grid
from parnassus.setting_types import GreyImageData
from parnassus.train import Positive, Run, at_least, at_most, no_band

covers = ("B13.2.5-2", "B13.2.5-3")
expected = {
    "accuracy_ddim_9": at_least(0.88, "class accuracy of DDIM samples with 9 network evaluations"),
    "accuracy_dpm_9": at_least(0.88, "class accuracy of DPM-Solver++ samples with 9 network evaluations"),
    "accuracy_heun_9": at_least(0.88, "class accuracy of Heun samples with 9 network evaluations"),
    "accuracy_ddpm_9": no_band("class accuracy of DDPM samples with 9 network evaluations, noise at every step"),
    "error_ratio_dpm": at_most(
        0.85, "ratio of the solver errors of DPM-Solver++ and DDIM after 25 network evaluations"
    ),
    "error_ratio_heun": no_band("ratio of the solver errors of Heun and DDIM after 25 network evaluations"),
    "energy_ddim_25": at_most(0.12, "energy distance of DDIM samples to test images, 25 network evaluations"),
    "energy_of_real": no_band("energy distance between training and test images"),
}
profiles = {
    "smoke": {"steps": 10, "width": 32, "num_train_timesteps": 60, "num_samples": 40},
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
EVALUATIONS = (3, 5, 9, 15, 25, 51)  # of the network per sample
NAMES = {"ddim": "DDIM", "ddpm": "DDPM", "heun": "Heun", "dpm": "DPM-Solver++(2M)"}


@dataclass(frozen=True)
class Experiment:
    data: GreyImageData = "digits"  # images by class: name of a data set, or path of a folder
    image_size: Positive[int] | None = None  # resize the images of a folder to squares with sides of this many pixels
    steps: Positive[int] = 1_200  # gradient steps
    batch_size: Positive[int] = 128  # images per gradient step
    width: Positive[int] = 256  # hidden units of the denoiser
    num_blocks: Positive[int] = 3  # residual blocks of the denoiser
    num_train_timesteps: Positive[int] = 200  # number of diffusion steps T
    learning_rate: Positive[float] = 2e-3  # peak learning rate of Adam, reached after 10 % of the steps
    num_samples: Positive[int] = 500  # number of samples to evaluate

    def __call__(self, run: Run) -> dict[str, float]:
        data = signed_labelled_images(open_data(self.data, size=self.image_size)).to(run.device)
        classes = len(data.classes)
        denoiser = ResidualMLP(data.shape, self.width, blocks=self.num_blocks, classes=classes)
        model = DDPM(denoiser, data.shape, schedule=cosine_schedule(self.num_train_timesteps), classes=classes)
        batches = data.train.pairs(self.batch_size, self.steps)
        model = train_with_averaging(run, model, batches, self.learning_rate)

        label = torch.arange(self.num_samples, device=run.device) % classes
        start = torch.randn(self.num_samples, *data.shape, device=run.device)
        samples = sample_with_all(model, label, start)
        quality = self.evaluate_quality(run, data, samples, label)
        errors = self.measure_solver_errors(run, model, label, start, samples)
        self.plot_samples(run, data, samples)
        index_9, index_25 = EVALUATIONS.index(9), EVALUATIONS.index(25)
        return {
            **{f"accuracy_{name}_9": quality[name]["accuracy"][index_9] for name in NAMES},
            "error_ratio_dpm": errors["dpm"][index_25] / errors["ddim"][index_25],
            "error_ratio_heun": errors["heun"][index_25] / errors["ddim"][index_25],
            "energy_ddim_25": quality["ddim"]["energy"][index_25],
            "energy_of_real": pixel_energy_distance(data.train.x[: self.num_samples], data.test.x),
        }

    def evaluate_quality(
        self, run: Run, data: Dataset, samples: dict[str, list[Tensor]], label: Tensor
    ) -> dict[str, dict[str, list[float]]]:
        """Class accuracy by a classifier of real images, and energy distance to test images."""
        classifier = fit_classifier(data.train.x, data.train.y)
        quality = {
            name: {
                "accuracy": [classifier_accuracy(classifier, images, label) for images in sets],
                "energy": [pixel_energy_distance(images, data.test.x) for images in sets],
            }
            for name, sets in samples.items()
        }
        real_distance = pixel_energy_distance(data.train.x[: self.num_samples], data.test.x)
        accuracies = {NAMES[name]: (EVALUATIONS, each["accuracy"]) for name, each in quality.items()}
        run.figure(
            "accuracy",
            curves(accuracies, x_label="network evaluations per sample", y_label="class accuracy", log_x=True),
            "Class accuracy of unguided samples, by a classifier of real images. The noise that DDPM adds corrects "
            "earlier errors, so its samples are the most typical, at the cost of diversity (next figure).",
        )
        distances = {NAMES[name]: (EVALUATIONS, each["energy"]) for name, each in quality.items()}
        run.figure(
            "energy distance",
            curves(
                {**distances, "training images": (EVALUATIONS, [real_distance] * len(EVALUATIONS))},
                x_label="network evaluations per sample",
                y_label="energy distance to test images",
                log_x=True,
                log_y=True,
            ),
            "Energy distance between samples and test images. With few evaluations the distribution of DDPM samples "
            "is too narrow.",
        )
        rows: list[dict[str, str | float]] = [
            {"evaluations": evaluations, **{NAMES[name]: quality[name]["accuracy"][i] for name in quality}}
            for i, evaluations in enumerate(EVALUATIONS)
        ]
        run.table("class accuracy", rows, "Fraction of samples classified as the requested class.")
        return quality

    @torch.no_grad()
    def measure_solver_errors(
        self, run: Run, model: DDPM, label: Tensor, start: Tensor, samples: dict[str, list[Tensor]]
    ) -> dict[str, list[float]]:
        """Distance of each deterministic sampler to the solution of the ODE, approximated by Heun over all steps."""
        exact = heun_sampler(clip_x0(model.condition_on(label), model.schedule), model.schedule, start)
        errors = {
            name: [float((images - exact).square().mean().sqrt()) for images in samples[name]]
            for name in ("ddim", "heun", "dpm")
        }
        figure = curves(
            {NAMES[name]: (EVALUATIONS, row) for name, row in errors.items()},
            x_label="network evaluations per sample",
            y_label="RMS distance per pixel",
            log_x=True,
            log_y=True,
        )
        run.figure(
            "solver error",
            figure,
            "Distance of deterministic samples to the solution of the ODE from the same initial noise, approximated "
            f"by Heun's method over all {self.num_train_timesteps} steps. With exact denoisers the second-order "
            "solvers converge as 1/steps² (see the claims); a trained network is less smooth.",
        )
        return errors

    def plot_samples(self, run: Run, data: Dataset, samples: dict[str, list[Tensor]]) -> None:
        """A row of samples for each sampler, from the same initial noise."""
        columns = min(10, len(data.classes))
        for evaluations in (5, 9, 25):
            rows = torch.cat([sets[EVALUATIONS.index(evaluations)][:columns] for sets in samples.values()])
            grid = image_grid(
                to_pixels(rows),
                columns=columns,
                titles=data.classes[:columns],
                row_labels=[NAMES[name] for name in samples],
            )
            run.figure(
                f"samples with {evaluations} evaluations",
                grid,
                f"Samples from the same initial noise with {evaluations} network evaluations.",
            )


@torch.no_grad()
def sample_with_all(model: DDPM, label: Tensor, start: Tensor) -> dict[str, list[Tensor]]:
    """Images by each sampler for each number of network evaluations, which are counted."""
    samples: dict[str, list[Tensor]] = {name: [] for name in NAMES}
    for name, path in SAMPLER_PATHS.items():
        for evaluations in EVALUATIONS:
            steps = (evaluations + 1) // 2 if name == "heun" else evaluations
            denoiser, calls = count_calls(clip_x0(model.condition_on(label), model.schedule))
            grid = evenly_spaced_steps(len(model.schedule), steps)
            samples[name].append(last_state(path(denoiser, model.schedule, start, grid=grid)))
            assert len(calls) == evaluations
    return samples


def count_calls(denoiser: Denoiser) -> tuple[Callable[[Tensor, Tensor], Tensor], list[int]]:
    """The denoiser, and a list that grows by one with each call."""
    calls: list[int] = []

    def count_and_denoise(x: Tensor, t: Tensor) -> Tensor:
        calls.append(len(calls))
        return denoiser(x, t)

    return count_and_denoise, calls


def pixel_energy_distance(images: Tensor, real: Tensor) -> float:
    """The energy distance between two sets of images in pixel space."""
    subset = real[:1_000].flatten(1)
    return float(energy_distance(images.flatten(1), subset))
