"""Checkpoints: a safetensors file, written atomically; loading it does not execute code."""

import json
from pathlib import Path
from zlib import crc32

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from parnassus.runs.durable import replace_durably
from parnassus.runs.errors import NotFiniteError, RunError


def save_tree(path: Path, tree: object) -> None:
    """Write nested dicts and lists of tensors and plain values; replaces `path` atomically."""
    tensors: dict[str, Tensor] = {}
    plain = _split(tree, "", tensors)
    with_name = path.with_name(f".{path.name}.new")
    save_file(tensors, with_name, metadata={"tree": json.dumps(plain)})
    replace_durably(with_name, path)


def load_tree(path: Path) -> object:
    """Read a file written by `save_tree`; tensors are on the CPU."""
    try:
        with safe_open(path, framework="pt") as file:
            plain = json.loads(file.metadata()["tree"])
            return _join(plain, {key: file.get_tensor(key) for key in file.keys()})  # noqa: SIM118 - not a dict
    except (SafetensorError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise RunError(f"{path} is not a checkpoint of parnassus, or is damaged ({error})") from None


def save_weights(path: Path, tensors: dict[str, Tensor]) -> None:
    """Write the tensors of a model under their names, with a checksum; any safetensors reader can read the file."""
    new = path.with_name(f".{path.name}.new")
    copies = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    save_file(copies, new, metadata={"crc32": str(_checksum(copies))})
    replace_durably(new, path)


def load_weights(path: Path) -> dict[str, Tensor]:
    """Read a file written by `save_weights` to the CPU; raises a RunError if its checksum does not match."""
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118 - not a dict
            written = (file.metadata() or {}).get("crc32")
    except (SafetensorError, RuntimeError, ValueError) as error:
        raise RunError(f"{path} is damaged: {str(error).splitlines()[0]}") from None
    if written is not None and written != str(_checksum(tensors)):
        raise RunError(f"{path} is damaged: its checksum does not match")
    return tensors


def _checksum(tensors: dict[str, Tensor]) -> int:
    total = 0
    for name in sorted(tensors):
        total = crc32(name.encode(), total)
        total = crc32(tensors[name].contiguous().reshape(-1).view(torch.uint8).numpy().data, total)
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
