"""Value iteration on an editable grid world (book sec. 18.2)."""

from typing import Annotated

import torch
from torch import Tensor

from parnassus.atlas.decorators import probe
from parnassus.reinforcement.tabular.grid_world import LETTERS, GridWorld
from parnassus.reinforcement.tabular.value_and_policy_iteration import policy_iteration, value_iterates
from parnassus.widgets import Answer, Curves, FloatSlider, Images, IntSlider, Numbers, TextInput

LAYOUT = "...G/.#.X/S..."
SWEEPS = 40
CELL = 56  # pixels
MAX_HEIGHT, MAX_WIDTH = 10, 14
NEGATIVE, POSITIVE = torch.tensor([0.84, 0.37, 0.0]), torch.tensor([0.0, 0.45, 0.7])
WALL, INK = torch.tensor([0.45, 0.47, 0.5]), torch.tensor([0.1, 0.1, 0.12])


@probe()
def value_iteration_on_a_grid(
    layout: Annotated[str, TextInput("map, rows separated by /")] = LAYOUT,
    sweep: Annotated[int, IntSlider("sweeps k", 0, SWEEPS)] = 4,
    *,
    goal: Annotated[float, FloatSlider("reward of the goal", 0.0, 5.0)] = 1.0,
    pit: Annotated[float, FloatSlider("reward of pits and cliffs", -10.0, 0.0)] = -1.0,
    step_reward: Annotated[float, FloatSlider("reward per step", -1.0, 0.2)] = -0.04,
    slip_probability: Annotated[float, FloatSlider("probability of slipping sideways", 0.0, 0.8)] = 0.2,
    gamma: Annotated[float, FloatSlider("discount γ", 0.0, 0.99)] = 0.95,
) -> list[Answer]:
    """Values of the cells after k sweeps of value iteration, and the greedy policy (book sec. 18.2).

    Start with k = 0 and add sweeps: values propagate from the goal by one cell per sweep. Then edit the map: put a wall
    next to the goal, or a second pit. Lower the reward per step until the agent prefers the pit; increase the slip
    probability until it walks into walls to avoid the pit.
    """
    rewards = {"G": goal, "X": pit, "C": pit}
    world = GridWorld(
        complete_map(layout), step_reward=step_reward, slip_probability=slip_probability, gamma=gamma, rewards=rewards
    )
    iterates, optimal = value_iterates(world.process, SWEEPS), policy_iteration(world.process).values
    errors = (iterates - optimal).abs().amax(1)
    limit = float(optimal.abs().max()) or 1.0
    images = [_image(world, values, limit) for values in (iterates[sweep], optimal)]
    sweeps = [float(k) for k in range(SWEEPS + 1)]
    return [
        Images("Values and greedy actions", torch.stack(images), [f"k = {sweep}", "optimal"], about=LEGEND),
        Numbers("Values by row", _rows(world, iterates[sweep])),
        Curves(
            "Distance from the optimal values",
            {
                "maximum error": (sweeps, errors.clamp(min=1e-16).tolist()),
                "γ^k × initial error": (
                    sweeps,
                    [max(1e-16, float(errors[0]) * gamma**k) for k in range(SWEEPS + 1)],
                ),
            },
            x_label="sweeps",
            y_label="maximum error",
            log_y=True,
            marked=float(sweep),
            about="Every sweep reduces the maximum error by at least the factor γ.",
        ),
    ]


def complete_map(layout: str) -> str:
    """A valid map from any text: short rows are padded with walls, unknown letters become floor.

    Without floor the first cell becomes floor; with a cliff but no start the first floor cell becomes the start.
    """
    rows = [row[:MAX_WIDTH] for row in layout.upper().strip(" /").split("/")[:MAX_HEIGHT]]
    width = max(1, *map(len, rows))
    letters = "/".join(
        "".join(letter if letter in LETTERS else "." for letter in row).ljust(width, "#") for row in rows
    )
    if "." not in letters and "S" not in letters:
        letters = "." + letters[1:]
    return letters if "S" in letters or "C" not in letters else letters.replace(".", "S", 1)


LEGEND = (
    "In the map . is floor, # a wall, S a start, G a goal, X a pit and C a cliff, which leads back to the start; short "
    "rows are filled with walls. Blue: positive values, orange: negative values."
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


def _image(world: GridWorld, values: Tensor, limit: float) -> Tensor:
    """The grid (3, height, width): cells coloured by value, with an arrow for the greedy action."""
    height, width = world.shape
    image = torch.ones(height, CELL, width, CELL, 3)
    greedy = world.process.q_values(values).argmax(-1)
    index = {cell: state for state, cell in enumerate(world.cells)}
    for row in range(height):
        for column in range(width):
            letter = world.letter(row, column)
            cell = image[row, :, column]
            if letter in "#C":
                cell[:] = WALL if letter == "#" else INK
                continue
            state = index[row, column]
            fraction = float(values[state] / limit)
            colour = POSITIVE if fraction > 0 else NEGATIVE
            cell[:] = torch.lerp(torch.ones(3), colour, min(1.0, abs(fraction)) ** 0.7)
            if letter in "GX":
                _frame(cell, POSITIVE if letter == "G" else NEGATIVE)
            else:
                cell[_arrow(int(greedy[state]))] = INK
            if letter == "S":
                _frame(cell, INK)
    flat: Tensor = image.reshape(height * CELL, width * CELL, 3).permute(2, 0, 1)
    flat[:, ::CELL], flat[:, :, ::CELL] = 1.0, 1.0  # lines between the cells
    return flat


def _frame(cell: Tensor, colour: Tensor) -> None:
    edge = torch.ones(CELL, CELL, dtype=torch.bool)
    edge[5:-5, 5:-5] = False
    cell[edge] = colour


def _arrow(action: int) -> Tensor:
    """An arrow in one of the four directions, as a mask of a cell."""
    down, across = torch.meshgrid(torch.arange(CELL) - CELL / 2, torch.arange(CELL) - CELL / 2, indexing="ij")
    head = (down > -16) & (down <= -4) & (across.abs() <= (down + 16) * 0.7)
    shaft = (across.abs() <= 2) & (down > -4) & (down < 16)
    return torch.rot90(head | shaft, -action)  # drawn upwards; each action is a quarter turn to the right
