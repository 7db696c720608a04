"""Memory that comes back most often to what it got most wrong (Schaul et al. 2016)."""

from collections.abc import Iterator, Mapping
from typing import cast

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.reinforcement.replay import Remembered, Replay

SURE = 1e-6
"""Added to errors, so that no transition is forgotten for good."""


class PrioritisedReplay(Replay):
    """Transitions drawn in proportion to a power of how wrong their action value was, and counted less for it.

        P(i) = p_i / Σ_j p_j,   p_i = (|error_i| + tiny)^α,   w_i = (N P(i))^{−β} / max_j w_j

    With β = 1 the weights undo the preference in the mean; it grows from `correction` to 1 with the progress of
    learning. What was never judged has the largest priority so far.
    """

    def __init__(
        self,
        features: int,
        *,
        capacity: int,
        learners: int = 1,
        device: torch.device | str = "cpu",
        preference: float = 0.6,
        correction: float = 0.4,
    ) -> None:
        super().__init__(features, capacity=capacity, learners=learners, device=device)
        if preference < 0 or not 0 <= correction <= 1:
            raise ValueError(f"α ≥ 0 and β in [0, 1] are needed; got α={preference}, β={correction}")
        self.preference, self.correction = preference, correction
        self.priorities = torch.zeros(learners, capacity, dtype=torch.float64, device=device)
        self.largest = torch.ones(learners, dtype=torch.float64, device=device)

    def draw(self, rows: int, batches: int, *, progress: float = 1.0) -> Iterator[Remembered]:
        """Batches one after the other, each by the priorities of that moment; `progress` says how far learning is."""
        self._demand_some()
        beta = self.correction + (1 - self.correction) * min(1.0, progress)
        for _ in range(batches):
            places, chances = drawn_in_proportion(self.priorities[:, : len(self)], rows)
            weights = (len(self) * chances) ** -beta
            weights = (weights / weights.amax(1, keepdim=True)).float()
            yield Remembered(self._read(places), weights, places)

    def learned(self, batch: Remembered, errors: Float[Tensor, "learners rows"]) -> None:
        """The errors of a batch become its priorities."""
        fresh = (errors.detach().double().abs() + SURE) ** self.preference
        self.priorities.scatter_(1, batch.places, fresh)
        self.largest = torch.maximum(self.largest, fresh.amax(1))

    def state_dict(self) -> dict[str, object]:
        kept = {"priorities": self.priorities[:, : len(self)].contiguous(), "largest": self.largest}
        return {**super().state_dict(), **kept}

    def load_state_dict(self, state: Mapping[str, object]) -> None:
        super().load_state_dict(state)
        self.priorities[:, : len(self)] = cast("Tensor", state["priorities"]).to(self.priorities)
        self.largest = cast("Tensor", state["largest"]).to(self.largest)

    def _write(self, places: Tensor, rows: Tensor) -> None:
        super()._write(places, rows)
        self.priorities[:, places] = self.largest[:, None].expand(-1, len(places))


def drawn_in_proportion(
    priorities: Float[Tensor, "learners places"], rows: int
) -> tuple[Int[Tensor, "learners rows"], Float[Tensor, "learners rows"]]:
    """Places drawn with chances p_i / Σ_j p_j, and these chances.

    The sums p_1, p_1 + p_2, … cut a line into pieces; one point falls into each of `rows` equal stretches of it, and
    says which piece it hit.
    """
    sums = priorities.cumsum(1)
    total = sums[:, -1:]
    points = torch.arange(rows, device=sums.device) + torch.rand(len(sums), rows, dtype=sums.dtype, device=sums.device)
    places = torch.searchsorted(sums, points * (total / rows), right=True).clamp(max=sums.shape[1] - 1)
    return places, priorities.gather(1, places) / total
