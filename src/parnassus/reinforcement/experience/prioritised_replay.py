"""Prioritised experience replay: sample transitions by their errors (Schaul et al. 2016)."""

from collections.abc import Iterator, Mapping
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.reinforcement.experience.replay_buffer import ReplayBuffer, ReplaySample

MIN_ERROR = 1e-6
"""Added to errors, so that every transition keeps a positive probability."""


class PrioritisedReplayBuffer(ReplayBuffer):
    """Transitions sampled in proportion to a power of their error, with importance weights.

        P(i) = p_i / Σ_j p_j,   p_i = (|error_i| + tiny)^α,   w_i = (N P(i))^{−β} / max_j w_j

    With β = 1 the weights make the weighted mean unbiased; β grows from its initial value to 1 during training. New
    transitions receive the largest priority so far.

    >>> PrioritisedReplayBuffer(4, capacity=100, alpha=0.6).capacity
    100
    """

    def __init__(
        self,
        features: int,
        *,
        capacity: int,
        num_learners: int = 1,
        device: torch.device | str = "cpu",
        alpha: float = 0.6,
        initial_beta: float = 0.4,
    ) -> None:
        super().__init__(features, capacity=capacity, num_learners=num_learners, device=device)
        if alpha < 0 or not 0 <= initial_beta <= 1:
            raise ValueError(
                f"alpha must not be negative and initial_beta in [0, 1]; got alpha={alpha}, initial_beta={initial_beta}"
            )
        self.alpha, self.initial_beta = alpha, initial_beta
        self.priorities = torch.zeros(num_learners, capacity, dtype=torch.float64, device=device)
        self.largest = torch.ones(num_learners, dtype=torch.float64, device=device)

    def sample(self, batch_size: int, batches: int, *, progress: float = 1.0) -> Iterator[ReplaySample]:
        """Batches sampled one by one with the current priorities; `progress` is the completed fraction of training."""
        self._check_transitions()
        beta = self.initial_beta + (1 - self.initial_beta) * min(1.0, progress)
        for _ in range(batches):
            indices, probabilities = sample_proportionally(self.priorities[:, : len(self)], batch_size)
            weights = (len(self) * probabilities) ** -beta
            weights = (weights / weights.amax(1, keepdim=True)).float()
            yield ReplaySample(self._read(indices), weights, indices)

    def update_priorities(self, batch: ReplaySample, errors: Float[Tensor, "learners rows"]) -> None:
        """Set the priorities of a batch from its errors."""
        new = (errors.detach().double().abs() + MIN_ERROR) ** self.alpha
        self.priorities.scatter_(1, batch.indices, new)
        self.largest = torch.maximum(self.largest, new.amax(1))

    def state_dict(self) -> dict[str, object]:
        own = {"priorities": self.priorities[:, : len(self)].contiguous(), "largest": self.largest}
        return {**super().state_dict(), **own}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        super().load_state_dict(state)
        self.priorities[:, : len(self)] = cast("Tensor", state["priorities"]).to(self.priorities)
        self.largest = cast("Tensor", state["largest"]).to(self.largest)

    def _write(self, indices: Tensor, rows: Tensor) -> None:
        super()._write(indices, rows)
        self.priorities[:, indices] = self.largest[:, None].expand(-1, len(indices))


def sample_proportionally(
    priorities: Float[Tensor, "learners entries"], rows: int
) -> tuple[Int[Tensor, "learners rows"], Float[Tensor, "learners rows"]]:
    """Indices sampled with probabilities p_i / Σ_j p_j, and these probabilities (stratified sampling).

    The cumulative sums p_1, p_1 + p_2, … divide a line into segments; one uniform point in each of `rows` equal strata
    selects the segment it falls into.
    """
    sums = priorities.cumsum(1)
    total = sums[:, -1:]
    points = torch.arange(rows, device=sums.device) + torch.rand(len(sums), rows, dtype=sums.dtype, device=sums.device)
    indices = torch.searchsorted(sums, points * (total / rows), right=True).clamp(max=sums.shape[1] - 1)
    return indices, priorities.gather(1, indices) / total
