"""Translation of text files with the transformer_translation experiment."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from parnassus.attention.experiments import transformer_translation
from parnassus.attention.models.translator import Translator
from parnassus.train.sample_predict_evaluate import Input
from parnassus.train.trained import TrainedRun


def text_input(folder: Path, *lines: str) -> list[Input]:
    path = folder / "source.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    return [Input(path)]


def test_all_lines_are_translated(
    trained_run: Callable[..., TrainedRun], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trained = trained_run("transformer_translation")
    model = trained.model
    assert isinstance(model, Translator)
    lines = ["der hund schläft.", "", "der gnu sieht den gnu", " die katze sieht"]
    rows = list(transformer_translation.Predict(num_beams=1)(trained, text_input(tmp_path, *lines)))
    assert [row["source"] for row in rows] == lines
    assert [row["translation"] for row in rows] == [
        model.translate([line.strip()])[0] if line else "" for line in lines
    ]
    assert capsys.readouterr().err == "unknown words: gnu\n"


def test_standard_input_is_translated(trained_run: Callable[..., TrainedRun], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", ["der hund schläft.\n"])
    (row,) = transformer_translation.Predict()(trained_run("transformer_translation"), [Input()])
    assert row["source"] == "der hund schläft."


def test_too_long_sentence_raises_value_error(trained_run: Callable[..., TrainedRun], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at most 31 tokens; got 100"):
        list(
            transformer_translation.Predict()(
                trained_run("transformer_translation"), text_input(tmp_path, "der hund " * 50)
            )
        )


def test_evaluation_reproduces_the_result_of_the_run(trained_run: Callable[..., TrainedRun]) -> None:
    trained = trained_run("transformer_translation")
    result = cast("dict[str, float]", trained.folder.read_json("result.json")["result"])
    (row,) = transformer_translation.Evaluate(num_examples=20, num_beams=2)([trained])
    assert (row["run"], row["pairs"], row["sentences"]) == (trained.folder.path.name, "phrases", 20)
    assert row["nats_per_token"] == pytest.approx(result["test_loss"], rel=1e-5)
    assert row["exact"] == result["exact"]
    assert row["bleu"] == pytest.approx(result["bleu"], nan_ok=True)


def test_translations_of_a_file_are_compared_with_its_targets(
    trained_run: Callable[..., TrainedRun], tmp_path: Path
) -> None:
    trained = trained_run("transformer_translation")
    model = trained.model
    assert isinstance(model, Translator)
    sources = [
        f"{article} {noun} schläft." for article in ("der", "ein", "mein") for noun in ("hund", "mann", "a", "b")
    ]
    translations = [model.translate([source], width=2)[0] for source in sources]
    targets = [*(line or "-" for line in translations[:9]), *["a wrong translation"] * 3]
    pairs = [*zip(sources, targets, strict=True), ("der hund " * 50, "too long")]
    path = tmp_path / "pairs.tsv"
    path.write_text("\n".join("\t".join(pair) for pair in pairs), encoding="utf-8")
    (row,) = transformer_translation.Evaluate(str(path), split="all", num_beams=2)([trained])
    expected = [line == target for line, target in zip(translations, targets, strict=True)]
    assert row["sentences"] == 12
    assert row["exact"] == pytest.approx(sum(expected) / 12)
    (test,) = transformer_translation.Evaluate(str(path))([trained])
    assert test["sentences"] == 1  # the tenth pair


def test_sort_words_ignores_word_order_and_punctuation() -> None:
    assert transformer_translation.sort_words("the dog sees the cat.") == transformer_translation.sort_words(
        "the cat the dog sees"
    )
