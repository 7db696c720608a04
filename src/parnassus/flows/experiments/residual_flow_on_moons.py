"""Residual flow on two moons: density, inverse by fixed-point iteration, series of traces (book sec. 13.1)."""

from dataclasses import dataclass
from functools import partial
from itertools import islice

import torch
from torch import Tensor
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.data.plane_points import points_and_log_density
from parnassus.flows.evaluation import nll_and_divergence, round_trip_error
from parnassus.flows.figures import plot_density_and_samples
from parnassus.flows.flow import Chain, Flow, GaussianBase, InverseTransform
from parnassus.flows.residual.jacobian_traces import unit_directions
from parnassus.flows.residual.lipschitz_networks import contractive_mlp, fixed_point_iterates
from parnassus.flows.residual.residual_flow import (
    InvertibleResidual,
    LogDetEstimator,
    PowerSeriesLogDet,
    RussianRouletteLogDet,
    residual_flow,
)
from parnassus.optim import Adam
from parnassus.report import curves, subplots
from parnassus.setting_types import PlaneData
from parnassus.train import Positive, Run, at_most, between, descend, no_band

covers = ("B13.1-13",)
expected = {
    "test_nll": at_most(0.34, "mean −log p(x) of test points, in nats"),
    "divergence": at_most(0.05, "KL(q ‖ p) from the true density q, estimated on the test points"),
    "mass": between(0.99, 1.01, "integral of the learned density over a grid"),
    "round_trip": at_most(5e-4, "largest error |T(T⁻¹(x)) − x| over samples"),
    "slowest_rate": at_most(0.951, "largest error ratio per iteration of the inverses of all blocks"),
    "bias_of_5_terms": no_band("bias of the NLL with series of 5 terms, in nats"),
    "bias_of_roulette": between(-4.5, 4.5, "bias of the NLL with Russian roulette, in standard errors"),
    "std_of_roulette": no_band("standard deviation of a log-density with Russian roulette, in nats"),
}
profiles = {
    "smoke": {"steps": 5, "num_blocks": 2, "width": 8, "grid_size": 60, "num_draws": 20},
    "gpu": {"steps": 5_000},
}

MAX_TERMS = 20
"""Series with 1 … MAX_TERMS terms are compared."""


@dataclass(frozen=True)
class Experiment:
    data: PlaneData = "moons"  # points in the plane: name of a data set, or path of a file
    steps: Positive[int] = 800  # gradient steps
    batch_size: Positive[int] = 256  # points per gradient step
    num_blocks: Positive[int] = 16  # number of residual blocks
    width: Positive[int] = 32  # hidden units of each block, with sine activations
    lipschitz_constant: Positive[float] = 0.95  # upper bound of the Lipschitz constant of a branch
    first_layer_gain: Positive[float] = 4.0  # factor of the norm bound of the first layer; the last has its inverse
    learning_rate: Positive[float] = 1e-2  # maximum learning rate of Adam, reached after 10 % of the steps
    grid_size: Positive[int] = 200  # points per side of the grid of densities
    num_draws: Positive[int] = 200  # Russian-roulette estimates per log-density

    def model(self) -> Flow:
        branch = partial(
            contractive_mlp,
            (2, self.width, 2),
            lipschitz=self.lipschitz_constant,
            first_layer_gain=self.first_layer_gain,
            activation=torch.sin,
        )
        chain = residual_flow(branch() for _ in range(self.num_blocks))
        return Flow(InverseTransform(chain), GaussianBase((2,), trainable=True))  # the density is the cheap direction

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
        for step, loss in descend(run, model, optimizer, data.train.batches(self.batch_size, self.steps)):
            schedule.step()
            run.log(step, loss=loss)

        with torch.no_grad():
            figure, mass = plot_density_and_samples(model, data, self.grid_size, true_log_prob)
            caption = "The learned density, exact at every point, and 2,000 samples."
            run.figure("density", figure, caption)
            plot_blocks(run, model, data.test.x)
            return {
                "round_trip": round_trip_error(model, model.sample(1_000)),
                **nll_and_divergence(model, data.test.x, true_log_prob),
                "mass": mass,
                "slowest_rate": self.plot_convergence(run, residual_chain(model), data.test.x[:500]),
                **self.compare_log_dets(run, model, data.test.x[:500]),
            }

    def plot_convergence(self, run: Run, chain: Chain, x: Tensor) -> float:
        """Convergence of the fixed-point iteration of each block in float64; returns the largest error ratio."""
        ratios, lines, count = [], {}, 25
        for number, (block, z) in enumerate(zip(chain.double(), chain.path(x.double()), strict=False)):
            assert isinstance(block, InvertibleResidual)
            iterates = islice(fixed_point_iterates(block.branch, z + block.branch(z)), count)
            errors = torch.stack([(state - z).norm(dim=1).max() for state in iterates])
            errors = errors[errors > 1e-13]
            ratios.append(float((errors[1:] / errors[:-1]).max()) if len(errors) > 1 else 0.0)
            if number % max(1, len(chain) // 4) == 0:
                lines[f"block {number + 1}"] = (range(len(errors)), errors)
        chain.float()
        bound = [float(lines["block 1"][1][0]) * self.lipschitz_constant**k for k in range(count)]
        figure = curves(
            {**lines, "upper bound": (range(count), bound)},
            x_label="iterations", y_label="largest error", log_y=True,
        )  # fmt: skip
        run.figure(
            "convergence of the inverse",
            figure,
            "Fixed-point iteration z ← x − g(z) for some blocks: the error decreases geometrically.",
        )
        return max(ratios)

    def compare_log_dets(self, run: Run, model: Flow, x: Tensor) -> dict[str, float]:
        """Bias of the density with truncated series, and bias and variance with Russian roulette."""
        exact = model.log_prob(x)
        terms = list(range(1, MAX_TERMS + 1))
        bias = [
            float((log_prob_with(model, PowerSeriesLogDet(n, directions=unit_directions), x) - exact).mean())
            for n in terms
        ]
        points = x[:50]
        roulette = log_prob_with(model, RussianRouletteLogDet(0.3, min_terms=4), points.repeat(self.num_draws, 1)).view(
            self.num_draws, -1
        )
        errors = (roulette - exact[: len(points)]).mean(1)  # of each estimate, averaged over the points
        figure = curves(
            {"": (terms, [abs(value) for value in bias])}, x_label="terms of each series",
            y_label="absolute bias of the NLL (nats)", log_y=True,
        )  # fmt: skip
        run.figure(
            "bias of truncated series",
            figure,
            "Bias of the NLL when every log-determinant series is truncated after the given number of terms.",
        )
        error = float(errors.std()) / self.num_draws**0.5
        run.note(
            "bias and variance",
            f"Series of five terms change the NLL by {-bias[4]:+.4f} nats. Russian roulette takes four terms and "
            f"continues with probability 0.7, {4 + 0.7 / 0.3:.1f} terms on average: over {self.num_draws} estimates "
            f"its error is {-float(errors.mean()):+.4f} ± {error:.4f} nats. The standard deviation of a log-density is "
            f"{float(roulette.std(0).mean()):.2f} nats, mostly from the single random direction of each trace.",
        )
        return {
            "bias_of_5_terms": -bias[4],
            "bias_of_roulette": -float(errors.mean()) / error,
            "std_of_roulette": float(roulette.std(0).mean()),
        }


@dataclass(frozen=True)
class Sample:
    num_samples: Positive[int] = 2_000  # number of points

    def __call__(self, model: Flow) -> Tensor:
        return model.sample(self.num_samples)


def plot_blocks(run: Run, model: Flow, x: Tensor) -> None:
    """Test points after some of the blocks, coloured by their initial position."""
    chain = residual_chain(model)
    states = list(chain.path(x[:3_000]))
    chosen = torch.linspace(0, len(chain), min(5, len(chain) + 1)).round().int().tolist()
    figure, axes = subplots(1, len(chosen), size=(11.5, 2.7))
    colour = (states[0][:, 0].argsort().argsort().float() / len(states[0])).cpu().numpy()
    for ax, number in zip(axes[0], chosen, strict=True):
        points = states[number].cpu().numpy()
        ax.scatter(points[:, 0], points[:, 1], s=2, c=colour, cmap="viridis", linewidths=0, rasterized=True)
        ax.set(title="data" if number == 0 else f"after {number} blocks", xticks=[], yticks=[])
    run.figure("points by block", figure, "From data to noise: points after some of the residual blocks.")


def log_prob_with(model: Flow, log_det: LogDetEstimator, x: Tensor) -> Tensor:
    """Log-densities of x with the given log-determinant estimator in every block."""
    blocks = [block for block in residual_chain(model) if isinstance(block, InvertibleResidual)]
    estimators = [block.log_det for block in blocks]
    for block in blocks:
        block.log_det = log_det
    log_prob = model.log_prob(x)
    for block, estimator in zip(blocks, estimators, strict=True):
        block.log_det = estimator
    return log_prob


def residual_chain(model: Flow) -> Chain:
    assert isinstance(model.transform, InverseTransform)
    assert isinstance(model.transform.transform, Chain)
    return model.transform.transform
