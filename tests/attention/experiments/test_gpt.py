"""Text generation and evaluation with the GPT experiment."""

from collections.abc import Callable
from math import exp, log
from pathlib import Path

import pytest
import torch

from parnassus.attention.experiments import gpt
from parnassus.attention.models.text_generator import TextGenerator
from parnassus.data import open_text
from parnassus.train.trained import TrainedRun


def test_unknown_words_are_reported(trained_run: Callable[..., TrainedRun], capsys: pytest.CaptureFixture[str]) -> None:
    model = trained_run("gpt", tokenizer="words").model
    assert isinstance(model, TextGenerator)
    torch.manual_seed(0)
    text = "".join(gpt.Sample("The zebra", max_new_tokens=4).write(model))
    assert text.startswith("The zebra")
    assert capsys.readouterr().err == "unknown words: zebra\n"


def test_window_of_one_token_is_supported(trained_run: Callable[..., TrainedRun]) -> None:
    model = trained_run("gpt", block_size=1).model
    assert isinstance(model, TextGenerator)
    assert len("".join(gpt.Sample("The", max_new_tokens=5).write(model))) == 8


def test_perplexity_matches_the_mean_negative_log_likelihood(
    trained_run: Callable[..., TrainedRun], tmp_path: Path
) -> None:
    trained = trained_run("gpt")
    model = trained.model
    assert isinstance(model, TextGenerator)
    text = open_text("pydoc").test[:33]  # one window
    path = tmp_path / "text.txt"
    path.write_text(text, encoding="utf-8")
    (row,) = gpt.Evaluate(str(path), full_text=True)([trained])
    with torch.no_grad():
        nll = -model.model(model.tokeniser.encode(text)[None, :-1]).log_softmax(-1)[0]
    expected = float(nll.gather(1, model.tokeniser.encode(text)[1:, None]).mean())
    assert row["run"] == trained.folder.path.name
    assert row["text"] == str(path)
    assert row["nats_per_token"] == pytest.approx(expected, rel=1e-5)
    assert row["perplexity"] == pytest.approx(exp(expected), rel=1e-5)
    assert row["bits_per_character"] == pytest.approx(expected * 32 / 33 / log(2), rel=1e-5)


def test_held_out_part_is_evaluated_by_default(trained_run: Callable[..., TrainedRun], tmp_path: Path) -> None:
    trained = trained_run("gpt")
    text = open_text("pydoc").test[:200]
    for name, content in (("full", text), ("end", text[180:])):
        (tmp_path / name).write_text(content, encoding="utf-8")
    (row,) = gpt.Evaluate(str(tmp_path / "full"))([trained])
    (end,) = gpt.Evaluate(str(tmp_path / "end"), full_text=True)([trained])
    assert row["nats_per_token"] == end["nats_per_token"]


def test_unknown_characters_are_removed(trained_run: Callable[..., TrainedRun], tmp_path: Path) -> None:
    rows = []
    for name, content in (("known", "def next(self):"), ("unknown", "def nextŵŵŵ(self):")):
        (tmp_path / name).write_text(content, encoding="utf-8")
        rows += gpt.Evaluate(str(tmp_path / name), full_text=True)([trained_run("gpt")])
    assert [row["removed_characters"] for row in rows] == [0, 3]
    assert rows[0]["nats_per_token"] == rows[1]["nats_per_token"]


def test_bigram_loss_uses_add_k_smoothing() -> None:
    train, test = torch.tensor([0, 1, 0, 1, 2]), torch.tensor([0, 1, 1])
    expected = -(log(2.1 / 2.3) + log(0.1 / 2.3)) / 2
    assert gpt.bigram_loss(train, test, 3) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("token", "before", "expected"),
    [
        ("t", " ", True),
        ("t", "\n", True),
        ("t", "a", False),
        (" the", "a", True),
        (" ", "a", False),
        (" 7", "a", False),
    ],
)
def test_beginnings_of_words(token: str, before: str, expected: bool) -> None:
    assert gpt.begins_word(token, before) == expected


def test_bits_at_the_beginning_of_words_are_measured() -> None:
    names, bits = ["a", " ", "b", "c"], torch.tensor([1.0, 4.0, 3.0])
    assert gpt.compare_word_starts(names, bits) == ": 4.00 bits at the beginning of words, 2.00 elsewhere"
    assert gpt.compare_word_starts(["a", "b"], bits[:1]) == ""
