"""Continuous normalising flow on two moons: density, trajectories, trace estimates (book sec. 13.1)."""

from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.data.plane_points import points_and_log_density
from parnassus.flows.evaluation import nll_and_divergence, round_trip_error
from parnassus.flows.figures import plot_density_and_samples
from parnassus.flows.flow import Flow, GaussianBase
from parnassus.flows.residual.continuous_flow import ContinuousTransform, TimeDependentField
from parnassus.flows.residual.jacobian_traces import rademacher_directions, unit_directions
from parnassus.layers import mlp
from parnassus.optim import Adam
from parnassus.report import FAINT, PALETTE, curves, subplots
from parnassus.setting_types import PlaneData
from parnassus.train import Positive, Run, at_most, between, descend, no_band

covers = ("B13.1-13",)
expected = {
    "test_nll": at_most(0.65, "mean −log p(x) of test points, in nats"),
    "divergence": at_most(0.35, "KL(q ‖ p) from the true density q, estimated on the test points"),
    "mass": between(0.99, 1.01, "integral of the learned density over a grid"),
    "round_trip": at_most(2e-3, "largest error |T(T⁻¹(x)) − x| over samples"),
    "evaluations": no_band("evaluations of the vector field per density with tolerance 1e-5"),
    "std_of_one_direction": no_band("standard deviation of a log-density with one random direction, in nats"),
    "bias_of_one_direction": between(
        -4.5, 4.5, "mean error of log-densities with one random direction, in standard errors"
    ),
}
profiles = {
    "smoke": {"steps": 4, "width": 8, "grid_size": 40, "num_draws": 10},
    "gpu": {"steps": 4_000, "tolerance": 1e-4},
}

TIMES = (0.0, 0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True)
class Experiment:
    data: PlaneData = "moons"  # points in the plane: name of a data set, or path of a file
    steps: Positive[int] = 600  # gradient steps
    batch_size: Positive[int] = 256  # points per gradient step
    width: Positive[int] = 64  # units of the two hidden layers of the vector field
    tolerance: Positive[float] = 1e-3  # tolerance of the solver in training; evaluation uses 1e-5
    learning_rate: Positive[float] = 1e-2  # maximum learning rate of Adam, reached after 10 % of the steps
    grid_size: Positive[int] = 120  # points per side of the grid of densities
    num_draws: Positive[int] = 100  # trace estimates per log-density

    def model(self) -> Flow:
        field = TimeDependentField(mlp((3, self.width, self.width, 2), activation=torch.sin))
        return Flow(ContinuousTransform(field, tolerance=self.tolerance), GaussianBase((2,)))

    def __call__(self, run: Run) -> dict[str, float]:
        data, true_log_prob = points_and_log_density(self.data)
        data = data.to(run.device)
        model, optimizer, schedule = run.prepare(
            run.build(self.model),
            partial(Adam, lr=self.learning_rate),
            partial(
                OneCycleLR, max_lr=self.learning_rate, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False
            ),
        )
        flow = continuous_transform(model)
        evaluations = EvaluationCounter(flow)
        for step, loss in descend(run, model, optimizer, data.train.batches(self.batch_size, self.steps)):
            schedule.step()
            run.log(step, loss=loss, evaluations=evaluations.read_and_reset())

        with torch.no_grad():
            flow.tolerance = 1e-5
            evaluations.read_and_reset()
            metrics = nll_and_divergence(model, data.test.x[:2_000], true_log_prob)
            num_evaluations = evaluations.read_and_reset()
            figure, mass = plot_density_and_samples(model, data, self.grid_size, true_log_prob)
            run.figure("density", figure, "The learned density and 2,000 samples.")
            error = round_trip_error(model, model.sample(500))
            plot_trajectories(run, flow, data.test.x)
            return {
                **metrics,
                "mass": mass,
                "round_trip": error,
                "evaluations": num_evaluations,
                **self.estimate_traces(run, model, data.test.x[:50]),
            }

    def estimate_traces(self, run: Run, model: Flow, x: Tensor) -> dict[str, float]:
        """Log-densities with random directions for the traces, compared with the exact ones."""
        flow, exact = continuous_transform(model), model.log_prob(x)
        counts = [1, 2, 4, 8, 16]
        stds = []
        for count in counts:
            flow.directions = partial(rademacher_directions, count=count)
            estimates = model.log_prob(x.repeat(self.num_draws, 1)).view(self.num_draws, -1)
            stds.append(float(estimates.std(0).mean()))
            if count == 1:
                errors = (estimates - exact).mean(1)
        flow.directions = unit_directions
        ideal = [stds[0] / count**0.5 for count in counts]
        figure = curves(
            {"measured": (counts, stds), "1/√count": (counts, ideal)},
            x_label="random directions", y_label="standard deviation of a log-density (nats)", log_x=True, log_y=True,
        )  # fmt: skip
        run.figure(
            "trace estimates",
            figure,
            "Traces estimated with random directions are unbiased, with standard deviation proportional to 1/√count. "
            "The exact trace needs one product per coordinate: two in the plane, a thousand in a thousand dimensions.",
        )
        return {
            "std_of_one_direction": stds[0],
            "bias_of_one_direction": float(errors.mean()) / (float(errors.std()) / self.num_draws**0.5),
        }


@dataclass(frozen=True)
class Sample:
    num_samples: Positive[int] = 2_000  # number of points

    def __call__(self, model: Flow) -> Tensor:
        return model.sample(self.num_samples)


class EvaluationCounter:
    """Counts the evaluations of the vector field of a flow."""

    def __init__(self, flow: ContinuousTransform) -> None:
        self._count = 0
        flow.field.register_forward_hook(self._increment)

    def read_and_reset(self) -> float:
        count, self._count = self._count, 0
        return float(count)

    def _increment(self, *_: object) -> None:
        self._count += 1


def continuous_transform(model: Flow) -> ContinuousTransform:
    assert isinstance(model.transform, ContinuousTransform)
    return model.transform


def plot_trajectories(run: Run, flow: ContinuousTransform, real: Tensor) -> None:
    """Noise samples at five times, and the trajectories of some of them."""
    noise = torch.randn(2_000, 2, device=run.device)
    states = flow.path(noise, TIMES).cpu().numpy()
    colour = (noise[:, 0].argsort().argsort().float() / len(noise)).cpu().numpy()
    figure, axes = subplots(1, len(TIMES), size=(11.5, 2.7))
    for ax, cloud, t in zip(axes[0], states, TIMES, strict=True):
        ax.scatter(cloud[:, 0], cloud[:, 1], s=2, c=colour, cmap="viridis", linewidths=0, rasterized=True)
        ax.set(title=f"t = {t:g}", xticks=[], yticks=[])
    run.figure(
        "samples by time",
        figure,
        "Samples from noise (t = 0) to data (t = 1), coloured by their first coordinate at t = 0.",
    )

    times = torch.linspace(0, 1, 60).tolist()
    lines = flow.path(noise[:40], times).cpu()
    figure, axes = subplots(size=(7.6, 4.2))
    ax, cloud = axes[0, 0], real[:2_000].cpu()
    ax.scatter(cloud[:, 0], cloud[:, 1], s=3, color=FAINT, linewidths=0, rasterized=True)
    for number in range(lines.shape[1]):
        line = lines[:, number]
        ax.plot(line[:, 0], line[:, 1], color=PALETTE[0], linewidth=0.9, alpha=0.8)
    ax.scatter(lines[0, :, 0], lines[0, :, 1], s=14, color=PALETTE[4], zorder=3, label="t = 0, noise")
    ax.scatter(lines[-1, :, 0], lines[-1, :, 1], s=14, color=PALETTE[1], zorder=3, label="t = 1, samples")
    ax.set_aspect("equal")
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))
    run.figure(
        "trajectories",
        figure,
        "Forty trajectories from noise to data, with the data in grey. Trajectories may cross in this projection, but "
        "not in space and time.",
    )
