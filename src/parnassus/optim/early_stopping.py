"""Early stopping: end training when held-out error no longer falls, and take the best weights back (book sec. 2.2)."""

from math import inf, isnan
from typing import cast

from torch import Tensor, nn


class EarlyStopping:
    """Watches the validation error of a model over epochs and keeps its best weights (book sec. 2.2, fig. 2.3).

        stopping = EarlyStopping(patience=10)
        for epoch in range(epochs):
            ...                                             # train
            stopping.update(error_on_validation, model)
            if stopping.stop:
                break
        stopping.restore(model)

    It stops once the best error is `patience` updates old; an error counts as better if it is lower by more than
    `margin`. Updates after that are still heard: whoever trains on can see what stopping would have saved.
    """

    def __init__(self, patience: int, *, margin: float = 0.0) -> None:
        if patience < 1 or not margin >= 0:
            raise ValueError(f"need patience ≥ 1 and margin ≥ 0; got patience={patience}, margin={margin}")
        self.patience, self.margin = patience, margin
        self.updates = 0
        self.best_error = inf
        self.best_update = -1  # updates count from 0, as epochs do
        self.stopped_at: int | None = None
        self._weights: dict[str, Tensor] = {}

    @property
    def stop(self) -> bool:
        """Whether the patience has run out."""
        return self.stopped_at is not None

    def update(self, error: float, model: nn.Module) -> bool:
        """Hear the validation error after an epoch; True, and the weights are kept, if it is the best so far.

        NaN is never better. Once stopped, nothing is kept any more.
        """
        better = not self.stop and not isnan(error) and error < self.best_error - self.margin
        if better:
            self.best_error, self.best_update = error, self.updates
            self._weights = {name: value.detach().clone() for name, value in model.state_dict().items()}
        elif not self.stop and self.updates - self.best_update >= self.patience:
            self.stopped_at = self.updates
        self.updates += 1
        return better

    def restore(self, model: nn.Module) -> None:
        """Give the model the weights of its best update."""
        if not self._weights:
            raise ValueError(f"no update has had a finite error yet; got {self.updates} updates")
        model.load_state_dict(self._weights)

    def state_dict(self) -> dict[str, object]:
        """All that a resumed training needs to go on as if nothing had happened."""
        return {
            "updates": self.updates,
            "best_error": self.best_error,
            "best_update": self.best_update,
            "stopped_at": self.stopped_at,
            "weights": dict(self._weights),
        }

    def load_state_dict(self, state: dict[str, object]) -> None:
        self.updates = cast("int", state["updates"])
        self.best_error = cast("float", state["best_error"])
        self.best_update = cast("int", state["best_update"])
        self.stopped_at = cast("int | None", state["stopped_at"])
        self._weights = cast("dict[str, Tensor]", state["weights"])
