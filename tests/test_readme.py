"""What the README shows works as it stands there."""

import re
from pathlib import Path

import pytest

from parnassus.cli.verbs import VERBS

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_its_library_example_prints_what_it_says(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = [block for block in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if "import" in block]
    assert len(example.strip().splitlines()) <= 6
    exec(compile(example, "README.md", "exec"), {})
    promised = re.findall(r"print\(.*\)  # (.*)", example)
    assert promised
    assert capsys.readouterr().out.splitlines() == promised


def test_it_names_every_verb_and_shows_its_pictures() -> None:
    assert set(re.findall(r"^\| `parnassus (\w+)", README, re.MULTILINE)) == set(VERBS)
    pictures = re.findall(r"!\[.*\]\((.*)\)", README)
    assert len(pictures) == 2
    for picture in pictures:
        assert (Path(__file__).parents[1] / picture).stat().st_size > 10_000
