"""The plane deformed by the couplings of a trained Real NVP (book sec. 13.1)."""

from typing import Annotated, cast

import torch
from torch import Tensor

from parnassus.atlas.decorators import probe
from parnassus.flows.flow import Chain, Flow
from parnassus.train.trained import TrainedRun
from parnassus.widgets import Answer, Bars, IntSlider, Numbers, Plane, PointPicker, Trajectories

LIMIT = 3.5  # half the side of the window
NUM_LINES, POINTS_PER_LINE = 11, 61  # of the grid, in each direction
GRID_SIZE = 71  # points per side of the grid of densities
MAX_NATS = 10.0  # range of −log p that is shown, above its minimum
NOISE = torch.randn(300, 2, generator=torch.Generator().manual_seed(0))
PLANE = Plane((-LIMIT, LIMIT), (-LIMIT, LIMIT), NOISE, x_label="first coordinate", y_label="second coordinate")


def _flow(trained: TrainedRun) -> Flow:
    return cast("Flow", trained.model)


def _chain(trained: TrainedRun) -> Chain:
    return cast("Chain", _flow(trained).transform)


def _num_couplings(trained: TrainedRun) -> int:
    return len(_chain(trained))


def _deformed_grids(trained: TrainedRun) -> list[list[Tensor]]:
    """The lines of a regular grid after 0, 1, … couplings."""
    offset, position = torch.linspace(-2.5, 2.5, NUM_LINES), torch.linspace(-2.5, 2.5, POINTS_PER_LINE)
    horizontal = torch.stack([position.repeat(NUM_LINES), offset.repeat_interleave(POINTS_PER_LINE)], dim=1)
    lines = torch.cat([horizontal, horizontal.flip(1)])
    return [list(state.split(POINTS_PER_LINE)) for state in _chain(trained).path(lines)]


@probe("real_nvp_on_moons")
@torch.no_grad()
def deform_plane(
    trained: TrainedRun,
    couplings: Annotated[int, IntSlider("couplings", 0, _num_couplings)] = 99,
    start: Annotated[tuple[float, float], PointPicker("latent point z", PLANE)] = (0.5, 0.5),
) -> list[Answer]:
    """A regular grid of the latent space, deformed by the couplings of a trained flow (book sec. 13.1).

    Start without couplings and add one at a time. Each transforms one coordinate as a function of the other. As the map
    is invertible, grid lines of the same direction never cross. Finally most of the grid is contracted onto the data,
    and the region between their parts is stretched.
    """
    flow = trained.compute_once(_flow)
    applied = Chain(list(trained.compute_once(_chain))[:couplings])
    trajectory = torch.cat(list(applied.path(torch.tensor([start]))))
    log_dets = torch.tensor([float(layer(z[None])[1]) for layer, z in zip(applied, trajectory[:-1], strict=True)])
    axis = torch.linspace(-LIMIT, LIMIT, GRID_SIZE)
    window = torch.cartesian_prod(axis, axis).flip(1)  # the second coordinate changes from row to row
    nll = -Flow(applied, flow.base).log_prob(window).view(GRID_SIZE, GRID_SIZE)
    trajectories = Trajectories(
        "Deformed grid",
        {"z after each coupling": trajectory},
        axis,
        axis,
        nll.clamp(max=float(nll.min()) + MAX_NATS),
        about=f"After {couplings} couplings, with level lines of −log p.",
        thin_lines=trained.compute_once(_deformed_grids)[couplings],
    )
    end = trajectory[-1]
    log_base = float(flow.base().log_prob(trajectory[:1]))
    values: dict[str, float | str] = {
        "transformed point": f"({float(end[0]):.2f}, {float(end[1]):.2f})",
        "log p of z": log_base,
        "log |det J| of the couplings": float(log_dets.sum()),
        "log p of the transformed point": log_base - float(log_dets.sum()),
    }
    about = "log p of the transformed point = log p of z − log |det J| (book eq. 13.1)."
    return [trajectories, Numbers("Change of variables", values, about=about), *_plot_log_dets(log_dets)]


def _plot_log_dets(log_dets: Tensor) -> list[Answer]:
    """The log-determinant of each coupling at the point; empty without couplings."""
    if not len(log_dets):
        return []
    names = [str(layer + 1) for layer in range(len(log_dets))]
    about = "log |det J| of each coupling at the point: negative for contraction, positive for expansion."
    return [Bars("Log-determinants", names, log_dets, about=about)]
