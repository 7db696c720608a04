"""Early stopping: end training when the validation error stops improving, restore the best weights (book sec. 2.2)."""

from math import inf, isnan
from typing import cast

from torch import Tensor, nn


class EarlyStopping:
    """Monitors the validation error over epochs and keeps the best weights (book sec. 2.2, fig. 2.3).

        stopping = EarlyStopping(patience=10)
        for epoch in range(epochs):
            ...                                             # train
            stopping.update(validation_error, model)
            if stopping.is_stopped:
                break
        stopping.restore(model)

    It stops after `patience` updates without an improvement of more than `min_delta`. Later updates are accepted but
    change nothing, so that training can be continued for comparison.

    >>> stopping, model = EarlyStopping(patience=2), nn.Linear(1, 1)
    >>> [stopping.update(error, model) for error in (0.5, 0.4, 0.6, 0.7)]
    [True, True, False, False]
    >>> stopping.is_stopped
    True
    """

    def __init__(self, patience: int, *, min_delta: float = 0.0) -> None:
        if patience < 1 or not min_delta >= 0:
            raise ValueError(f"need patience ≥ 1 and min_delta ≥ 0; got patience={patience}, min_delta={min_delta}")
        self.patience, self.min_delta = patience, min_delta
        self.updates = 0
        self.best_error = inf
        self.best_update = -1  # updates are numbered from 0, like epochs
        self.stopped_at: int | None = None
        self._weights: dict[str, Tensor] = {}

    @property
    def is_stopped(self) -> bool:
        """Whether there was no improvement for `patience` updates."""
        return self.stopped_at is not None

    def update(self, error: float, model: nn.Module) -> bool:
        """Record the validation error of an epoch; if it is the best so far, keep the weights and return True.

        NaN is never an improvement. Once stopped, no weights are kept.
        """
        is_best = not self.is_stopped and not isnan(error) and error < self.best_error - self.min_delta
        if is_best:
            self.best_error, self.best_update = error, self.updates
            self._weights = {name: value.detach().clone() for name, value in model.state_dict().items()}
        elif not self.is_stopped and self.updates - self.best_update >= self.patience:
            self.stopped_at = self.updates
        self.updates += 1
        return is_best

    def restore(self, model: nn.Module) -> None:
        """Load the weights of the best update into the model."""
        if not self._weights:
            raise ValueError(f"no update has had a finite error yet; got {self.updates} updates")
        model.load_state_dict(self._weights)

    def state_dict(self) -> dict[str, object]:
        """The complete state, to resume training."""
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
