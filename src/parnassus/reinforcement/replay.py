"""Remembering transitions, to learn from each of them more than once (Lin 1992; Mnih et al. 2015)."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.reinforcement.transitions import Transitions

TOGETHER = 1024
"""Rows that are drawn together where they can be: a network's answers about them still lie near the processor."""


class Remembered(NamedTuple):
    """What was drawn from memory: transitions, how much each counts, and where they lie."""

    transitions: Transitions
    weights: Float[Tensor, "learners rows"] | None
    places: Int[Tensor, "learners rows"]

    def batches(self, rows: int) -> "Iterator[Remembered]":
        """So many rows at a time."""
        places = self.places.split(rows, 1)
        weights = [None] * len(places) if self.weights is None else self.weights.split(rows, 1)
        parts = zip(*(part.split(rows, 1) for part in self.transitions), strict=True)
        for own, weight, place in zip(parts, weights, places, strict=True):
            yield Remembered(Transitions(*own), weight, place)


class Replay:
    """The last `capacity` transitions of every learner, on the device; the oldest give way.

    A transition is one row of a table, (observation, led_to, action, rewards, discount, terminated), so that a batch
    is gathered at once.
    """

    def __init__(self, features: int, *, capacity: int, learners: int = 1, device: torch.device | str = "cpu") -> None:
        if capacity < 1 or learners < 1:
            raise ValueError(f"memory needs room and learners; got capacity={capacity}, learners={learners}")
        self.features, self.capacity, self.learners = features, capacity, learners
        self.table = torch.zeros(learners, capacity, 2 * features + 4, device=device)
        self.written = 0

    def __len__(self) -> int:
        """Transitions of each learner that are remembered."""
        return min(self.written, self.capacity)

    def add(self, new: Transitions) -> None:
        """Remember these."""
        rows = torch.cat(
            [
                new.observations,
                new.led_to,
                torch.stack([new.actions.float(), new.rewards, new.discounts, new.terminated.float()], -1),
            ],
            -1,
        )[:, -self.capacity :]
        self.written += new.rewards.shape[1] - rows.shape[1]  # those that would give way at once
        self._write(torch.arange(self.written, self.written + rows.shape[1], device=rows.device) % self.capacity, rows)
        self.written += rows.shape[1]

    def draw(self, rows: int, batches: int, *, progress: float = 1.0) -> Iterator[Remembered]:
        """So many batches, all transitions alike, with replacement; how far learning is does not matter.

        Nothing depends on what is learned on the way, so several batches come together, and can be judged together.
        """
        del progress
        self._demand_some()
        places = torch.randint(len(self), (self.learners, batches * rows), device=self.table.device)
        for some in places.split(rows * max(1, TOGETHER // rows), 1):
            yield Remembered(self._read(some), None, some)

    def learned(self, batch: Remembered, errors: Float[Tensor, "learners rows"]) -> None:
        """What was learned about a batch; here all transitions stay alike."""

    def state_dict(self) -> dict[str, object]:
        return {"table": self.table[:, : len(self)].contiguous(), "written": self.written}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        table, self.written = cast("Tensor", state["table"]), cast("int", state["written"])
        if table.shape[1] != len(self) or table.shape[::2] != self.table.shape[::2]:
            raise ValueError(f"memory of another form: {list(table.shape)}, where {list(self.table.shape)} has room")
        self.table[:, : len(self)] = table.to(self.table)

    def _write(self, places: Tensor, rows: Tensor) -> None:
        self.table[:, places] = rows

    def _read(self, places: Int[Tensor, "learners rows"]) -> Transitions:
        if self.learners == 1:  # a third of the time
            rows = self.table[0].index_select(0, places[0]).unsqueeze(0)
        else:
            rows = self.table[torch.arange(self.learners, device=places.device)[:, None], places]
        seen, led_to, rest = rows.split([self.features, self.features, 4], -1)
        action, reward, discount, terminated = rest.unbind(-1)
        return Transitions(seen, action.long(), reward, discount, led_to, terminated > 0)

    def _demand_some(self) -> None:
        if not self.written:
            raise ValueError("nothing is remembered yet: add transitions before drawing from them")
