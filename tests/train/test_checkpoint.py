"""Saving and loading checkpoints."""

from pathlib import Path

import pytest
import torch
from torch import nn

from parnassus.runs.errors import NotFiniteError, RunError
from parnassus.train.checkpoint import check_finite, load_tree, save_tree


def test_save_load_round_trip(tmp_path: Path) -> None:
    weight = torch.randn(3, 4)
    optimizer = torch.optim.Adam([nn.Parameter(weight)], lr=1e-3)
    tree = {
        "position": (2, 17),
        "state": {0: {"step": torch.tensor(3.0), "x": weight}},
        "groups": [{"lr": 0.1, "n": None}],
    }
    save_tree(tmp_path / "c.safetensors", {**tree, "optimizer": optimizer.state_dict()})
    loaded = load_tree(tmp_path / "c.safetensors")
    assert isinstance(loaded, dict)
    assert loaded["position"] == (2, 17)
    assert list(loaded["state"]) == [0]
    assert torch.equal(loaded["state"][0]["x"], weight)
    assert loaded["groups"] == tree["groups"]
    optimizer.load_state_dict(loaded["optimizer"])


def test_tied_weights_round_trip(tmp_path: Path) -> None:
    weight = torch.randn(5)
    save_tree(tmp_path / "c.safetensors", {"a": weight, "b": weight, "view": weight[1:]})
    loaded = load_tree(tmp_path / "c.safetensors")
    assert isinstance(loaded, dict)
    assert torch.equal(loaded["view"], weight[1:])


@pytest.mark.parametrize("end", [0, 4, 60, -3])
def test_damaged_checkpoint_raises_run_error(tmp_path: Path, end: int) -> None:
    path = tmp_path / "c.safetensors"
    save_tree(path, {"a": torch.randn(100)})
    path.write_bytes(path.read_bytes()[:end])
    with pytest.raises(RunError, match="damaged"):
        load_tree(path)


def test_unsupported_value_raises_run_error_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="/kept/thing cannot be saved: object"):
        save_tree(tmp_path / "c.safetensors", {"kept": {"thing": object()}})


def test_non_finite_values_raise_not_finite_error() -> None:
    with pytest.raises(NotFiniteError, match=r"2 of 3 values in layer.weight"):
        check_finite({"fine": torch.ones(2), "layer.weight": torch.tensor([1.0, torch.nan, torch.inf])})
