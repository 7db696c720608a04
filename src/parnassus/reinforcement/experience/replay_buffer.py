"""Experience replay: a ring buffer of transitions (Lin 1992; Mnih et al. 2015)."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.reinforcement.experience.transitions import Transitions

ROWS_AT_ONCE = 1024
"""Maximum number of rows sampled at once, for which a network's outputs fit into the processor's cache."""


class ReplaySample(NamedTuple):
    """Sampled transitions, their weights in the loss, and their indices in the buffer.

    >>> ones = torch.ones(1, 32)
    >>> states = torch.zeros(1, 32, 4)
    >>> transitions = Transitions(states, ones.long(), ones, 0.99 * ones, states, terminated=ones.bool())
    >>> ReplaySample(transitions, weights=None, indices=ones.long()).indices.shape
    torch.Size([1, 32])
    """

    transitions: Transitions
    weights: Float[Tensor, "learners rows"] | None
    indices: Int[Tensor, "learners rows"]

    def batches(self, batch_size: int) -> "Iterator[ReplaySample]":
        """Split into batches."""
        indices = self.indices.split(batch_size, 1)
        weights = [None] * len(indices) if self.weights is None else self.weights.split(batch_size, 1)
        parts = zip(*(part.split(batch_size, 1) for part in self.transitions), strict=True)
        for own, weight, index in zip(parts, weights, indices, strict=True):
            yield ReplaySample(Transitions(*own), weight, index)


class ReplayBuffer:
    """The last `capacity` transitions of every learner, on the device.

    A transition is one row of a table, (observation, next observation, action, reward, discount, terminated), so that a
    batch is gathered by one operation.

    >>> ReplayBuffer(4, capacity=100).capacity
    100
    """

    def __init__(
        self, features: int, *, capacity: int, num_learners: int = 1, device: torch.device | str = "cpu"
    ) -> None:
        if capacity < 1 or num_learners < 1:
            raise ValueError(
                f"capacity and num_learners must be at least 1; got capacity={capacity}, num_learners={num_learners}"
            )
        self.features, self.capacity, self.num_learners = features, capacity, num_learners
        self.table = torch.zeros(num_learners, capacity, 2 * features + 4, device=device)
        self.written = 0

    def __len__(self) -> int:
        """Number of stored transitions of each learner."""
        return min(self.written, self.capacity)

    def add(self, new: Transitions) -> None:
        """Store transitions; the oldest are overwritten."""
        rows = torch.cat(
            [
                new.observations,
                new.next_observations,
                torch.stack([new.actions.float(), new.rewards, new.discounts, new.terminated.float()], -1),
            ],
            -1,
        )[:, -self.capacity :]
        self.written += new.rewards.shape[1] - rows.shape[1]  # skips those that would be overwritten immediately
        self._write(torch.arange(self.written, self.written + rows.shape[1], device=rows.device) % self.capacity, rows)
        self.written += rows.shape[1]

    def sample(self, batch_size: int, batches: int, *, progress: float = 1.0) -> Iterator[ReplaySample]:
        """Sample this many batches uniformly with replacement, several at a time; `progress` is not used here."""
        del progress
        self._check_transitions()
        indices = torch.randint(len(self), (self.num_learners, batches * batch_size), device=self.table.device)
        for some in indices.split(batch_size * max(1, ROWS_AT_ONCE // batch_size), 1):
            yield ReplaySample(self._read(some), None, some)

    def update_priorities(self, batch: ReplaySample, errors: Float[Tensor, "learners rows"]) -> None:
        """Report the errors of a batch; uniform replay ignores them."""

    def state_dict(self) -> dict[str, object]:
        return {"table": self.table[:, : len(self)].contiguous(), "written": self.written}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        table, self.written = cast("Tensor", state["table"]), cast("int", state["written"])
        if table.shape[1] != len(self) or table.shape[::2] != self.table.shape[::2]:
            raise ValueError(
                f"the saved replay buffer must fit this one; got shape {list(table.shape)} for {list(self.table.shape)}"
            )
        self.table[:, : len(self)] = table.to(self.table)

    def _write(self, indices: Tensor, rows: Tensor) -> None:
        self.table[:, indices] = rows

    def _read(self, indices: Int[Tensor, "learners rows"]) -> Transitions:
        if self.num_learners == 1:  # a third of the time
            rows = self.table[0].index_select(0, indices[0]).unsqueeze(0)
        else:
            rows = self.table[torch.arange(self.num_learners, device=indices.device)[:, None], indices]
        observations, next_observations, rest = rows.split([self.features, self.features, 4], -1)
        action, reward, discount, terminated = rest.unbind(-1)
        return Transitions(observations, action.long(), reward, discount, next_observations, terminated > 0)

    def _check_transitions(self) -> None:
        if not self.written:
            raise ValueError("the replay buffer is empty: add transitions before sampling")
