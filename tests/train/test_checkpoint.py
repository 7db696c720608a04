"""Saving and loading checkpoints."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

from parnassus.runs.errors import NotFiniteError, RunError
from parnassus.train.checkpoint import check_finite, load_tree, load_weights, save_tree, save_weights


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


@pytest.mark.parametrize("kind", ["tree", "weights"])
def test_every_changed_byte_is_noticed(tmp_path: Path, kind: str) -> None:
    """Changing a byte of the header or of the data raises a RunError or changes nothing."""
    path, weight = tmp_path / "c.safetensors", torch.arange(12, dtype=torch.float32).view(3, 4)
    if kind == "tree":
        save_tree(path, {"position": (2, 17), "a": weight})
    else:
        save_weights(path, {"a": weight})
    content, noticed = path.read_bytes(), 0
    for index in range(8, len(content)):
        path.write_bytes(content[:index] + bytes([content[index] ^ 2]) + content[index + 1 :])
        try:
            loaded = load_tree(path) if kind == "tree" else load_weights(path)
        except RunError:
            noticed += 1
        else:
            assert isinstance(loaded, dict)
            assert torch.equal(loaded["a"], weight)
            assert loaded["a"].dtype == weight.dtype
            assert loaded.get("position") in ((2, 17), None)
    assert noticed >= 0.9 * len(content)


def test_checkpoint_without_checksum_raises_run_error(tmp_path: Path) -> None:
    save_file({"a": torch.ones(1)}, tmp_path / "c.safetensors", metadata={"tree": "{}"})
    with pytest.raises(RunError, match="no checksum; start the run again"):
        load_tree(tmp_path / "c.safetensors")
    assert load_weights(tmp_path / "c.safetensors")["a"].item() == 1


def test_unsupported_value_raises_run_error_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="/kept/thing cannot be saved: object"):
        save_tree(tmp_path / "c.safetensors", {"kept": {"thing": object()}})


def test_non_finite_values_raise_not_finite_error() -> None:
    with pytest.raises(NotFiniteError, match=r"2 of 3 values in layer.weight"):
        check_finite({"fine": torch.ones(2), "layer.weight": torch.tensor([1.0, torch.nan, torch.inf])})
