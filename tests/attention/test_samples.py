"""Models as people use them: a prompt or lines go in, text comes out beside them."""

from collections.abc import Callable

import pytest
import torch

from parnassus.attention.experiments import gpt, translate
from parnassus.attention.translator import Translator
from parnassus.attention.writer import Writer
from parnassus.train.trained import Trained


@pytest.fixture(scope="module")
def translator(trained_run: Callable[..., Trained]) -> Translator:
    model = trained_run("translate").model
    assert isinstance(model, Translator)
    return model


def test_lines_out_stand_beside_lines_in(
    translator: Translator, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = ["der hund schläft.\n", "\n", "der gnu sieht den gnu\r\n", "die katze sieht"]
    monkeypatch.setattr("sys.stdin", lines)
    written = list(translate.Sample().write(translator))
    assert len(written) == len(lines)
    assert written[1] == "\n"
    assert all(line.endswith("\n") and line.count("\n") == 1 for line in written)
    assert capsys.readouterr().err == "words it has never seen: gnu\n"


def test_a_sentence_beyond_the_places_is_refused(translator: Translator) -> None:
    with pytest.raises(ValueError, match="a sentence may have 31 tokens; got one of 100"):
        list(translate.Sample("der hund " * 50).write(translator))


def test_a_writer_of_words_says_which_it_does_not_know(
    trained_run: Callable[..., Trained], capsys: pytest.CaptureFixture[str]
) -> None:
    model = trained_run("gpt", tokens="words").model
    assert isinstance(model, Writer)
    torch.manual_seed(0)
    written = "".join(gpt.Sample("The zebra", length=4).write(model))
    assert written.startswith("The zebra")
    assert capsys.readouterr().err == "words it has never seen: zebra\n"


def test_a_window_of_one_token_is_enough_and_none_is_refused(trained_run: Callable[..., Trained]) -> None:
    model = trained_run("gpt", window=1).model
    assert isinstance(model, Writer)
    assert len("".join(gpt.Sample("The", length=5).write(model))) == 8
    with pytest.raises(ValueError, match="a window must hold at least one token; got window=0"):
        gpt.windows(torch.arange(9), 0, size=1, steps=1)
