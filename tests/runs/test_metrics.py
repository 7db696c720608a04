"""Metrics are read back bit-identical, can be truncated, and are written to TensorBoard."""

from pathlib import Path

import pytest

from parnassus.runs.errors import RunError
from parnassus.runs.metrics import Metrics, read_metrics


def test_values_are_bit_identical_after_truncation(tmp_path: Path) -> None:
    metrics = Metrics(tmp_path)
    metrics.append(0, {"loss": 0.1 + 0.2, "rate": 1e-300})
    mark = metrics.sync()
    metrics.append(1, {"loss": 5.0})
    metrics.close()
    truncated = Metrics(tmp_path, mark)
    truncated.append(1, {"loss": 1 / 3})
    truncated.close()
    assert read_metrics(tmp_path / "metrics.csv") == {"loss": ([0, 1], [0.1 + 0.2, 1 / 3]), "rate": ([0], [1e-300])}


def damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    path.unlink()
    if how != "missing":
        path.write_bytes(content[:-3] if how == "shorter" else content.replace(b"1.5", b"1.6"))


@pytest.mark.parametrize(
    ("how", "reason"), [("missing", "missing"), ("shorter", "shorter than"), ("changed", "different from what")]
)
def test_file_that_does_not_match_the_checkpoint_raises(tmp_path: Path, how: str, reason: str) -> None:
    metrics = Metrics(tmp_path)
    metrics.append(0, {"loss": 1.5})
    mark = metrics.sync()
    metrics.close()
    damage(metrics.path, how)
    before = metrics.path.read_bytes() if metrics.path.exists() else None
    with pytest.raises(RunError, match=rf"metrics.csv is .*{reason}.*start the run again"):
        Metrics(tmp_path, mark)
    assert before == (metrics.path.read_bytes() if metrics.path.exists() else None)


def test_incomplete_last_line_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text("step,metric,value\n0,loss,1.5\n1,lo")
    assert read_metrics(path) == {"loss": ([0], [1.5])}


def test_damaged_line_raises_with_its_number(tmp_path: Path) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text("step,metric,value\n0,loss,1.5\nnonsense\n")
    with pytest.raises(RunError, match="line 3"):
        read_metrics(path)


def test_tensorboard_has_the_same_steps_and_tags(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

    metrics = Metrics(tmp_path)
    metrics.append(0, {"loss": 2.0})
    metrics.flush()
    metrics.append(7, {"loss": 0.5})
    metrics.close()
    (path,) = tmp_path.glob("events.out.tfevents.*")
    logged = [(event.step, value.tag) for event in EventFileLoader(str(path)).Load() for value in event.summary.value]
    assert logged == [(0, "loss"), (7, "loss")]


@pytest.mark.parametrize("name", ["loss, mean", "loss\nmean"])
def test_invalid_metric_names_raise_value_error(tmp_path: Path, name: str) -> None:
    metrics = Metrics(tmp_path)
    with pytest.raises(ValueError, match="must not contain a comma or a line break"):
        metrics.append(0, {name: 1.0})
    metrics.close()
    assert read_metrics(metrics.path) == {}
