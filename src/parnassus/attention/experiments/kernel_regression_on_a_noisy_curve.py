"""Kernel regression on a noisy curve: kernels, widths, weights, consistency (Zhao sec. 11, book eq. 10.6)."""

from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from parnassus.atlas import exponent
from parnassus.attention.kernel_regression import NadarayaWatson
from parnassus.attention.kernels import Kernel, boxcar, constant, epanechnikov, gaussian, triangular
from parnassus.data import DataError, Split, open_data
from parnassus.data.seeds import mix
from parnassus.data.toy import curve
from parnassus.report import FAINT, INK, PALETTE, curves, subplots
from parnassus.report.ink import SEQUENTIAL
from parnassus.train import Run, at_most, between, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("Z11.4", "Z11.5", "B10.1.3-2", "B10.1.3-4")
expected = {
    "error_gaussian": at_most(
        0.15, "squared distance to the true curve of the fit whose width left-out examples chose"
    ),
    "error_epanechnikov": at_most(0.15, "the same with Epanechnikov's kernel"),
    "error_triangular": at_most(0.15, "the same with the triangular one"),
    "error_boxcar": at_most(0.15, "the same with the boxcar"),
    "error_mean": between(0.5, 1.5, "the same of the mean of all examples, which the constant kernel gives"),
    "width": reported("width of the Gaussian that left-out examples chose"),
    "left_out_error": reported(
        "squared error of the Gaussian fit on examples left out; the noise's own part is noise²"
    ),
    "slope": between(-0.9, -0.65, "exponent r of error ∝ nʳ with the width n^{−1/5}; in theory −4/5"),
    "error_40": between(0.05, 0.2, "squared error inside [1, 4] with 40 examples and width n^{−1/5}"),
    "error_400": between(0.007, 0.025, "the same with 400"),
    "error_4000": between(0.0012, 0.004, "the same with 4,000"),
    "error_40000": between(0.0001, 0.0008, "the same with 40,000"),
}
profiles = {"smoke": {"repeats": 1, "candidates": 6}, "gpu": {"repeats": 200}}

KERNELS: dict[str, Kernel] = {
    "gaussian": gaussian,
    "epanechnikov": epanechnikov,
    "triangular": triangular,
    "boxcar": boxcar,
}
COUNTS = (40, 400, 4_000, 40_000)


@dataclass(frozen=True)
class Experiment:
    data: str = "curve"  # the curve 2 sin x + x seen through noise, or a table of yours: one input, then the target
    count: int = 80  # examples of the curve
    noise: float = 0.5  # deviation of the noise
    candidates: int = 40  # widths to choose from, evenly by factors
    repeats: int = 30  # how often the error for many examples is measured

    def __call__(self, run: Run) -> dict[str, float]:
        examples = self.examples(run.seed)
        x, y = examples.x.double(), targets(examples)
        reach = float(x.max() - x.min())
        places = torch.linspace(float(x.min()), float(x.max()), 201, dtype=torch.float64)[:, None]
        run.figure("kernels", draw_kernels(), "How much an example counts, by its distance in widths (Zhao sec. 11).")

        widths = torch.logspace(-2.3, 0.3, self.candidates, dtype=torch.float64).mul(reach).tolist()
        fitted = {name: NadarayaWatson.fit(x, y, kernel=kernel) for name, kernel in KERNELS.items()}
        left_out = {name: [fit.with_width(w).left_out_error() for w in widths] for name, fit in fitted.items()}
        best = {name: widths[min(range(len(widths)), key=errors.__getitem__)] for name, errors in left_out.items()}
        chosen = {name: fit.with_width(best[name]) for name, fit in fitted.items()}
        run.figure(
            "choosing the width",
            curves(
                {name: (widths, errors) for name, errors in left_out.items()},
                x_label="width",
                y_label="squared error",
                log_x=True,
            ),
            "Each example predicted from all others. Left, every example is alone with its nearest neighbour; right, "
            "all are averaged. Kernels that end need larger widths for the same smoothing.",
        )
        known = self.data == "curve"
        run.figure(
            "fits by kernel",
            draw_fits(chosen, x, y, places, truth=known),
            "Each kernel at its own best width. The boxcar's fit jumps wherever an example enters or leaves its reach.",
        )
        by_width = {f"width {w:.2g}": chosen["gaussian"].with_width(w) for w in (reach / 100, best["gaussian"], reach)}
        run.figure(
            "fits by width",
            draw_fits(by_width, x, y, places, truth=known),
            "The Gaussian kernel: too narrow it repeats the noise, too wide it sees only the mean.",
        )
        run.figure(
            "weights",
            draw_weights(by_width, x, places),
            "The weights with which each query (row) mixes the examples (columns, in order of x): rows sum to 1. "
            "This is a map of attention.",
        )
        result = {"width": best["gaussian"], "left_out_error": min(left_out["gaussian"])}
        if not known:
            return result | {name: nan for name in expected if name not in result}
        everything = {**chosen, "mean": NadarayaWatson.fit(x, y, kernel=constant)}
        for name, fit in everything.items():
            result[f"error_{name}"] = float((fit.predict(places) - truth(places)).square().mean())
        return result | self.consistency(run)

    def examples(self, seed: int) -> Split:
        if self.data == "curve":
            return curve(self.count, truth, noise=self.noise, seed=mix(seed), low=0.0, high=5.0)
        data = open_data(self.data)
        if data.shape != (1,) or data.train.y is None or not data.train.y.is_floating_point():
            raise DataError(f"{self.data} must hold one number to predict from and one to predict: x, y.")
        return Split(torch.cat([data.train.x, data.test.x]), torch.cat([targets(data.train), targets(data.test)]))

    def consistency(self, run: Run) -> dict[str, float]:
        """The error inside [1, 4] as examples become many and the kernel narrow."""
        inside = torch.linspace(1, 4, 31, dtype=torch.float64)[:, None]
        errors = {}
        for count in COUNTS:
            measured = []
            for repeat in range(self.repeats):
                drawn = curve(count, truth, noise=1.0, seed=mix(run.seed, count, repeat), low=0.0, high=5.0)
                fit = NadarayaWatson.fit(drawn.x.double(), targets(drawn), width=count**-0.2)
                measured.append((fit.predict(inside) - truth(inside)).square().mean())
            errors[count] = float(torch.stack(measured).mean())
        n, error = (torch.tensor(list(numbers), dtype=torch.float64) for numbers in (errors, errors.values()))
        guide = error[0] * (n / n[0]) ** -0.8
        run.figure(
            "consistency",
            curves(
                {"measured": (n, error), "n^{−4/5}": (n, guide)},
                x_label="examples n",
                y_label="squared error in [1, 4]",
                log_x=True,
                log_y=True,
            ),
            f"Noise of deviation 1, width n^{{−1/5}}, the mean of {self.repeats} draws: the fit tends to the truth "
            "(Mack and Silverman 1982).",
        )
        return {"slope": exponent(n, error)} | {f"error_{count}": error for count, error in errors.items()}


def truth(x: Tensor) -> Tensor:
    return 2 * x.sin() + x


def targets(split: Split) -> Tensor:
    assert split.y is not None
    return split.y.double().view(-1, 1)


def draw_kernels() -> "Figure":
    u = torch.linspace(-2.5, 2.5, 1_001, dtype=torch.float64)
    figure = curves(
        {name: (u, kernel(u.abs())) for name, kernel in KERNELS.items()}, x_label="(q − k) / h", y_label="similarity"
    )
    figure.axes[0].set_ylim(-0.03, 1.1)
    return figure


def draw_fits(fits: dict[str, NadarayaWatson], x: Tensor, y: Tensor, places: Tensor, *, truth: bool) -> "Figure":
    figure, axes = subplots(1, len(fits), size=(2.9 * len(fits), 3.2))
    for ax, (name, fit), colour in zip(axes[0], fits.items(), PALETTE, strict=False):
        ax.scatter(x, y, s=12, color=FAINT, linewidths=0)
        if truth:
            ax.plot(places, 2 * places.sin() + places, color=INK, linewidth=1, linestyle="--")
        ax.plot(places, fit.predict(places), color=colour)
        ax.set(title=name, xlabel="x")
    for ax in axes[0, 1:]:
        ax.sharey(axes[0, 0])
        ax.tick_params(labelleft=False)
    axes[0, 0].set_ylabel("y")
    return figure


def draw_weights(fits: dict[str, NadarayaWatson], x: Tensor, places: Tensor) -> "Figure":
    figure, axes = subplots(1, len(fits), size=(3.5 * len(fits), 3.3))
    order = x[:, 0].argsort()
    queries = places[::4]
    for ax, (name, fit) in zip(axes[0], fits.items(), strict=True):
        extent = (0.5, len(x) + 0.5, float(queries[0]), float(queries[-1]))
        weights = fit.weights(queries)[:, order].numpy()
        picture = ax.imshow(weights, cmap=SEQUENTIAL, aspect="auto", origin="lower", extent=extent)
        ax.grid(visible=False)
        ax.set(title=name, xlabel="example")
        figure.colorbar(picture, ax=ax).outline.set_visible(False)
    axes[0, 0].set_ylabel("query")
    return figure
