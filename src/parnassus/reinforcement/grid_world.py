"""Grid worlds drawn with letters: walls, goals, pits, a cliff, ground that slips (Sutton and Barto 2018, chs. 3-6).

.  floor          #  wall: who walks into it stays             S  floor where an episode starts
G  goal, the end  X  pit, an end too                           C  cliff: who steps on it is back at a start
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.reinforcement.decision import MarkovDecisionProcess
from parnassus.reinforcement.markov_reward import require_discount

DIRECTIONS = ("up", "right", "down", "left")
ARROWS = ("↑", "→", "↓", "←")
OFFSETS = ((-1, 0), (0, 1), (1, 0), (0, -1))  # rows count downwards
PAYS: Mapping[str, float] = {"G": 1.0, "X": -1.0, "C": -100.0}
LETTERS = ".#SGXC"

CORNER = "...G\n.#.X\nS..."
"""Four by three with one wall (Russell and Norvig 2020, sec. 17.1)."""
CLIFF = "............\n............\n............\nSCCCCCCCCCCG"
"""A short way along a cliff and a long way round (Sutton and Barto 2018, ex. 6.6)."""


@dataclass(frozen=True)
class GridWorld:
    """A map, what a step and each letter pay, and how often the ground slips to either side.

    `pays` is what stepping on a letter pays beyond `living`, the reward of every step. With probability `slip` a step
    goes to one of the two sides instead, half to each. Rows are parted by line breaks or by "/".
    """

    drawing: str
    living: float = -0.04
    slip: float = 0.2
    discount: float = 1.0
    pays: Mapping[str, float] = field(default_factory=lambda: dict(PAYS))

    def __post_init__(self) -> None:
        widths = {len(row) for row in self.rows}
        if len(widths) != 1 or 0 in widths:
            raise ValueError(f"all rows of a map must be equally long; got lengths {[len(row) for row in self.rows]}")
        unknown = sorted(set("".join(self.rows)) - set(LETTERS))
        if unknown:
            raise ValueError(f"a map is drawn with the letters {' '.join(LETTERS)}; got {unknown[0]!r}")
        if not any(letter in ".S" for row in self.rows for letter in row):
            raise ValueError("a map needs a cell to stand on: '.' or 'S'; got none")
        if "C" in self.drawing and "S" not in self.drawing:
            raise ValueError("who falls from a cliff goes back to a start: a map with 'C' needs an 'S'")
        missing = sorted({letter for row in self.rows for letter in row if letter in "GXC"} - set(self.pays))
        if missing:
            raise ValueError(f"pays must say what each letter pays; {missing[0]!r} is missing")
        if not 0 <= self.slip <= 1:
            raise ValueError(f"slip is a probability; got slip={self.slip}")
        require_discount(self.discount)

    @property
    def rows(self) -> list[str]:
        return self.drawing.strip().replace("/", "\n").split("\n")

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows), len(self.rows[0])

    @cached_property
    def cells(self) -> list[tuple[int, int]]:
        """Row and column of every state, in reading order; walls and cliffs are no states."""
        return [(i, j) for i, row in enumerate(self.rows) for j, letter in enumerate(row) if letter not in "#C"]

    def letter(self, row: int, column: int) -> str:
        return self.rows[row][column]

    def state(self, row: int, column: int) -> int:
        """The number of a cell that is a state."""
        if (row, column) not in self.cells:
            raise ValueError(f"row {row}, column {column} is no cell where one can be")
        return self.cells.index((row, column))

    @cached_property
    def start(self) -> Float[Tensor, " states"]:
        """Alike over the cells marked S, or over all that are no end where none is marked."""
        letters = [self.letter(*cell) for cell in self.cells]
        wanted = "S" if "S" in letters else "."
        law = torch.tensor([letter == wanted for letter in letters], dtype=torch.float64)
        return law / law.sum()

    @cached_property
    def process(self) -> MarkovDecisionProcess:
        """The decision process of the map."""
        number = {cell: state for state, cell in enumerate(self.cells)}
        entries: list[tuple[int, int, int]] = []
        chances: list[float] = []
        rewards: list[float] = []
        for (row, column), state in number.items():
            for action in range(4):
                for turn, share in ((0, 1 - self.slip), (1, self.slip / 2), (3, self.slip / 2)):
                    down, across = OFFSETS[(action + turn) % 4]
                    letter, landing = self._landing(number, (row, column), (row + down, column + across))
                    for following, likely in landing.items():
                        entries.append((state, action, following))
                        chances.append(share * likely)
                        rewards.append(self.living + self.pays.get(letter, 0.0))
        place = torch.tensor(entries).unbind(1)
        chance, pay = torch.tensor(chances, dtype=torch.float64), torch.tensor(rewards, dtype=torch.float64)
        empty = torch.zeros(len(number), 4, len(number), dtype=torch.float64)
        transition = empty.index_put(place, chance, accumulate=True)
        paid = empty.index_put(place, chance * pay, accumulate=True)  # a fall and a bump may end in the same cell
        terminal = torch.tensor([self.letter(*cell) in "GX" for cell in self.cells])
        reward = torch.where(transition > 0, paid / transition.clamp(min=1e-300), 0.0)
        allowed = torch.ones(len(number), 4, dtype=torch.bool)
        return MarkovDecisionProcess(transition, reward, self.discount, terminal, allowed)

    def with_cell(self, row: int, column: int, letter: str) -> "GridWorld":
        """The same world with another letter in one cell."""
        high, wide = self.shape
        if not (0 <= row < high and 0 <= column < wide):
            raise ValueError(f"the map has {high} rows and {wide} columns; got row {row}, column {column}")
        rows = self.rows
        rows[row] = rows[row][:column] + letter + rows[row][column + 1 :]
        return replace(self, drawing="\n".join(rows))

    def on_grid(self, values: Float[Tensor, "*batch states"]) -> Float[Tensor, "*batch high wide"]:
        """Numbers of the states at their places; NaN on walls and cliffs."""
        grid = torch.full((*values.shape[:-1], *self.shape), torch.nan, dtype=values.dtype, device=values.device)
        place = torch.tensor(self.cells)
        grid[..., place[:, 0], place[:, 1]] = values
        return grid

    def arrows(self, actions: Int[Tensor, " states"]) -> str:
        """The map with an arrow for the action of each state that is no end."""
        drawn = [list(row) for row in self.rows]
        for (row, column), action in zip(self.cells, actions.tolist(), strict=True):
            if self.letter(row, column) in ".S":
                drawn[row][column] = ARROWS[action]
        return "\n".join("".join(row) for row in drawn)

    def _landing(
        self, number: Mapping[tuple[int, int], int], here: tuple[int, int], there: tuple[int, int]
    ) -> tuple[str, Mapping[int, float]]:
        """Which letter a step meets, and how likely it ends in which state."""
        high, wide = self.shape
        inside = 0 <= there[0] < high and 0 <= there[1] < wide
        letter = self.letter(*there) if inside else "#"
        if letter == "C":
            begins = [state for cell, state in number.items() if self.letter(*cell) == "S"]
            return letter, dict.fromkeys(begins, 1 / len(begins))
        return letter, {number[here if letter == "#" else there]: 1.0}
