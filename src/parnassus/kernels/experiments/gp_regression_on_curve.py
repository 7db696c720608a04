"""GP regression on a curve: hyperparameters by evidence, and calibrated intervals (book sec. 15.1)."""

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Annotated, NamedTuple

import torch
from torch import Tensor

from parnassus.data import DataError, Split, open_curve
from parnassus.data.built_in.toy import curve
from parnassus.kernels import (
    GPRegression,
    LinearKernel,
    OrnsteinUhlenbeckKernel,
    RBFKernel,
    ScaledKernel,
    interval_coverage,
    learn_hyperparameters,
    negative_log_density,
    root_mean_squared_error,
)
from parnassus.report import FAINT, INK, PALETTE, curves, subplots
from parnassus.train import BuiltIn, Positive, Run, at_least, at_most, between, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B15.1-3", "B15.1-6", "B15.1-7")
expected = {
    "test_error": at_most(0.4, "root mean squared error on test targets, in standard deviations of the targets"),
    "coverage": between(0.88, 1.0, "fraction of test targets inside their 95 % interval"),
    "coverage_as_printed": at_most(
        0.8, "fraction of test targets inside the 95 % interval of the printed variance, without the noise"
    ),
    "length": no_band("learned length scale, in the units of x"),
    "noise": no_band("learned standard deviation of the noise, in the units of t; true value for the curve: 0.3"),
    "log_evidence_difference": at_least(1.0, "log evidence of RBF minus that of Ornstein-Uhlenbeck"),
}
profiles: dict[str, dict[str, object]] = {"smoke": {"steps": 15, "num_starts": 1}, "gpu": {}}
GAP = (0.9, 2.1)
"""Interval of the built-in curve without training points."""


class FittedGP(NamedTuple):
    """A kernel with learned hyperparameters, its regression, and the log evidence reached from each start."""

    kernel: ScaledKernel
    regression: GPRegression
    log_evidence_per_start: Tensor


@dataclass(frozen=True)
class Experiment:
    data: Annotated[str, BuiltIn("curve")] = "curve"  # built-in curve, or path of a .csv file with two columns x and t
    num_points: Positive[int] = 60  # training points of the curve
    max_examples: Positive[int] = 1_500  # maximum number of rows of a file; time grows as their cube
    num_starts: Positive[int] = 3  # starting points of the evidence maximisation
    steps: Positive[int] = 120  # gradient steps from each starting point

    def __call__(self, run: Run) -> dict[str, float]:
        train, test, units = standardise(*self.train_and_test(run.seed))
        x, t = train.x.to(run.device), targets(train).to(run.device)
        new_x, new_t = test.x.to(run.device), targets(test).to(run.device)
        fits = {
            "RBF": self.fit(RBFKernel(), x, t),
            "Ornstein-Uhlenbeck": self.fit(OrnsteinUhlenbeckKernel(), x, t),
            "linear": self.fit(LinearKernel(), x, t),
        }
        evidence = {name: float(fit.log_evidence_per_start.max()) for name, fit in fits.items()}
        best = fits["RBF"].regression
        is_curve = self.data == "curve"
        run.figure(
            "posterior",
            plot_posterior(best, units, is_curve=is_curve),
            "Dots: training points. Dark band: 95 % interval of the curve; light band: of a new noisy target. Thin "
            "lines: posterior samples"
            + ("; dashed: the true curve, without training points in the gap." if is_curve else "."),
        )
        run.figure(
            "evidence",
            plot_evidence(fits["RBF"], units),
            "Log marginal likelihood over length scales, with the learned variance and noise: the sum of a data-fit "
            "term, which favours short lengths, and a complexity term, which penalises them.",
        )
        with torch.no_grad():
            prediction = best.predict(new_x)
        levels = torch.linspace(0.01, 0.99, 99, dtype=torch.float64)
        variances = {"with the noise": prediction.target_variance, "as printed in eq. 15.10": prediction.variance}
        covered = {
            name: interval_coverage(prediction.mean, variance, new_t, levels) for name, variance in variances.items()
        }
        run.figure(
            "calibration",
            plot_calibration(levels, covered),
            "Coverage of central intervals on test targets against the nominal level. The printed variance is that of "
            "the noise-free curve and far too small for targets. Errors in the gap are strongly correlated.",
        )
        run.table(
            "kernels",
            [
                {"kernel": name, "log evidence": f"{evidence[name]:.1f}"} | scores(fits[name], new_x, new_t)
                for name in fits
            ],
            "Each with its own hyperparameters. Evidence and leave-one-out use training targets only.",
        )
        inner = fits["RBF"].kernel.kernel
        assert isinstance(inner, RBFKernel)
        length, noise = inner.length * units.x_scale, sqrt(float(best.noise_variance)) * units.t_scale
        run.note(
            "results",
            f"From {len(x)} points, maximising the evidence gives a length scale of {length:.3g} and a noise standard "
            f"deviation of {noise:.3g}. The starting points reached log evidences of "
            f"{', '.join(f'{value:.1f}' for value in fits['RBF'].log_evidence_per_start)}.",
        )
        return {
            "test_error": float(root_mean_squared_error(prediction.mean, new_t)),
            "coverage": float(covered["with the noise"][94]),
            "coverage_as_printed": float(covered["as printed in eq. 15.10"][94]),
            "length": length,
            "noise": noise,
            "log_evidence_difference": evidence["RBF"] - evidence["Ornstein-Uhlenbeck"],
        }

    def train_and_test(self, seed: int) -> tuple[Split, Split]:
        if self.data == "curve":
            sample = curve(3 * self.num_points, wave, noise=0.3, seed=seed, low=-4.0, high=4.0)
            outside = ((sample.x[:, 0] < GAP[0]) | (sample.x[:, 0] > GAP[1])).nonzero()[: self.num_points, 0]
            train = Split(sample.x[outside], targets(sample)[outside])
            return train, curve(400, wave, noise=0.3, seed=seed + 1_000, low=-4.0, high=4.0)
        data = open_curve(self.data)
        return data.train.take(self.max_examples), data.test

    def fit(self, kernel: RBFKernel | OrnsteinUhlenbeckKernel | LinearKernel, x: Tensor, t: Tensor) -> FittedGP:
        learned = learn_hyperparameters(ScaledKernel(kernel), x, t, num_starts=self.num_starts, steps=self.steps)
        with torch.no_grad():
            regression = GPRegression.fit(learned.kernel, x, t, noise_variance=learned.noise_variance)
        return FittedGP(learned.kernel, regression, learned.log_marginal_likelihood_per_start)


class Standardisation(NamedTuple):
    """Means and scales of points and targets, to undo the standardisation."""

    x_centre: float
    x_scale: float
    t_centre: float
    t_scale: float

    def x(self, standard: Tensor) -> Tensor:
        return self.x_centre + self.x_scale * standard.cpu()

    def t(self, standard: Tensor) -> Tensor:
        return self.t_centre + self.t_scale * standard.cpu()


def wave(x: Tensor) -> Tensor:
    return (2 * x).sin() + 0.4 * x


def targets(split: Split) -> Tensor:
    assert split.y is not None
    return split.y.reshape(-1).double()


def standardise(train: Split, test: Split) -> tuple[Split, Split, Standardisation]:
    """Standardise both splits with the mean and standard deviation of the training split."""
    x, t = train.x.double(), targets(train)
    units = Standardisation(float(x.mean()), float(x.std()), float(t.mean()), float(t.std()))
    if not min(units.x_scale, units.t_scale) > 0:
        raise DataError("x and t must vary; got a constant column.")

    def scale(split: Split) -> Split:
        x = (split.x.double() - units.x_centre) / units.x_scale
        return Split(x, (targets(split) - units.t_centre) / units.t_scale)

    return scale(train), scale(test), units


@torch.no_grad()
def scores(fit: FittedGP, new_x: Tensor, new_t: Tensor) -> dict[str, str]:
    new, left_out = fit.regression.predict(new_x), fit.regression.leave_one_out()
    test = negative_log_density(new.mean, new.target_variance, new_t)
    train = negative_log_density(left_out.mean, left_out.target_variance, fit.regression.t)
    return {
        "log density, leave-one-out": f"{-float(train):.3f}",
        "log density, test": f"{-float(test):.3f}",
        "RMSE, test": f"{float(root_mean_squared_error(new.mean, new_t)):.3f}",
    }


@torch.no_grad()
def plot_posterior(fit: GPRegression, units: Standardisation, *, is_curve: bool) -> "Figure":
    low, high = float(fit.x.min()), float(fit.x.max())
    margin = 0.12 * (high - low)
    grid = torch.linspace(low - margin, high + margin, 300, dtype=torch.float64, device=fit.x.device)[:, None]
    mean, variance, target_variance = fit.predict(grid)
    figure, axes = subplots(size=(8.6, 4.4))
    ax, x = axes[0, 0], units.x(grid[:, 0])
    for name, interval_variance, alpha in (("a new target", target_variance, 0.15), ("the curve", variance, 0.3)):
        half_width = 1.96 * interval_variance.sqrt()
        ax.fill_between(
            x,
            units.t(mean - half_width),
            units.t(mean + half_width),
            color=PALETTE[0],
            alpha=alpha,
            linewidth=0,
            label=name,
        )
    for path in fit.posterior(grid).sample(3):
        ax.plot(x, units.t(path), color=PALETTE[0], linewidth=0.8, alpha=0.7)
    ax.plot(x, units.t(mean), color=PALETTE[0], label="mean")
    if is_curve:
        ax.plot(x, wave(x), color=PALETTE[1], linestyle="--", linewidth=1.4, label="true curve")
    ax.plot(units.x(fit.x[:, 0]), units.t(fit.t), "o", color=INK, markersize=3.5, label="training points")
    ax.set(xlabel="x", ylabel="t", xlim=(float(x[0]), float(x[-1])))
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    return figure


@torch.no_grad()
def plot_evidence(fit: FittedGP, units: Standardisation) -> "Figure":
    regression = fit.regression
    lengths = torch.logspace(-2, 1, 60, dtype=torch.float64)
    terms = []
    for length in lengths:
        kernel = ScaledKernel(RBFKernel(float(length)), fit.kernel.variance)
        other = GPRegression.fit(kernel, regression.x, regression.t, noise_variance=regression.noise_variance)
        data_fit = -float(other.t @ other.weights) / 2
        evidence = float(other.log_marginal_likelihood())
        terms.append((evidence, data_fit, evidence - data_fit))
    evidences, data_fits, complexities = torch.tensor(terms).mT
    x = units.x_scale * lengths
    lines = {
        "log evidence": evidences,
        "data fit, −½ tᵀL⁻¹t": data_fits,
        "complexity, −½ log det L + const.": complexities,
    }
    best = float(x[evidences.argmax()])
    figure = curves(
        {name: (x, line) for name, line in lines.items()},
        x_label="length scale",
        y_label="log likelihood",
        log_x=True,
        marks={"": best},
    )
    floor = float(evidences.max()) - 4 * len(regression.t)
    figure.axes[0].set_ylim(max(floor, float(torch.cat([data_fits, complexities, evidences]).min())), None)
    figure.axes[0].legend(loc="center left", bbox_to_anchor=(1.0, 0.5))  # no corner is free of lines
    return figure


def plot_calibration(levels: Tensor, covered: dict[str, Tensor]) -> "Figure":
    figure, axes = subplots(size=(5.4, 4.4))
    ax = axes[0, 0]
    ax.plot([0, 1], [0, 1], color=FAINT, linestyle="--", linewidth=1)
    for (name, fraction), colour in zip(covered.items(), PALETTE, strict=False):
        ax.plot(levels, fraction.cpu(), color=colour, label=name)
    ax.set(xlabel="nominal coverage", ylabel="empirical coverage", xlim=(0, 1), ylim=(0, 1))
    ax.legend(loc="upper left")
    return figure
