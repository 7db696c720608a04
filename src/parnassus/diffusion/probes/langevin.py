"""Probe of Langevin dynamics with exact scores (book sec. 13.2.7)."""

from typing import Annotated

import torch
from torch import Tensor

from parnassus.atlas.decorators import probe
from parnassus.diffusion.samplers.annealed_langevin import annealed_langevin_path
from parnassus.diffusion.samplers.langevin import adjusted_langevin_path, langevin_path
from parnassus.diffusion.scores.gaussian_mixture import IsotropicMixture
from parnassus.diffusion.scores.noise_levels import geometric_levels
from parnassus.widgets import Answer, Curves, FloatSlider, IntSlider, Numbers, Plane, PointPicker, Select, Trajectories

LIMIT, GRID_SIZE = 4.0, 61  # half the side of the plane, and grid points along it
CHAINS = 300  # for the statistics; SHOWN of them are plotted
SHOWN = 5


def _ring() -> IsotropicMixture:
    angle = torch.arange(40) * 2 * torch.pi / 40
    return IsotropicMixture.from_components(2.5 * torch.stack([angle.cos(), angle.sin()], 1), torch.full((40,), 0.25))


DENSITIES = {
    "two modes, weights 0.2 and 0.8": IsotropicMixture.from_components(
        torch.tensor([[-2.0, -2.0], [2.0, 2.0]]), torch.full((2,), 0.5), torch.tensor([0.2, 0.8])
    ),
    "three close modes": IsotropicMixture.from_components(
        torch.tensor([[-1.5, -0.6], [1.5, -0.6], [0.0, 1.4]]),
        torch.tensor([0.5, 0.6, 0.4]),
        torch.tensor([0.3, 0.5, 0.2]),
    ),
    "one Gaussian": IsotropicMixture.from_components(torch.zeros(1, 2), torch.ones(1)),
    "a ring": _ring(),
}
MAX_VALUE = 1e6  # diverging chains are clamped to this
ALGORITHMS = ("unadjusted", "Metropolis-adjusted (MALA)", "annealed over ten noise levels")
PLANE = Plane((-LIMIT, LIMIT), (-LIMIT, LIMIT), torch.zeros(0, 2), x_label="x₁", y_label="x₂")


@probe()
@torch.no_grad()
def langevin_dynamics(
    density: Annotated[int, Select("density", tuple(DENSITIES))] = 0,
    algorithm: Annotated[int, Select("algorithm", ALGORITHMS)] = 0,
    start: Annotated[tuple[float, float], PointPicker("start of all chains", PLANE)] = (0.0, 0.5),
    step: Annotated[float, FloatSlider("step size c", 1e-3, 2.0, log=True)] = 0.05,
    *,
    temperature: Annotated[float, FloatSlider("temperature τ", 0.0, 3.0)] = 1.0,
    steps: Annotated[int, IntSlider("steps", 1, 200)] = 60,
) -> list[Answer]:
    """Langevin dynamics x ← x + c ∇ log p(x) + √(2cτ) ε (book eq. 13.87).

    At temperature 0 all chains ascend to the nearest mode; at 1 they sample the density. Started between two distant
    modes, unadjusted chains do not reproduce their weights; annealing does. On the Gaussian unadjusted chains diverge
    for c > 2; Metropolis-adjusted chains do not.
    """
    mixture = DENSITIES[list(DENSITIES)[density]]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # the same noise while a slider moves
        path = _simulate(
            mixture, algorithm, torch.tensor([start]).expand(CHAINS, 2), step=step, temperature=temperature, steps=steps
        )
    path = path.nan_to_num(MAX_VALUE, MAX_VALUE, -MAX_VALUE).clamp(-MAX_VALUE, MAX_VALUE)  # large steps diverge
    line = torch.linspace(-LIMIT, LIMIT, GRID_SIZE)
    log_density = mixture.log_prob(torch.cartesian_prod(line, line).flip(1)).view(GRID_SIZE, GRID_SIZE)
    plotted = path[:, :SHOWN].clamp(-2 * LIMIT, 2 * LIMIT)  # diverged chains are not plotted to scale
    trajectories = {f"chain {number}": chain for number, chain in enumerate(plotted.unbind(1), 1)}
    about = f"{SHOWN} of {CHAINS} chains; dots: final states of all; arrows: score; level lines: −ln p."
    return [
        Trajectories(
            "Trajectories",
            trajectories,
            line,
            line,
            -log_density,
            about=about,
            arrows=_field(mixture),
            points=path[-1].clamp(-9, 9),
        ),
        _mode_occupancy(mixture, path),
        _final_statistics(mixture, path[-1]),
    ]


def _field(mixture: IsotropicMixture) -> Tensor:
    """The score on a coarse grid as arrows; long arrows are shortened."""
    line = torch.linspace(-LIMIT, LIMIT, 17)[1:-1]
    points = torch.cartesian_prod(line, line)
    score = mixture.score(points)
    length = torch.linalg.vector_norm(score, dim=1, keepdim=True)
    return torch.stack([points, points + 0.35 * score / (0.5 + length)], 1)


def _simulate(
    mixture: IsotropicMixture, algorithm: int, start: Tensor, *, step: float, temperature: float, steps: int
) -> Tensor:
    """All states (step, chain, 2); annealing yields the ends of its ten levels and does not use τ."""
    if algorithm == 1:
        scale = max(temperature, 1e-6)  # p^(1/τ) has the score ∇ log p / τ
        states = adjusted_langevin_path(
            lambda x: mixture.log_prob(x) / scale,
            lambda x: mixture.score(x) / scale,
            start,
            step=step * scale,
            steps=steps,
        )
        return torch.stack([state.state for state in states])
    if algorithm == 2:
        levels = geometric_levels(10, 0.1, 10.0)
        factor = min(1.0, 2 * step)
        path = annealed_langevin_path(
            mixture.noise_conditional_score(levels),
            levels,
            start,
            steps=max(1, steps // 10),
            factor=factor,
        )
        return torch.stack(list(path))
    return torch.stack(list(langevin_path(mixture.score, start, step=step, steps=steps, temperature=temperature)))


def _mode_occupancy(mixture: IsotropicMixture, path: Tensor) -> Curves:
    """The fraction of chains nearest to the largest mode at each step, and the weight of that mode."""
    heaviest = int(mixture.weights.argmax())
    flat = path.reshape(-1, 2)
    near = torch.cdist(flat, mixture.means).argmin(1).view(path.shape[:2])
    fraction = (near == heaviest).float().mean(1)
    times = [float(index) for index in range(len(path))]
    lines = {
        "fraction of chains": (times, fraction.tolist()),
        "weight of the mode": (times, [float(mixture.weights[heaviest])] * len(times)),
    }
    return Curves("Fraction of chains at the largest mode", lines, x_label="step", y_label="fraction")


def _final_statistics(mixture: IsotropicMixture, end: Tensor) -> Numbers:
    """Statistics of the final states and of the density."""
    between = (mixture.weights[:, None] * (mixture.means - mixture.weights @ mixture.means).square()).sum()
    truth = between + 2 * (mixture.weights * mixture.stds.square()).sum()
    values: dict[str, float | str] = {
        "E‖x − E x‖² of the chains": float((end - end.mean(0)).square().sum(1).mean()),
        "E‖x − E x‖² under p": float(truth),
        "mean ln p at the final states": float(mixture.log_prob(end).mean()),
        "chains outside the plane": float((end.abs().amax(1) > LIMIT).sum()),
    }
    return Numbers("Final states", values)
