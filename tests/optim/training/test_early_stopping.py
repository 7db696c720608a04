"""Early stopping on given sequences of errors."""

import pytest
import torch
from torch import nn

from parnassus.optim import EarlyStopping

NAN = float("nan")


def run_early_stopping(
    errors: list[float], patience: int, *, min_delta: float = 0.0
) -> tuple[EarlyStopping, nn.Linear]:
    """Early stopping after these errors, and a model whose only weight was the index of each update."""
    model, stopping = nn.Linear(1, 1, bias=False), EarlyStopping(patience, min_delta=min_delta)
    for update, error in enumerate(errors):
        nn.init.constant_(model.weight, float(update))
        stopping.update(error, model)
    return stopping, model


@pytest.mark.parametrize(
    ("errors", "patience", "best", "stopped"),
    [
        ([3, 2, 1, 0], 1, 3, None),
        ([3, 2, 1, 4, 0], 1, 2, 3),  # improvements after the stop are ignored
        ([3, 2, 1, 4, 0], 2, 4, None),
        ([3, 1, 2, 2, 2, 2], 3, 1, 4),
        ([3, 3, 3], 2, 0, 2),  # an equal error is no improvement
        ([NAN, 2, NAN, NAN], 2, 1, 3),
        ([5, NAN, 4], 2, 2, None),
    ],
)
def test_best_weights_are_restored_and_patience_is_respected(
    errors: list[float], patience: int, best: int, stopped: int | None
) -> None:
    stopping, model = run_early_stopping([float(error) for error in errors], patience)
    assert stopping.best_update == best
    assert stopping.stopped_at == stopped
    assert stopping.is_stopped == (stopped is not None)
    stopping.restore(model)
    assert float(model.weight.detach()) == best


def test_improvement_below_min_delta_does_not_count() -> None:
    stopping, _ = run_early_stopping([1.0, 0.99, 0.98, 0.5], 2, min_delta=0.1)
    assert stopping.stopped_at == 2
    assert stopping.best_error == 1.0


def test_early_stopping_resumes_from_a_state_dict() -> None:
    errors = [3.0, 1.0, 2.0, 2.0, 2.0, 2.0]
    uninterrupted, _ = run_early_stopping(errors, 3)
    interrupted, model = run_early_stopping(errors[:3], 3)
    resumed = EarlyStopping(3)
    resumed.load_state_dict(interrupted.state_dict())
    for error in errors[3:]:
        resumed.update(error, model)
    assert resumed.stopped_at == uninterrupted.stopped_at
    nn.init.zeros_(model.weight)
    resumed.restore(model)
    assert float(model.weight.detach()) == 1.0


def test_stored_weights_are_a_copy() -> None:
    stopping, model = run_early_stopping([1.0], 2)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(100.0)
    stopping.restore(model)
    assert float(model.weight.detach()) == 0.0


def test_invalid_use_raises_value_error() -> None:
    with pytest.raises(ValueError, match="need patience ≥ 1 and min_delta ≥ 0; got patience=0"):
        EarlyStopping(0)
    with pytest.raises(ValueError, match=r"min_delta=-1"):
        EarlyStopping(1, min_delta=-1.0)
    stopping, model = run_early_stopping([NAN], 2)
    with pytest.raises(ValueError, match="no update has had a finite error yet; got 1 updates"):
        stopping.restore(model)
