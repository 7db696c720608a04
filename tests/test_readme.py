"""The examples and names of the README and the architecture document."""

import importlib.util
import re
from pathlib import Path

import pytest

from parnassus.atlas.index import Atlas
from parnassus.cli.verbs import VERBS

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_library_example_prints_the_documented_output(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = [block for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "import" in block]
    assert len(example.strip().splitlines()) <= 6
    exec(compile(example, "README.md", "exec"), {})
    expected = re.findall(r"print\(.*\)  # (.*)", example)
    assert expected
    assert capsys.readouterr().out.splitlines() == expected


def test_readme_lists_every_verb_and_has_screenshots() -> None:
    assert set(re.findall(r"^\| `parnassus (\w+)", README, re.MULTILINE)) == set(VERBS) | set(Atlas().commands)
    pictures = re.findall(r"!\[.*\]\((.*)\)", README)
    assert len(pictures) == 2
    for picture in pictures:
        assert (ROOT / picture).stat().st_size > 10_000


def test_numbers_of_the_readme_are_those_of_the_atlas() -> None:
    """On failure, run `make readme`."""
    spec = importlib.util.spec_from_file_location("readme_numbers", ROOT / "docs" / "readme_numbers.py")
    assert spec is not None
    assert spec.loader is not None
    program = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(program)
    atlas = Atlas()
    assert program.count_of_items(atlas) in README.splitlines()
    assert program.update(README, atlas).splitlines() == README.splitlines()
    for room, examples in re.findall(r"^\| \[`(\w+)`\].*?\| \d+: (.*?) \|", README, re.MULTILINE):
        assert {atlas.experiments[name].room for name in re.findall(r"`(\w+)`", examples)} == {room}


def test_files_and_functions_of_the_architecture_document_exist() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    references = re.findall(r"`((?:\w+/)*\w+\.py)(?:: ([\w.]+))?`", text)
    assert len(references) >= 15
    for path, name in references:
        if path.split("/")[0] in ("ROOM", "tests", "hatch_build.py") or "/" not in path:
            continue
        source = (ROOT / "src" / "parnassus" / path).read_text(encoding="utf-8")
        for part in name.split("."):
            assert re.search(rf"^\s*(?:def|class) {part}\b" if part else "", source, re.MULTILINE), (path, name)
