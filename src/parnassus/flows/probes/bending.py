"""Things to touch: a plane bent by a trained flow, one coupling after another (book sec. 13.1)."""

from typing import Annotated, cast

import torch
from torch import Tensor

from parnassus.atlas.marks import probe
from parnassus.flows.flow import Chain, Flow
from parnassus.touch import Answer, Bars, Numbers, Path, Plane, Point, Whole
from parnassus.train.trained import Trained

REACH = 3.5  # of the window, to all sides
LINES, ALONG = 11, 61  # of the grid, each way, and the points of each
FINE = 71  # points a side at which the density is drawn
DEEP = 10.0  # nats below the highest density at which its relief ends
NOISE = torch.randn(300, 2, generator=torch.Generator().manual_seed(0))
PLANE = Plane((-REACH, REACH), (-REACH, REACH), NOISE, across_name="first", up_name="second")


def _flow(trained: Trained) -> Flow:
    return cast("Flow", trained.model)


def _chain(trained: Trained) -> Chain:
    return cast("Chain", _flow(trained).transform)


def _layers(trained: Trained) -> int:
    return len(_chain(trained))


def _bent(trained: Trained) -> list[list[Tensor]]:
    """The lines of a straight grid, across and up, after 0, 1, … couplings."""
    apart, along = torch.linspace(-2.5, 2.5, LINES), torch.linspace(-2.5, 2.5, ALONG)
    across = torch.stack([along.repeat(LINES), apart.repeat_interleave(ALONG)], dim=1)
    both = torch.cat([across, across.flip(1)])
    return [list(state.split(ALONG)) for state in _chain(trained).path(both)]


@probe("real_nvp_on_moons")
@torch.no_grad()
def bend_the_plane(
    trained: Trained,
    couplings: Annotated[int, Whole("couplings applied", 0, _layers)] = 99,
    start: Annotated[tuple[float, float], Point("a point of noise", PLANE)] = (0.5, 0.5),
) -> list[Answer]:
    """A straight grid of noise, bent by the couplings of a trained flow (book sec. 13.1).

    Begin with no coupling and add one at a time. Each moves one coordinate only, by what the other says. Lines never
    cross others of their kind, for the map has an inverse: at the end most of the grid is squeezed onto the data, and
    what lies between their parts is stretched thin. Move the point and see which noise becomes which moon.
    """
    flow = trained.once(_flow)
    applied = Chain(list(trained.once(_chain))[:couplings])
    way = torch.cat(list(applied.path(torch.tensor([start]))))
    changes = torch.tensor([float(layer(z[None])[1]) for layer, z in zip(applied, way[:-1], strict=True)])
    axis = torch.linspace(-REACH, REACH, FINE)
    window = torch.cartesian_prod(axis, axis).flip(1)  # the second coordinate changes from row to row
    relief = -Flow(applied, flow.base).log_prob(window).view(FINE, FINE)
    picture = Path(
        "Noise, bent",
        {"the point, coupling by coupling": way},
        axis,
        axis,
        relief.clamp(max=float(relief.min()) + DEEP),
        about=f"After {couplings} couplings. Level lines are those of −log of the density there.",
        threads=trained.once(_bent)[couplings],
    )
    end = way[-1]
    log_base = float(flow.base().log_prob(way[:1]))
    numbers: dict[str, float | str] = {
        "where the point is": f"({float(end[0]):.2f}, {float(end[1]):.2f})",
        "log p of the noise": log_base,
        "log |det J|, all couplings so far": float(changes.sum()),
        "log p here": log_base - float(changes.sum()),
    }
    about = "log p here = log p of the noise − log |det J|: what is squeezed becomes dense (book eq. 13.1)."
    return [picture, Numbers("In numbers", numbers, about=about), *_by_coupling(changes)]


def _by_coupling(changes: Tensor) -> list[Answer]:
    """How much each coupling stretches the plane around the point; nothing before the first."""
    if not len(changes):
        return []
    names = [str(layer + 1) for layer in range(len(changes))]
    about = "log |det J| of each coupling at the point: below zero it squeezes, above it stretches."
    return [Bars("Coupling by coupling", names, changes, about=about)]
