"""Random changes of files: of their bytes, of the JSON they contain, and of what is found at their path."""

import json
import shutil
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from random import Random
from typing import Any

ODD_VALUES: list[object] = [None, True, 0, -1, 1.5, 10**30, 1e308, "", "x", "nan", [], {}, [[]], [None], {"a": 1}]
ODD_VALUES += [[1, "x"], float("nan"), float("inf"), "../..", "\0", "\ud800", "x" * 10_000, "-1", ["a"] * 3]
ODD_BYTES = [b"", b"\0", b"\xff\xfe", b"{", b"[]", b"{}", b"null", b"5", b'"x"', b"\n", b"[" * 5_000, b'{"a":' * 5_000]


def mutate_bytes(random: Random, content: bytes) -> bytes:
    """The content after one to three changes: flipped, removed, repeated, inserted or exchanged bytes."""
    if random.random() < 0.15:
        return random.choice(ODD_BYTES)
    found = bytearray(content)
    for _ in range(random.choice((1, 1, 2, 3))):
        at = random.randrange(len(found) + 1)
        size = random.choice((1, 1, 4, 64, 1024))
        match random.randrange(6):
            case 0 if at < len(found):
                found[at] ^= 1 << random.randrange(8)
            case 1:
                del found[at : at + size]
            case 2:
                found[at:at] = found[at : at + size]
            case 3:
                found[at:at] = random.randbytes(size)
            case 4:
                del found[at:]
            case _:
                found[at : at + size] = bytes(len(found[at : at + size]))
    return bytes(found)


def mutate_json(random: Random, content: bytes) -> bytes:
    """The JSON with one value exchanged, one key removed, renamed or added, or the whole wrapped."""
    try:
        value = json.loads(content)
    except ValueError:
        return mutate_bytes(random, content)
    places = list(_places(value))
    match random.randrange(5):
        case 0 | 1 if places:
            parent, key = random.choice(places)
            parent[key] = random.choice(ODD_VALUES)
        case 2 if places:
            parent, key = random.choice(places)
            del parent[key]
        case 3 if isinstance(value, dict):
            parent = random.choice([value, *(each for each in value.values() if isinstance(each, dict))])
            parent[random.choice(["surprise", "", "self", "__class__", "x y"])] = random.choice(ODD_VALUES)
        case 4 if len(places) > 1:
            (one, first), (other, second) = random.sample(places, 2)
            one[first] = deepcopy(other[second])
        case _:
            value = random.choice(ODD_VALUES)
    return json.dumps(value).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """All containers in the value, with the keys and indices of their members."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from _places(value[key])


Replace = Callable[[Random, Path, Path], None]


def remove(_random: Random, path: Path, _outside: Path) -> None:
    path.unlink()


def replace_by_folder(_random: Random, path: Path, _outside: Path) -> None:
    path.unlink()
    path.mkdir()


def replace_by_link(random: Random, path: Path, outside: Path) -> None:
    """A link to another file, to itself, to nothing, or to a folder; never to a device, which may be written to."""
    path.unlink()
    targets = [outside / "canary.txt", outside / "canary.json", outside, path]
    path.symlink_to(random.choice([*targets, path.with_name("missing")]))


def replace_by_other(random: Random, path: Path, _outside: Path) -> None:
    """The content of another file of the same folder."""
    others = sorted(each for each in path.parent.iterdir() if each.is_file() and each != path)
    shutil.copyfile(random.choice(others), path)


def mutate_file(random: Random, path: Path, outside: Path) -> str:
    """Change the file in one way, without following links; returns what was done."""
    if random.random() < 0.25:
        replace: Replace = random.choice([remove, replace_by_folder, replace_by_link, replace_by_other])
        replace(random, path, outside)
        return f"{path.name}: {replace.__name__}"
    is_json = path.suffix == ".json" and random.random() < 0.7
    path.write_bytes((mutate_json if is_json else mutate_bytes)(random, path.read_bytes()))
    return f"{path.name}: {'JSON' if is_json else 'bytes'} changed"
