"""Translation of text files with the translate experiment."""

from collections.abc import Callable
from pathlib import Path

import pytest

from parnassus.attention.experiments import translate
from parnassus.attention.models.translator import Translator
from parnassus.train.sample_predict_evaluate import Input
from parnassus.train.trained import Trained


def text_input(folder: Path, *lines: str) -> list[Input]:
    path = folder / "source.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    return [Input(path)]


def test_all_lines_are_translated(
    trained_run: Callable[..., Trained], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained = trained_run("translate")
    model = trained.model
    assert isinstance(model, Translator)
    lines = ["der hund schläft.", "", "der gnu sieht den gnu", " die katze sieht"]
    rows = list(translate.Predict(beam_width=1)(trained, text_input(tmp_path, *lines)))
    assert [row["source"] for row in rows] == lines
    assert [row["translation"] for row in rows] == [
        model.translate([line.strip()])[0] if line else "" for line in lines
    ]
    assert capsys.readouterr().err == "unknown words: gnu\n"


def test_standard_input_is_translated(trained_run: Callable[..., Trained], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", ["der hund schläft.\n"])
    (row,) = translate.Predict()(trained_run("translate"), [Input()])
    assert row["source"] == "der hund schläft."


def test_too_long_sentence_raises_value_error(trained_run: Callable[..., Trained], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at most 31 tokens; got 100"):
        list(translate.Predict()(trained_run("translate"), text_input(tmp_path, "der hund " * 50)))


def test_sort_words_ignores_word_order_and_punctuation() -> None:
    assert translate.sort_words("the dog sees the cat.") == translate.sort_words("the cat the dog sees")
