"""Checkpoints come back as they were, and damaged ones are refused in a sentence."""

from pathlib import Path

import pytest
import torch
from torch import nn

from parnassus.runs.errors import NotFiniteError, RunError
from parnassus.train.checkpoint import load_tree, require_finite, save_tree


def test_a_tree_comes_back_bit_for_bit(tmp_path: Path) -> None:
    weight = torch.randn(3, 4)
    optimizer = torch.optim.Adam([nn.Parameter(weight)], lr=1e-3)
    tree = {
        "position": (2, 17),
        "state": {0: {"step": torch.tensor(3.0), "x": weight}},
        "groups": [{"lr": 0.1, "n": None}],
    }
    save_tree(tmp_path / "c.safetensors", {**tree, "optimizer": optimizer.state_dict()})
    back = load_tree(tmp_path / "c.safetensors")
    assert isinstance(back, dict)
    assert back["position"] == (2, 17)
    assert list(back["state"]) == [0]
    assert torch.equal(back["state"][0]["x"], weight)
    assert back["groups"] == tree["groups"]
    optimizer.load_state_dict(back["optimizer"])


def test_tied_weights_are_saved_twice_and_load(tmp_path: Path) -> None:
    weight = torch.randn(5)
    save_tree(tmp_path / "c.safetensors", {"a": weight, "b": weight, "view": weight[1:]})
    back = load_tree(tmp_path / "c.safetensors")
    assert isinstance(back, dict)
    assert torch.equal(back["view"], weight[1:])


@pytest.mark.parametrize("cut", [0, 4, 60, -3])
def test_a_damaged_checkpoint_is_refused(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "c.safetensors"
    save_tree(path, {"a": torch.randn(100)})
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(RunError, match="damaged"):
        load_tree(path)


def test_what_is_not_a_tensor_or_plain_value_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="/kept/thing cannot be saved: object"):
        save_tree(tmp_path / "c.safetensors", {"kept": {"thing": object()}})


def test_a_number_that_is_not_finite_is_named() -> None:
    with pytest.raises(NotFiniteError, match=r"2 of 3 values in layer.weight"):
        require_finite({"fine": torch.ones(2), "layer.weight": torch.tensor([1.0, torch.nan, torch.inf])})
