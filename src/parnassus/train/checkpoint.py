"""Checkpoints and weights: safetensors files with a checksum, written atomically; loading them executes no code."""

import json
from pathlib import Path
from zlib import crc32

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from parnassus.runs.durable import replace_durably, temporary_file
from parnassus.runs.errors import NotFiniteError, RunError


def save_tree(path: Path, tree: object) -> None:
    """Write nested dicts and lists of tensors and plain values; replaces `path` atomically."""
    tensors: dict[str, Tensor] = {}
    plain = _split(tree, "", tensors)
    _write(path, tensors, json.dumps(plain))


def load_tree(path: Path) -> object:
    """Read a file written by `save_tree`; tensors are on the CPU."""
    tensors, tree, verified = _read(path)
    if not verified:
        raise RunError(
            f"{path} is damaged or was written by an earlier version: it has no checksum; start the run again"
        )
    return _join(json.loads(tree), tensors)


def save_weights(path: Path, tensors: dict[str, Tensor]) -> None:
    """Write the tensors of a model under their names; any safetensors reader can read the file."""
    _write(path, {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()})


def load_weights(path: Path) -> dict[str, Tensor]:
    """Read a file written by `save_weights` to the CPU; other programs write files without a checksum."""
    return _read(path)[0]


def _write(path: Path, tensors: dict[str, Tensor], tree: str = "") -> None:
    new = temporary_file(path)
    metadata = {"checksum": str(_checksum(tensors, tree))}
    save_file(tensors, new, metadata=metadata | ({"tree": tree} if tree else {}))
    replace_durably(new, path)


def _read(path: Path) -> tuple[dict[str, Tensor], str, bool]:
    """The tensors, the tree, and whether there is a checksum; raises a RunError if it does not match."""
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 - not a dict
            about = file.metadata() or {}
    except (SafetensorError, RuntimeError, ValueError, TypeError) as error:
        raise RunError(f"{path} is damaged: {str(error).splitlines()[0]}") from None
    tree, checksum = about.get("tree", ""), about.get("checksum")
    if checksum is not None and checksum != str(_checksum(tensors, tree)):
        raise RunError(f"{path} is damaged: its checksum does not match")
    return tensors, tree, checksum is not None


def _checksum(tensors: dict[str, Tensor], tree: str) -> int:
    """The CRC-32 of names, types, shapes and values of the tensors, and of the tree."""
    total = crc32(tree.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        total = crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), total)
        total = crc32(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data, total)
    return total


def check_finite(tensors: dict[str, Tensor]) -> None:
    """Raise a NotFiniteError with the name of the first tensor that has NaN or infinite values."""
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            bad = int((~torch.isfinite(tensor)).sum())
            raise NotFiniteError(f"{bad} of {tensor.numel()} values in {name} are not finite")


def _split(tree: object, path: str, tensors: dict[str, Tensor]) -> object:
    """The tree as JSON; its tensors are moved to `tensors` under their paths."""
    if isinstance(tree, Tensor):
        tensors[path] = tree.detach().cpu().clone(memory_format=torch.contiguous_format)
        return {"tensor": path}
    if isinstance(tree, dict):  # as pairs, so that keys that are numbers remain numbers
        return {"dict": [[key, _split(value, f"{path}/{key}", tensors)] for key, value in tree.items()]}
    if isinstance(tree, list | tuple):
        kind = "tuple" if isinstance(tree, tuple) else "list"
        return {kind: [_split(value, f"{path}/{index}", tensors) for index, value in enumerate(tree)]}
    if tree is None or isinstance(tree, str | int | float | bool):
        return tree
    raise RunError(f"{path} cannot be saved: {type(tree).__name__} is neither a tensor nor a plain value")


def _join(plain: object, tensors: dict[str, Tensor]) -> object:
    match plain:
        case {"tensor": str(path)}:
            return tensors[path]
        case {"dict": list(pairs)}:
            return {key: _join(value, tensors) for key, value in pairs}
        case {"list": list(values)}:
            return [_join(value, tensors) for value in values]
        case {"tuple": list(values)}:
            return tuple(_join(value, tensors) for value in values)
        case _:
            return plain
