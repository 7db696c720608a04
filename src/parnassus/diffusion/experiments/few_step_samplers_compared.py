"""DDPM, DDIM, Heun and DPM-Solver++ draw digits from one network with equally many calls of it (book sec. 13.2.5)."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from parnassus.data import Dataset, Split, open_data
from parnassus.diffusion.ddpm import DDPM
from parnassus.diffusion.denoisers import ResidualMLP
from parnassus.diffusion.drawing import PATHS
from parnassus.diffusion.experiments.diffusion_on_digits import accuracy, centred, classifier, learn, visible
from parnassus.diffusion.guidance import clipped
from parnassus.diffusion.process import Denoiser
from parnassus.diffusion.samplers import even_grid, last_state
from parnassus.diffusion.schedules import cosine_schedule
from parnassus.diffusion.solvers import heun
from parnassus.probability import energy_distance
from parnassus.report import curves, image_grid
from parnassus.train import Run, at_least, at_most, reported

covers = ("B13.2.5-2", "B13.2.5-3")
expected = {
    "accuracy_ddim_9": at_least(0.88, "share of DDIM's samples seen as the wished class, 9 calls each"),
    "accuracy_dpm_9": at_least(0.88, "the same for DPM-Solver++"),
    "accuracy_heun_9": at_least(0.88, "the same for Heun's method"),
    "accuracy_ddpm_9": reported("the same for DDPM, which adds noise at every step"),
    "gain_dpm": at_most(0.85, "distance to the exact end of the way after 25 calls, DPM-Solver++ over DDIM"),
    "gain_heun": reported("the same, Heun over DDIM: two calls a step must pay for themselves"),
    "energy_ddim_25": at_most(0.12, "energy distance of DDIM's samples to real images, 25 calls each"),
    "energy_floor": reported("the same between two sets of real images"),
}
profiles = {
    "smoke": {"steps": 10, "width": 32, "chain": 60, "count": 40},
    "gpu": {"data": "mnist", "steps": 20_000, "batch": 512, "width": 1_536, "blocks": 6, "chain": 1_000, "lr": 5e-4},
}
CALLS = (3, 5, 9, 15, 25, 51)
NAMES = {"ddim": "DDIM", "ddpm": "DDPM", "heun": "Heun", "dpm": "DPM-Solver++(2M)"}


@dataclass(frozen=True)
class Experiment:
    data: str = "digits"  # a set of images by class: digits, mnist_mini, mnist, fashion_mnist, or a folder of yours
    steps: int = 1_200  # gradient steps
    batch: int = 128  # images a step
    width: int = 256  # hidden units of the denoiser
    blocks: int = 3  # its residual blocks
    chain: int = 200  # diffusion steps T
    lr: float = 2e-3  # Adam's largest learning rate, reached after a tenth of the steps
    count: int = 500  # samples that are judged

    def __call__(self, run: Run) -> dict[str, float]:
        data = centred(open_data(self.data)).to(run.device)
        classes = len(data.classes)
        denoiser = ResidualMLP(data.shape, self.width, blocks=self.blocks, classes=classes)
        model = DDPM(denoiser, data.shape, schedule=cosine_schedule(self.chain), classes=classes)
        model = learn(run, model, data.train, steps=self.steps, batch=self.batch, lr=self.lr)

        wished = torch.arange(self.count, device=run.device) % classes
        start = torch.randn(self.count, *data.shape, device=run.device)
        drawn = draw_with_all(model, wished, start)
        quality = self.judge(run, data, drawn, wished)
        errors = self.measure_the_way(run, model, wished, start, drawn)
        self.show_strips(run, data, drawn)
        nine, many = CALLS.index(9), CALLS.index(25)
        return {
            **{f"accuracy_{name}_9": quality[name]["accuracy"][nine] for name in NAMES},
            "gain_dpm": errors["dpm"][many] / errors["ddim"][many],
            "gain_heun": errors["heun"][many] / errors["ddim"][many],
            "energy_ddim_25": quality["ddim"]["energy"][many],
            "energy_floor": distance(data.train.x[: self.count], data.test.x),
        }

    def judge(
        self, run: Run, data: Dataset, drawn: dict[str, list[Tensor]], wished: Tensor
    ) -> dict[str, dict[str, list[float]]]:
        """Class accuracy by a classifier of real images, and the energy distance to unseen ones."""
        of_real = classifier(data.train)
        quality = {
            name: {
                "accuracy": [accuracy(of_real, Split(images, wished)) for images in sets],
                "energy": [distance(images, data.test.x) for images in sets],
            }
            for name, sets in drawn.items()
        }
        floor = distance(data.train.x[: self.count], data.test.x)
        right = {NAMES[name]: (CALLS, found["accuracy"]) for name, found in quality.items()}
        run.figure(
            "accuracy",
            curves(right, x_label="calls of the network a sample", y_label="class accuracy", log_x=True),
            "How often a classifier of real images sees the wished class, without guidance. Fresh noise mends mistakes "
            "on the way: DDPM's samples are the most typical, but see the next picture.",
        )
        far = {NAMES[name]: (CALLS, found["energy"]) for name, found in quality.items()}
        run.figure(
            "energy distance",
            curves(
                {**far, "real against real": (CALLS, [floor] * len(CALLS))},
                x_label="calls of the network a sample",
                y_label="energy distance to unseen images",
                log_x=True,
                log_y=True,
            ),
            "The whole cloud of samples against that of unseen images. With few calls DDPM's is too narrow.",
        )
        rows: list[dict[str, str | float]] = [
            {"calls": calls, **{NAMES[name]: quality[name]["accuracy"][i] for name in quality}}
            for i, calls in enumerate(CALLS)
        ]
        run.table("class accuracy", rows, "Share of samples seen as the wished class.")
        return quality

    @torch.no_grad()
    def measure_the_way(
        self, run: Run, model: DDPM, wished: Tensor, start: Tensor, drawn: dict[str, list[Tensor]]
    ) -> dict[str, list[float]]:
        """How far each deterministic sampler ends from where the equation leads, which Heun over all steps finds."""
        exact = heun(clipped(model.conditioned(wished), model.schedule), model.schedule, start)
        errors = {
            name: [float((images - exact).square().mean().sqrt()) for images in drawn[name]]
            for name in ("ddim", "heun", "dpm")
        }
        figure = curves(
            {NAMES[name]: (CALLS, row) for name, row in errors.items()},
            x_label="calls of the network a sample",
            y_label="RMS distance a pixel",
            log_x=True,
            log_y=True,
        )
        run.figure(
            "distance to the exact end",
            figure,
            "Without fresh noise a start has one end. The same noise through few steps: how far from that end it "
            f"comes to rest, measured against Heun's method over all {self.chain} steps. With exact denoisers both "
            "solvers gain the square of the steps (see the claims); a trained network is rougher.",
        )
        return errors

    def show_strips(self, run: Run, data: Dataset, drawn: dict[str, list[Tensor]]) -> None:
        """The same wishes from the same noise, a row for each sampler, few calls and more."""
        columns = min(10, len(data.classes))
        for calls in (5, 9, 25):
            rows = torch.cat([sets[CALLS.index(calls)][:columns] for sets in drawn.values()])
            grid = image_grid(
                visible(rows),
                columns=columns,
                titles=data.classes[:columns],
                row_labels=[NAMES[name] for name in drawn],
            )
            run.figure(f"{calls} calls", grid, f"The same noise and the same wishes with {calls} calls of the network.")


@torch.no_grad()
def draw_with_all(model: DDPM, wished: Tensor, start: Tensor) -> dict[str, list[Tensor]]:
    """Images by each sampler for each number of calls, which are counted and must be those promised."""
    drawn: dict[str, list[Tensor]] = {name: [] for name in NAMES}
    for name, path in PATHS.items():
        for calls in CALLS:
            steps = (calls + 1) // 2 if name == "heun" else calls
            counted, asked = counting(clipped(model.conditioned(wished), model.schedule))
            grid = even_grid(len(model.schedule), steps)
            drawn[name].append(last_state(path(counted, model.schedule, start, grid=grid)))
            assert len(asked) == calls
    return drawn


def counting(denoiser: Denoiser) -> tuple[Callable[[Tensor, Tensor], Tensor], list[int]]:
    """The denoiser, and a list that grows by one with each call of it."""
    asked: list[int] = []

    def counted(x: Tensor, t: Tensor) -> Tensor:
        asked.append(len(asked))
        return denoiser(x, t)

    return counted, asked


def distance(images: Tensor, real: Tensor) -> float:
    """The energy distance between two sets of images, pixel by pixel."""
    few = real[:1_000].flatten(1)
    return float(energy_distance(images.flatten(1), few))
