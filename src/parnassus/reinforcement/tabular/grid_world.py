"""Grid worlds with walls, goals, pits, cliffs and slippery floors (Sutton and Barto 2018, chs. 3-6).

.  floor              #  wall: a step into it stays put            S  floor where an episode starts
G  goal, terminal     X  pit, terminal                             C  cliff: a step onto it returns to a start
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.reinforcement.tabular.markov_decision_process import MarkovDecisionProcess
from parnassus.reinforcement.tabular.markov_reward_process import check_discount

DIRECTIONS = ("up", "right", "down", "left")
ARROWS = ("↑", "→", "↓", "←")
OFFSETS = ((-1, 0), (0, 1), (1, 0), (0, -1))  # rows are numbered downwards
DEFAULT_REWARDS: Mapping[str, float] = {"G": 1.0, "X": -1.0, "C": -100.0}
LETTERS = ".#SGXC"

CORNER = "...G\n.#.X\nS..."
"""The 4 × 3 world (Russell and Norvig 2020, sec. 17.1)."""
CLIFF = "............\n............\n............\nSCCCCCCCCCCG"
"""Cliff walking (Sutton and Barto 2018, ex. 6.6)."""


@dataclass(frozen=True)
class GridWorld:
    """A map with rewards of a step and of each letter, and the probability of slipping sideways.

    `rewards` are those of stepping onto a letter, added to `step_reward`. With probability `slip_probability` a step
    goes to one of the two sides instead, half to each. Rows are separated by line breaks or "/".

    >>> GridWorld("..G").gamma
    1.0
    """

    layout: str
    step_reward: float = -0.04
    slip_probability: float = 0.2
    gamma: float = 1.0
    rewards: Mapping[str, float] = field(default_factory=lambda: dict(DEFAULT_REWARDS))

    def __post_init__(self) -> None:
        widths = {len(row) for row in self.rows}
        if len(widths) != 1 or 0 in widths:
            raise ValueError(f"all rows of a map must have equal length; got lengths {[len(row) for row in self.rows]}")
        unknown = sorted(set("".join(self.rows)) - set(LETTERS))
        if unknown:
            raise ValueError(f"a map consists of the letters {' '.join(LETTERS)}; got {unknown[0]!r}")
        if not any(letter in ".S" for row in self.rows for letter in row):
            raise ValueError("a map needs a floor cell, '.' or 'S'; got none")
        if "C" in self.layout and "S" not in self.layout:
            raise ValueError("a cliff returns to a start: a map with 'C' needs an 'S'; got none")
        missing = sorted({letter for row in self.rows for letter in row if letter in "GXC"} - set(self.rewards))
        if missing:
            raise ValueError(f"rewards must define every letter of the map; {missing[0]!r} is missing")
        if not 0 <= self.slip_probability <= 1:
            raise ValueError(f"slip_probability must be in [0, 1]; got slip_probability={self.slip_probability}")
        check_discount(self.gamma)

    @property
    def rows(self) -> list[str]:
        return self.layout.strip().replace("/", "\n").split("\n")

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows), len(self.rows[0])

    @cached_property
    def cells(self) -> list[tuple[int, int]]:
        """Row and column of every state, in reading order; walls and cliffs are not states."""
        return [(i, j) for i, row in enumerate(self.rows) for j, letter in enumerate(row) if letter not in "#C"]

    def letter(self, row: int, column: int) -> str:
        return self.rows[row][column]

    def state(self, row: int, column: int) -> int:
        """The index of the state of a cell."""
        if (row, column) not in self.cells:
            raise ValueError(f"row {row}, column {column} is not a state")
        return self.cells.index((row, column))

    @cached_property
    def start(self) -> Float[Tensor, " states"]:
        """Uniform over the cells marked S, or over all floor cells where none is marked."""
        letters = [self.letter(*cell) for cell in self.cells]
        chosen = "S" if "S" in letters else "."
        weights = torch.tensor([letter == chosen for letter in letters], dtype=torch.float64)
        return weights / weights.sum()

    @cached_property
    def process(self) -> MarkovDecisionProcess:
        """The Markov decision process of the map."""
        index = {cell: state for state, cell in enumerate(self.cells)}
        entries: list[tuple[int, int, int]] = []
        probabilities: list[float] = []
        rewards: list[float] = []
        for (row, column), state in index.items():
            for action in range(4):
                for turn, probability in (
                    (0, 1 - self.slip_probability),
                    (1, self.slip_probability / 2),
                    (3, self.slip_probability / 2),
                ):
                    down, across = OFFSETS[(action + turn) % 4]
                    letter, landing = self._landing(index, (row, column), (row + down, column + across))
                    for next_state, weight in landing.items():
                        entries.append((state, action, next_state))
                        probabilities.append(probability * weight)
                        rewards.append(self.step_reward + self.rewards.get(letter, 0.0))
        indices = torch.tensor(entries).unbind(1)
        weights, step_rewards = (torch.tensor(values, dtype=torch.float64) for values in (probabilities, rewards))
        zeros = torch.zeros(len(index), 4, len(index), dtype=torch.float64)
        transition = zeros.index_put(indices, weights, accumulate=True)
        total = zeros.index_put(indices, weights * step_rewards, accumulate=True)  # outcomes may share a cell
        terminal = torch.tensor([self.letter(*cell) in "GX" for cell in self.cells])
        reward = torch.where(transition > 0, total / transition.clamp(min=1e-300), 0.0)
        allowed = torch.ones(len(index), 4, dtype=torch.bool)
        return MarkovDecisionProcess(transition, reward, self.gamma, terminal, allowed)

    def with_cell(self, row: int, column: int, letter: str) -> "GridWorld":
        """The world with another letter in one cell."""
        height, width = self.shape
        if not (0 <= row < height and 0 <= column < width):
            raise ValueError(f"the map has {height} rows and {width} columns; got row {row}, column {column}")
        rows = self.rows
        rows[row] = rows[row][:column] + letter + rows[row][column + 1 :]
        return replace(self, layout="\n".join(rows))

    def on_grid(self, values: Float[Tensor, "*batch states"]) -> Float[Tensor, "*batch height width"]:
        """Values of the states arranged on the grid; NaN on walls and cliffs."""
        grid = torch.full((*values.shape[:-1], *self.shape), torch.nan, dtype=values.dtype, device=values.device)
        cells = torch.tensor(self.cells)
        grid[..., cells[:, 0], cells[:, 1]] = values
        return grid

    def arrows(self, actions: Int[Tensor, " states"]) -> str:
        """The map with an arrow for the action of each non-terminal state."""
        letters = [list(row) for row in self.rows]
        for (row, column), action in zip(self.cells, actions.tolist(), strict=True):
            if self.letter(row, column) in ".S":
                letters[row][column] = ARROWS[action]
        return "\n".join("".join(row) for row in letters)

    def _landing(
        self, index: Mapping[tuple[int, int], int], cell: tuple[int, int], target: tuple[int, int]
    ) -> tuple[str, Mapping[int, float]]:
        """The letter at the target of a step from a cell, and the distribution of the next state."""
        height, width = self.shape
        is_inside = 0 <= target[0] < height and 0 <= target[1] < width
        letter = self.letter(*target) if is_inside else "#"
        if letter == "C":
            starts = [state for start, state in index.items() if self.letter(*start) == "S"]
            return letter, dict.fromkeys(starts, 1 / len(starts))
        return letter, {index[cell if letter == "#" else target]: 1.0}
