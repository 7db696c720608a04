"""Walks on a score field: climb and shake under one's own hands, no training needed (book sec. 13.2.7)."""

from typing import Annotated

import torch
from torch import Tensor

from parnassus.atlas.marks import probe
from parnassus.diffusion.annealed_langevin import annealed_langevin_path
from parnassus.diffusion.langevin import adjusted_langevin_path, langevin_path
from parnassus.diffusion.mixture import RoundMixture
from parnassus.diffusion.noise_levels import geometric_levels
from parnassus.touch import Answer, Curves, Numbers, Path, Pick, Plane, Point, Real, Whole

REACH, FINE = 4.0, 61  # half a side of the plane, and places along it where the density is worked out
WALKERS = 300  # that decide the numbers; a few of them are drawn
SHOWN = 5


def _ring() -> RoundMixture:
    angle = torch.arange(40) * 2 * torch.pi / 40
    return RoundMixture.of(2.5 * torch.stack([angle.cos(), angle.sin()], 1), torch.full((40,), 0.25))


DENSITIES = {
    "two modes, weights 0.2 and 0.8": RoundMixture.of(
        torch.tensor([[-2.0, -2.0], [2.0, 2.0]]), torch.full((2,), 0.5), torch.tensor([0.2, 0.8])
    ),
    "three modes, near": RoundMixture.of(
        torch.tensor([[-1.5, -0.6], [1.5, -0.6], [0.0, 1.4]]),
        torch.tensor([0.5, 0.6, 0.4]),
        torch.tensor([0.3, 0.5, 0.2]),
    ),
    "one Gaussian": RoundMixture.of(torch.zeros(1, 2), torch.ones(1)),
    "a ring": _ring(),
}
GONE = 1e6  # as far as a walker that has left for good is followed
WAYS = ("plain", "with Metropolis' rule", "annealed over ten blurs")
PLANE = Plane((-REACH, REACH), (-REACH, REACH), torch.zeros(0, 2), across_name="x₁", up_name="x₂")


@probe()
@torch.no_grad()
def langevin_walk(
    density: Annotated[int, Pick("density", tuple(DENSITIES))] = 0,
    way: Annotated[int, Pick("walk", WAYS)] = 0,
    start: Annotated[tuple[float, float], Point("where all walks begin", PLANE)] = (0.0, 0.5),
    step: Annotated[float, Real("step size c", 1e-3, 2.0, log=True)] = 0.05,
    *,
    temperature: Annotated[float, Real("temperature τ", 0.0, 3.0)] = 1.0,
    steps: Annotated[int, Whole("steps", 1, 200)] = 60,
) -> list[Answer]:
    """Walkers climb a log-density and are shaken: x ← x + c ∇ log p(x) + √(2cτ) ε (book eq. 13.87).

    Begin at temperature 0: all walkers take one path, to the nearest top. Warm them up to 1 and they spread as the
    density does. Then begin between the two modes: the weights are forgotten, until annealing brings them back. At last
    lengthen the steps on the one Gaussian: past c = 2 plain walks leave for good, with Metropolis' rule they stay.
    """
    mixture = DENSITIES[list(DENSITIES)[density]]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # the same noise while a slider moves
        path = _walk(
            mixture, way, torch.tensor([start]).expand(WALKERS, 2), step=step, temperature=temperature, steps=steps
        )
    path = path.nan_to_num(GONE, GONE, -GONE).clamp(-GONE, GONE)  # a step too long doubles its error each time
    line = torch.linspace(-REACH, REACH, FINE)
    log_density = mixture.log_prob(torch.cartesian_prod(line, line).flip(1)).view(FINE, FINE)
    inside = path[:, :SHOWN].clamp(-2 * REACH, 2 * REACH)  # what has left for good is not worth drawing to scale
    places = {f"walk {number}": walk for number, walk in enumerate(inside.unbind(1), 1)}
    about = f"{SHOWN} of {WALKERS} walks; dots: where all end; arrows: the score; level lines are those of −ln p."
    return [
        Path(
            "The walks",
            places,
            line,
            line,
            -log_density,
            about=about,
            arrows=_field(mixture),
            dots=path[-1].clamp(-9, 9),
        ),
        _shares(mixture, path),
        _numbers(mixture, path[-1]),
    ]


def _field(mixture: RoundMixture) -> Tensor:
    """The score on a coarse grid as arrows; long ones are shortened, for it grows without end far outside."""
    line = torch.linspace(-REACH, REACH, 17)[1:-1]
    places = torch.cartesian_prod(line, line)
    score = mixture.score(places)
    length = torch.linalg.vector_norm(score, dim=1, keepdim=True)
    return torch.stack([places, places + 0.35 * score / (0.5 + length)], 1)


def _walk(mixture: RoundMixture, way: int, start: Tensor, *, step: float, temperature: float, steps: int) -> Tensor:
    """All states of all walkers, (step, walker, 2); annealing shows the ends of its ten levels and knows no τ."""
    if way == 1:
        scale = max(temperature, 1e-6)  # the law p^(1/τ), whose slope is ∇ log p / τ
        moves = adjusted_langevin_path(
            lambda x: mixture.log_prob(x) / scale,
            lambda x: mixture.score(x) / scale,
            start,
            step=step * scale,
            steps=steps,
        )
        return torch.stack([move.state for move in moves])
    if way == 2:
        levels = geometric_levels(10, 0.1, 10.0)
        factor = min(1.0, 2 * step)
        walk = annealed_langevin_path(
            lambda x, t: mixture.score(x, 1.0, levels.to(x)[t][:, None]),
            levels,
            start,
            steps=max(1, steps // 10),
            factor=factor,
        )
        return torch.stack(list(walk))
    return torch.stack(list(langevin_path(mixture.score, start, step=step, steps=steps, temperature=temperature)))


def _shares(mixture: RoundMixture, path: Tensor) -> Curves:
    """How many walkers are nearest to the heaviest mode, step by step, beside the mass it has."""
    heaviest = int(mixture.weights.argmax())
    flat = path.reshape(-1, 2)
    near = torch.cdist(flat, mixture.means).argmin(1).view(path.shape[:2])
    share = (near == heaviest).float().mean(1)
    times = [float(index) for index in range(len(path))]
    lines = {
        "walkers": (times, share.tolist()),
        "its weight": (times, [float(mixture.weights[heaviest])] * len(times)),
    }
    return Curves("Share at the heaviest mode", lines, x_label="step", y_label="share")


def _numbers(mixture: RoundMixture, end: Tensor) -> Numbers:
    """Where the walkers ended, beside what a draw of the density would give."""
    spread = (mixture.weights[:, None] * (mixture.means - mixture.weights @ mixture.means).square()).sum()
    truth = spread + 2 * (mixture.weights * mixture.stds.square()).sum()
    values: dict[str, float | str] = {
        "E‖x − E x‖² of the walkers": float((end - end.mean(0)).square().sum(1).mean()),
        "the same under p": float(truth),
        "mean ln p where they ended": float(mixture.log_prob(end).mean()),
        "walkers outside the picture": float((end.abs().amax(1) > REACH).sum()),
    }
    return Numbers("Where they ended", values)
