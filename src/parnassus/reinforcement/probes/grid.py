"""Value iteration on a grid that a person draws: step by step, walls and rewards as wanted (book sec. 18.2)."""

from typing import Annotated

import torch
from torch import Tensor

from parnassus.atlas.marks import probe
from parnassus.reinforcement.grid_world import LETTERS, GridWorld
from parnassus.reinforcement.planning import policy_iteration, value_iterates
from parnassus.touch import Answer, Curves, Images, Numbers, Real, Typed, Whole

DRAWING = "...G/.#.X/S..."
SWEEPS = 40
CELL = 56  # pixels
HIGH, WIDE = 10, 14  # the largest map
RED, BLUE = torch.tensor([0.84, 0.37, 0.0]), torch.tensor([0.0, 0.45, 0.7])  # below and above zero
WALL, INK = torch.tensor([0.45, 0.47, 0.5]), torch.tensor([0.1, 0.1, 0.12])


@probe()
def value_iteration_on_a_grid(
    drawing: Annotated[str, Typed("the map, rows parted by /")] = DRAWING,
    sweep: Annotated[int, Whole("sweeps, k", 0, SWEEPS)] = 4,
    *,
    goal: Annotated[float, Real("reward of the goal", 0.0, 5.0)] = 1.0,
    pit: Annotated[float, Real("reward of the pit and the cliff", -10.0, 0.0)] = -1.0,
    living: Annotated[float, Real("reward of every step", -1.0, 0.2)] = -0.04,
    slip: Annotated[float, Real("how often a step slips to a side", 0.0, 0.8)] = 0.2,
    discount: Annotated[float, Real("discount, γ", 0.0, 0.99)] = 0.95,
) -> list[Answer]:
    """What the cells of a map are worth after k sweeps of value iteration, and where it would go (book sec. 18.2).

    Begin with k = 0 and add sweeps: news of the goal spreads a cell a sweep. Then type in the map: put a wall beside
    the goal, or a second pit. Make every step cost more until the agent throws itself into the pit; let the ground
    slip until it walks into walls rather than past the pit.
    """
    pays = {"G": goal, "X": pit, "C": pit}
    world = GridWorld(mended(drawing), living=living, slip=slip, discount=discount, pays=pays)
    path, best = value_iterates(world.process, SWEEPS), policy_iteration(world.process).values
    errors = (path - best).abs().amax(1)
    limit = float(best.abs().max()) or 1.0
    pictures = [_picture(world, values, limit) for values in (path[sweep], best)]
    return [
        Images("Values and best actions", torch.stack(pictures), [f"k = {sweep}", "at the end"], about=PICTURE),
        Numbers("Values, row by row", _rows(world, path[sweep])),
        Curves(
            "How far from the best",
            {
                "largest error": ([float(k) for k in range(SWEEPS + 1)], errors.clamp(min=1e-16).tolist()),
                "γ^k of the first": (
                    [float(k) for k in range(SWEEPS + 1)],
                    [max(1e-16, float(errors[0]) * discount**k) for k in range(SWEEPS + 1)],
                ),
            },
            x_label="sweeps",
            y_label="largest error",
            log_y=True,
            marked=float(sweep),
            about="Every sweep brings it nearer by the factor γ at least.",
        ),
    ]


def mended(drawing: str) -> str:
    """A map at every moment of its writing: short rows end in walls, any other letter is floor, and one can stand.

    Who falls from a cliff needs a start to go back to; without one the first floor becomes it.
    """
    rows = [row[:WIDE] for row in drawing.upper().strip(" /").split("/")[:HIGH]]
    wide = max(1, *map(len, rows))
    letters = "/".join("".join(letter if letter in LETTERS else "." for letter in row).ljust(wide, "#") for row in rows)
    if "." not in letters and "S" not in letters:
        letters = "." + letters[1:]
    return letters if "S" in letters or "C" not in letters else letters.replace(".", "S", 1)


PICTURE = (
    "In the map . is floor, # a wall, S a start, G a goal, X a pit and C a cliff, which leads back to the start; a row "
    "that is too short ends in walls. Blue is worth more than nothing, orange less."
)


def _rows(world: GridWorld, values: Tensor) -> dict[str, float | str]:
    grid = world.on_grid(values)
    return {
        f"row {row + 1}": " · ".join(
            letters[column] if letters[column] in "#CGX" else f"{float(grid[row, column]):.2f}"
            for column in range(len(letters))
        )
        for row, letters in enumerate(world.rows)
    }


def _picture(world: GridWorld, values: Tensor, limit: float) -> Tensor:
    """A cell for each letter, (3, high, wide): coloured by its value, with an arrow for its best action."""
    high, wide = world.shape
    image = torch.ones(high, CELL, wide, CELL, 3)
    best = world.process.q_values(values).argmax(-1)
    number = {cell: state for state, cell in enumerate(world.cells)}
    for row in range(high):
        for column in range(wide):
            letter = world.letter(row, column)
            cell = image[row, :, column]
            if letter in "#C":
                cell[:] = WALL if letter == "#" else INK
                continue
            state = number[row, column]
            share = float(values[state] / limit)
            cell[:] = torch.lerp(torch.ones(3), BLUE if share > 0 else RED, min(1.0, abs(share)) ** 0.7)
            if letter in "GX":
                _frame(cell, BLUE if letter == "G" else RED)
            else:
                cell[_arrow(int(best[state]))] = INK
            if letter == "S":
                _frame(cell, INK)
    flat: Tensor = image.reshape(high * CELL, wide * CELL, 3).permute(2, 0, 1)
    flat[:, ::CELL], flat[:, :, ::CELL] = 1.0, 1.0  # lines between the cells
    return flat


def _frame(cell: Tensor, colour: Tensor) -> None:
    edge = torch.ones(CELL, CELL, dtype=torch.bool)
    edge[5:-5, 5:-5] = False
    cell[edge] = colour


def _arrow(action: int) -> Tensor:
    """A shaft and a head, turned into one of the four directions, as a mask of a cell."""
    down, across = torch.meshgrid(torch.arange(CELL) - CELL / 2, torch.arange(CELL) - CELL / 2, indexing="ij")
    head = (down > -16) & (down <= -4) & (across.abs() <= (down + 16) * 0.7)
    shaft = (across.abs() <= 2) & (down > -4) & (down < 16)
    return torch.rot90(head | shaft, -action)  # up is drawn; each action is a quarter to the right of the one before
