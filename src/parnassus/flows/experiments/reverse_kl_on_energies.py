"""Reverse-KL fits of Real NVP to unnormalised densities, and bounds of their log Z (book sec. 13.1)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import log
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor, nn
from torch.distributions import Categorical, Distribution, Independent, MixtureSameFamily, Normal
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.flows.coupling.real_nvp import real_nvp
from parnassus.flows.flow import Chain, Flow, GaussianBase
from parnassus.flows.reverse_kl import estimate_evidence, reverse_kl
from parnassus.optim import Adam
from parnassus.report import curves, subplots
from parnassus.train import Positive, Run, at_most, between, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B13.1-7",)
expected = {
    "gap_ring": between(0.0, 0.12, "KL(p ‖ q) = log Z + loss, the gap of the bound on log Z, for the ring"),
    "gap_double_well": between(
        0.0, 0.15, "KL(p ‖ q) = log Z + loss, the gap of the bound on log Z, for the double well"
    ),
    "gap_mixture": between(
        0.0, 0.2, "KL(p ‖ q) = log Z + loss, the gap of the bound on log Z, for four overlapping Gaussians"
    ),
    "gap_separated": no_band(
        "gap of the bound on log Z for four separated Gaussians; log (4/k) for a perfect fit of k modes"
    ),
    "error_ring": at_most(0.05, "absolute error of the importance-sampling estimate of log Z, for the ring"),
    "error_double_well": at_most(
        0.05, "absolute error of the importance-sampling estimate of log Z, for the double well"
    ),
    "error_mixture": at_most(0.05, "absolute error of the importance-sampling estimate of log Z, for the mixture"),
    "num_modes": no_band("number of the four separated modes with more than 5 % of the samples"),
    "relative_ess": no_band("effective sample size divided by the number of samples, for the separated Gaussians"),
    "mean_reverse_kl": between(2.9, 3.1, "|mean| of a Gaussian fitted to ½ N(−3, 1) + ½ N(3, 1) by reverse KL"),
    "mean_forward_kl": at_most(0.3, "|mean| of a Gaussian fitted to ½ N(−3, 1) + ½ N(3, 1) by forward KL"),
}
profiles = {
    "smoke": {"steps": 3, "num_layers": 2, "width": 8, "num_samples": 64, "grid_size": 40},
    "gpu": {"steps": 10_000},
}

Name = Literal["ring", "double_well", "mixture", "separated"]
LogDensity = Callable[[Tensor], Tensor]


def ring(x: Tensor) -> Tensor:
    """Log-density of a ring of radius 2."""
    radius: Tensor = torch.linalg.vector_norm(x, dim=1)
    return -((radius - 2) / 0.3).square() / 2


def double_well(x: Tensor) -> Tensor:
    """Log-density of a double well with minima near x₁ = ±2 and a barrier of height 4; the left well is deeper."""
    first, second = x[:, 0], x[:, 1]
    return -(first**4 / 4 - 2 * first**2 + 0.2 * first + second**2 / 2)


def four_gaussians(x: Tensor, *, distance: float, std: float) -> Tensor:
    """Unnormalised log-density of four equal Gaussians at (±distance, ±distance): Z = 4 · 2π std²."""
    means = distance * torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]], device=x.device)
    return (-torch.cdist(x, means.to(x.dtype)).square() / (2 * std**2)).logsumexp(1)


TARGETS: Mapping[str, LogDensity] = {
    "ring": ring,
    "double_well": double_well,
    "mixture": partial(four_gaussians, distance=1.5, std=0.7),
    "separated": partial(four_gaussians, distance=3.0, std=0.5),
}

CONNECTED = ("ring", "double_well", "mixture")


@dataclass(frozen=True)
class Experiment:
    steps: Positive[int] = 600  # gradient steps
    batch_size: Positive[int] = 256  # samples per gradient step and target
    num_layers: Positive[int] = 8  # couplings of each flow
    width: Positive[int] = 48  # units of the two hidden layers of each coupling
    learning_rate: Positive[float] = 3e-3  # maximum learning rate of Adam, reached after 10 % of the steps
    num_samples: Positive[int] = 20_000  # samples for the final estimates
    grid_size: Positive[int] = 300  # points per side of the quadrature grid

    def model(self) -> nn.ModuleDict:
        """One flow for each target, without shared parameters."""
        return nn.ModuleDict(
            {
                name: Flow(
                    real_nvp(2, num_layers=self.num_layers, width=self.width), GaussianBase((2,), trainable=True)
                )
                for name in TARGETS
            }
        )

    def __call__(self, run: Run) -> dict[str, float]:
        points, cell = build_grid(self.grid_size)
        log_z = {name: float(target(points).logsumexp(0)) + log(cell) for name, target in TARGETS.items()}
        flows, optimizer, schedule = run.prepare(
            run.build(self.model),
            partial(Adam, lr=self.learning_rate),
            partial(
                OneCycleLR, max_lr=self.learning_rate, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False
            ),
        )
        for step, _ in run.steps(self.steps):
            losses = {name: reverse_kl(select_flow(flows, name), TARGETS[name], self.batch_size) for name in TARGETS}
            run.update(optimizer, torch.stack(list(losses.values())).sum())
            schedule.step()
            run.log(step, **{f"gap/{name}": log_z[name] + loss.detach() for name, loss in losses.items()})

        with torch.no_grad():
            rows = [self.measure(select_flow(flows, name), name, log_z[name]) for name in TARGETS]
            run.table(
                "bounds",
                rows,
                "log Z of each target by quadrature, with the bound and the importance-sampling estimate of the flow.",
            )
            run.figure(
                "densities",
                self.plot_densities(flows, points.to(run.device), log_z),
                "Top: targets. Bottom: flows, trained with values of log q̃ only, without samples of the target.",
            )
            num_modes = count_modes(select_flow(flows, "separated"), self.num_samples)
        by_name = {str(row["target"]): row for row in rows}
        self.note_mode_collapse(run, by_name["separated"], num_modes)
        reverse, forward = fit_one_gaussian(run)
        return {
            **{f"gap_{name}": float(by_name[name]["gap"]) for name in TARGETS},
            **{f"error_{name}": abs(float(by_name[name]["estimate"]) - log_z[name]) for name in CONNECTED},
            "num_modes": float(num_modes),
            "relative_ess": float(by_name["separated"]["ESS / number of samples"]),
            "mean_reverse_kl": reverse,
            "mean_forward_kl": forward,
        }

    def measure(self, flow: Flow, name: str, log_z: float) -> dict[str, str | float]:
        """The bound of log Z, its gap, and the importance-sampling estimate."""
        bound = -float(reverse_kl(flow, TARGETS[name], self.num_samples))
        estimate = estimate_evidence(flow, TARGETS[name], self.num_samples)
        return {
            "target": name,
            "log Z": log_z,
            "bound": bound,
            "gap": log_z - bound,
            "estimate": float(estimate.log_evidence),
            "standard error": float(estimate.relative_standard_error),
            "ESS / number of samples": float(estimate.effective_sample_size) / self.num_samples,
        }

    def plot_densities(self, flows: nn.ModuleDict, points: Tensor, log_z: Mapping[str, float]) -> "Figure":
        figure, axes = subplots(2, len(TARGETS), size=(11.5, 6.0))
        for column, (name, target) in enumerate(TARGETS.items()):
            truth = (target(points) - log_z[name]).exp()
            learned = select_flow(flows, name).log_prob(points.float()).exp()
            for ax, density in zip(axes[:, column], (truth, learned), strict=True):
                image = density.view(self.grid_size, self.grid_size).mT.cpu().numpy()
                ax.imshow(image, origin="lower", extent=(-6, 6, -6, 6), vmin=0, vmax=float(truth.max()))
                ax.set(xlim=(-4.8, 4.8), ylim=(-4.8, 4.8), xticks=[], yticks=[])
                ax.grid(visible=False)
            axes[0, column].set_title(name.replace("_", " "))
        axes[0, 0].set_ylabel("target")
        axes[1, 0].set_ylabel("flow")
        return figure

    def note_mode_collapse(self, run: Run, separated: Mapping[str, str | float], num_modes: int) -> None:
        fraction = float(separated["ESS / number of samples"])
        run.note(
            "missing modes",
            f"The flow covers {num_modes} of the four separated modes. The effective sample size is "
            f"{100 * fraction:.2g} % of the samples. A high value does not show that all modes are covered: modes "
            "without samples do not affect it; a low value arises when a few samples near another mode dominate the "
            f"weights. The estimate of log Z is {float(separated['estimate']):.2f} ± "
            f"{float(separated['standard error']):.2f}, the true value {float(separated['log Z']):.2f}. With a perfect "
            "fit of k of four modes the gap is log (4/k). The lower bound on log Z holds in any case.",
        )


@dataclass(frozen=True)
class Sample:
    target: Name = "ring"  # target of the flow to sample from
    num_samples: Positive[int] = 2_000  # number of points

    def __call__(self, flows: nn.ModuleDict) -> Tensor:
        return select_flow(flows, self.target).sample(self.num_samples)


def select_flow(flows: nn.ModuleDict, name: str) -> Flow:
    flow = flows[name]
    assert isinstance(flow, Flow)
    return flow


def build_grid(size: int) -> tuple[Tensor, float]:
    """Grid points of the square [−6, 6]², outside of which the targets are negligible, and the area of a cell."""
    axis = torch.linspace(-6, 6, size, dtype=torch.float64)
    return torch.cartesian_prod(axis, axis), float(axis[1] - axis[0]) ** 2


def count_modes(flow: Flow, num_samples: int) -> int:
    """The number of quadrants with more than 5 % of the samples."""
    x = flow.sample(num_samples)
    quadrant = (x[:, 0] > 0).long() * 2 + (x[:, 1] > 0).long()
    return int((torch.bincount(quadrant, minlength=4) > num_samples / 20).sum())


def mixture_of_two() -> Distribution:
    halves = Independent(Normal(torch.tensor([[-3.0], [3.0]]), torch.ones(2, 1)), 1)
    return MixtureSameFamily(Categorical(torch.ones(2)), halves)


def fit_one_gaussian(run: Run, *, steps: int = 300) -> tuple[float, float]:
    """Fit a Gaussian to a mixture of two by reverse and by forward KL; returns the two |mean|."""
    target = mixture_of_two()
    losses: dict[str, Callable[[Flow], Tensor]] = {
        "reverse KL": lambda flow: reverse_kl(flow, target.log_prob, 512),
        "forward KL": lambda flow: flow.loss(target.sample(torch.Size([512]))),
    }
    fits = {}
    for name, loss in losses.items():
        base = GaussianBase((1,), trainable=True)
        nn.init.constant_(base.mean, 2.0)
        fits[name] = flow = Flow(Chain(), base)
        optimizer = Adam(flow.parameters(), lr=0.05)
        for _ in range(steps):
            run.update(optimizer, loss(flow))
    x = torch.linspace(-9, 9, 400)[:, None]
    with torch.no_grad():
        lines = {name: (x[:, 0], flow.log_prob(x).exp()) for name, flow in fits.items()}
        figure = curves({"mixture": (x[:, 0], target.log_prob(x).exp()), **lines}, x_label="x", y_label="density")
    run.figure(
        "reverse and forward KL",
        figure,
        "A Gaussian fitted to a mixture of two. Reverse KL is mode-seeking: it penalises mass where the target has "
        "none. Forward KL is mass-covering: it penalises missing mass.",
    )
    reverse, forward = (abs(float(flow.base().mean.detach())) for flow in fits.values())
    return reverse, forward
