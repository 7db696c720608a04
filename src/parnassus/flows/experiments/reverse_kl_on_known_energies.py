"""Flows learn densities that can be evaluated and not sampled, and bound their log Z (book sec. 13.1)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import log
from typing import TYPE_CHECKING, Literal

import torch
from torch import Tensor, nn
from torch.distributions import Categorical, Distribution, Independent, MixtureSameFamily, Normal
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.flows.coupling import real_nvp
from parnassus.flows.flow import Chain, Flow, GaussianBase
from parnassus.flows.reverse_kl import reverse_kl, weigh_target
from parnassus.optim import Adam
from parnassus.report import curves, subplots
from parnassus.train import Run, at_most, between, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B13.1-7",)
expected = {
    "gap_ring": between(0.0, 0.12, "log Z + loss, which is KL(p ‖ q): how far the bound on log Z is from it"),
    "gap_double_well": between(0.0, 0.15, "the same for the double well"),
    "gap_mixture": between(0.0, 0.2, "the same for four Gaussians that touch"),
    "gap_islands": reported("the same for four Gaussians far apart; log (4/k) if k of them are known perfectly"),
    "error_ring": at_most(0.05, "how far the weighed draws are from log Z"),
    "error_double_well": at_most(0.05, "the same for the double well"),
    "error_mixture": at_most(0.05, "the same for the mixture"),
    "islands_found": reported("how many of the four islands have more than 5 % of the flow's draws"),
    "effective_on_islands": reported("share of the draws that count, judged by their weights alone"),
    "one_normal_reverse": between(2.9, 3.1, "|mean| of one normal fitted to ½ N(−3, 1) + ½ N(3, 1) by reverse KL"),
    "one_normal_forward": at_most(0.3, "the same by forward KL, that is by maximum likelihood"),
}
profiles = {"smoke": {"steps": 3, "layers": 2, "width": 8, "draws": 64, "grid": 40}, "gpu": {"steps": 10_000}}

Name = Literal["ring", "double_well", "mixture", "islands"]
LogDensity = Callable[[Tensor], Tensor]


def ring(x: Tensor) -> Tensor:
    """Points at a distance near 2 from the origin."""
    radius: Tensor = torch.linalg.vector_norm(x, dim=1)
    return -((radius - 2) / 0.3).square() / 2


def double_well(x: Tensor) -> Tensor:
    """Two wells near x₁ = ±2 with a wall of height 4 between them, the left one a little deeper."""
    first, second = x[:, 0], x[:, 1]
    return -(first**4 / 4 - 2 * first**2 + 0.2 * first + second**2 / 2)


def four_gaussians(x: Tensor, *, apart: float, std: float) -> Tensor:
    """Equal Gaussians at (±apart, ±apart), without their constant: Z = 4 · 2π std²."""
    corners = apart * torch.tensor([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]], device=x.device)
    return (-torch.cdist(x, corners.to(x.dtype)).square() / (2 * std**2)).logsumexp(1)


TARGETS: Mapping[str, LogDensity] = {
    "ring": ring,
    "double_well": double_well,
    "mixture": partial(four_gaussians, apart=1.5, std=0.7),
    "islands": partial(four_gaussians, apart=3.0, std=0.5),
}

CONNECTED = ("ring", "double_well", "mixture")


@dataclass(frozen=True)
class Experiment:
    steps: int = 600  # gradient steps
    count: int = 256  # draws a step for each target
    layers: int = 8  # couplings of each flow
    width: int = 48  # hidden units in each of two layers of a coupling
    lr: float = 3e-3  # Adam's largest learning rate, reached after a tenth of the steps
    draws: int = 20_000  # draws that measure a bound in the end
    grid: int = 300  # places along a side for the quadrature

    def model(self) -> nn.ModuleDict:
        """One flow for each target; they share nothing."""
        return nn.ModuleDict(
            {
                name: Flow(real_nvp(2, layers=self.layers, width=self.width), GaussianBase((2,), learned=True))
                for name in TARGETS
            }
        )

    def __call__(self, run: Run) -> dict[str, float]:
        places, cell = plane(self.grid)
        log_z = {name: float(target(places).logsumexp(0)) + log(cell) for name, target in TARGETS.items()}
        flows, optimizer = run.prepare(run.build(self.model), partial(Adam, lr=self.lr))
        warming = OneCycleLR(optimizer, self.lr, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False)
        run.keep("warming", warming)
        for step, _ in run.steps(self.steps):
            losses = {name: reverse_kl(flow_of(flows, name), TARGETS[name], self.count) for name in TARGETS}
            run.update(optimizer, torch.stack(list(losses.values())).sum())
            warming.step()
            run.log(step, **{f"gap/{name}": log_z[name] + loss.detach() for name, loss in losses.items()})

        with torch.no_grad():
            rows = [self.measure(flow_of(flows, name), name, log_z[name]) for name in TARGETS]
            run.table("bounds", rows, "log Z of each target by quadrature, and what the flow says of it.")
            run.figure(
                "densities",
                self.draw_densities(flows, places.to(run.device), log_z),
                "Above: the targets. Below: the flows, which have seen no example, only values of log q̃.",
            )
            found = islands_found(flow_of(flows, "islands"), self.draws)
        by_name = {str(row["target"]): row for row in rows}
        self.explain(run, by_name["islands"], found)
        reverse, forward = fit_one_normal(run)
        return {
            **{f"gap_{name}": float(by_name[name]["gap"]) for name in TARGETS},
            **{f"error_{name}": abs(float(by_name[name]["weighed"]) - log_z[name]) for name in CONNECTED},
            "islands_found": float(found),
            "effective_on_islands": float(by_name["islands"]["effective"]),
            "one_normal_reverse": reverse,
            "one_normal_forward": forward,
        }

    def measure(self, flow: Flow, name: str, log_z: float) -> dict[str, str | float]:
        """The bound, the gap, and what the weights make of it."""
        bound = -float(reverse_kl(flow, TARGETS[name], self.draws))
        estimate = weigh_target(flow, TARGETS[name], self.draws)
        return {
            "target": name,
            "log Z": log_z,
            "bound": bound,
            "gap": log_z - bound,
            "weighed": float(estimate.log_evidence),
            "± by itself": float(estimate.spread),
            "effective": float(estimate.effective) / self.draws,
        }

    def draw_densities(self, flows: nn.ModuleDict, places: Tensor, log_z: Mapping[str, float]) -> "Figure":
        figure, axes = subplots(2, len(TARGETS), size=(11.5, 6.0))
        for column, (name, target) in enumerate(TARGETS.items()):
            truth = (target(places) - log_z[name]).exp()
            learned = flow_of(flows, name).log_prob(places.float()).exp()
            for ax, density in zip(axes[:, column], (truth, learned), strict=True):
                picture = density.view(self.grid, self.grid).mT.cpu().numpy()
                ax.imshow(picture, origin="lower", extent=(-6, 6, -6, 6), vmin=0, vmax=float(truth.max()))
                ax.set(xlim=(-4.8, 4.8), ylim=(-4.8, 4.8), xticks=[], yticks=[])
                ax.grid(visible=False)
            axes[0, column].set_title(name.replace("_", " "))
        axes[0, 0].set_ylabel("target")
        axes[1, 0].set_ylabel("flow")
        return figure

    def explain(self, run: Run, islands: Mapping[str, str | float], found: int) -> None:
        share = float(islands["effective"])
        warning = (
            f"{100 * share:.0f} % of its draws count, and nothing tells what it misses"
            if share > 0.5
            else f"only {100 * share:.2g} % of its draws count, because a stray one fell near another island and "
            "outweighs the rest; without that luck nothing would tell what it misses"
        )
        run.note(
            "what the weights cannot know",
            f"Of the four islands the flow has found {found}. Where it never goes it draws no point: {warning}. The "
            f"weights put log Z at {float(islands['weighed']):.2f} ± {float(islands['± by itself']):.2f}, and it is "
            f"{float(islands['log Z']):.2f}. An island left out costs no more than its share of the mass: with k of "
            "four known perfectly the gap is log (4/k). A lower bound on log Z stays true all the same.",
        )


@dataclass(frozen=True)
class Sample:
    target: Name = "ring"  # whose flow to draw from
    count: int = 2_000  # how many points

    def __call__(self, flows: nn.ModuleDict) -> Tensor:
        return flow_of(flows, self.target).sample(self.count)


def flow_of(flows: nn.ModuleDict, name: str) -> Flow:
    flow = flows[name]
    assert isinstance(flow, Flow)
    return flow


def plane(side: int) -> tuple[Tensor, float]:
    """The square [−6, 6]², outside of which the targets have nothing, and the area of a place."""
    axis = torch.linspace(-6, 6, side, dtype=torch.float64)
    return torch.cartesian_prod(axis, axis), float(axis[1] - axis[0]) ** 2


def islands_found(flow: Flow, draws: int) -> int:
    """In how many quadrants the flow puts more than a twentieth of its draws."""
    x = flow.sample(draws)
    quadrant = (x[:, 0] > 0).long() * 2 + (x[:, 1] > 0).long()
    return int((torch.bincount(quadrant, minlength=4) > draws / 20).sum())


def two_normals() -> Distribution:
    halves = Independent(Normal(torch.tensor([[-3.0], [3.0]]), torch.ones(2, 1)), 1)
    return MixtureSameFamily(Categorical(torch.ones(2)), halves)


def fit_one_normal(run: Run, *, steps: int = 300) -> tuple[float, float]:
    """One normal to two, by either divergence: |mean| of the first and of the second."""
    target = two_normals()
    losses: dict[str, Callable[[Flow], Tensor]] = {
        "by reverse KL": lambda flow: reverse_kl(flow, target.log_prob, 512),
        "by forward KL": lambda flow: flow.loss(target.sample(torch.Size([512]))),
    }
    ends = {}
    for name, loss in losses.items():
        base = GaussianBase((1,), learned=True)
        nn.init.constant_(base.mean, 2.0)
        ends[name] = flow = Flow(Chain(), base)
        optimizer = Adam(flow.parameters(), lr=0.05)
        for _ in range(steps):
            run.update(optimizer, loss(flow))
    x = torch.linspace(-9, 9, 400)[:, None]
    with torch.no_grad():
        lines = {name: (x[:, 0], flow.log_prob(x).exp()) for name, flow in ends.items()}
        figure = curves({"two normals": (x[:, 0], target.log_prob(x).exp()), **lines}, x_label="x", y_label="density")
    run.figure(
        "one normal",
        figure,
        "One normal fitted to two. Reverse KL is punished for being where the target is not, and takes one half; "
        "forward KL for not being where it is, and covers both.",
    )
    reverse, forward = (abs(float(flow.base().mean.detach())) for flow in ends.values())
    return reverse, forward
