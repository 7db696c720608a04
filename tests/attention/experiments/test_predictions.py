"""`parnassus predict` for small attention models: lines of text are encoded, and the answers are the model's."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest
import torch

from parnassus.attention.experiments import (
    attention_counts_letters,
    attention_translates_articles,
    bert_masked_tokens,
    transformer_linear_recurrences,
)
from parnassus.attention.models.article_classifier import ARTICLES, ArticleClassifier, encode_phrases
from parnassus.attention.models.recurrence_predictor import RecurrencePredictor
from parnassus.data import DataError
from parnassus.text import WordTokeniser, tokeniser_to_dict
from parnassus.train.sample_predict_evaluate import Input, ResultRow
from parnassus.train.trained import TrainedRun


def predict(how: Any, run: TrainedRun, folder: Path, *lines: str) -> list[ResultRow]:
    path = folder / "input.txt"
    path.write_text("\n".join(lines), encoding="utf-8")
    return list(how(run, [Input(path)]))


@pytest.fixture(scope="module")
def masked_words(untrained_run: Callable[..., TrainedRun]) -> TrainedRun:
    words = "der hund sieht die katze . das kind schläft"
    tokeniser = WordTokeniser.fit(words, special=bert_masked_tokens.SPECIAL)
    return untrained_run("bert_masked_tokens", {"tokens": tokeniser_to_dict(tokeniser), "max_length": 8})


@pytest.mark.parametrize("network", ["bert", "recurrent", "metaformer"])
def test_masks_are_filled_with_the_most_probable_words(masked_words: TrainedRun, tmp_path: Path, network: Any) -> None:
    sentence = "der [MASK] sieht die [MASK]."
    rows = predict(bert_masked_tokens.Predict(network=network, top_k=2), masked_words, tmp_path, sentence, "")
    models = cast("bert_masked_tokens.MaskedWordModels", masked_words.model)
    assert isinstance(models.tokeniser, WordTokeniser)
    ids = {word: index for index, word in enumerate((*models.tokeniser.special, *models.tokeniser.words))}
    tokens = [ids[word] for word in ("der", "<mask>", "sieht", "die", "<mask>", ".")]
    with torch.no_grad():
        probabilities = models.model(network)(torch.tensor([tokens]))[0].softmax(-1)
    for mask, position in ((1, 1), (2, 4)):
        found = [(row["word"], row["probability"]) for row in rows if row["mask"] == mask]
        ranked = sorted(((probabilities[position, ids[word]], word) for word in models.tokeniser.words), reverse=True)
        assert [word for word, _ in found] == [word for _, word in ranked[:2]]
        assert [value for _, value in found] == pytest.approx([float(value) for value, _ in ranked[:2]], rel=1e-5)
    assert {row["sentence"] for row in rows} == {sentence}


def test_sentences_need_a_mask_and_unknown_words_are_reported(
    masked_words: TrainedRun, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    predict(bert_masked_tokens.Predict(), masked_words, tmp_path, "das gnu [MASK]")
    assert capsys.readouterr().err == "unknown words: gnu\n"
    with pytest.raises(DataError, match=r"every sentence must contain \[MASK\]; got 'das kind schläft'"):
        predict(bert_masked_tokens.Predict(), masked_words, tmp_path, "das kind schläft")


def test_articles_are_predicted_from_the_known_words(
    untrained_run: Callable[..., TrainedRun], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = untrained_run("attention_translates_articles", {})
    lines = ["We saw the very old moon at night", "my shiny key"]
    rows = predict(attention_translates_articles.Predict(), run, tmp_path, *lines)
    model = cast("ArticleClassifier", run.model)
    assert capsys.readouterr().err == "unknown words: shiny\n"
    for row, line, phrase in zip(rows, lines, [lines[0].lower(), "my key"], strict=True):
        with torch.no_grad():
            probabilities = model(encode_phrases([phrase]))[0].softmax(0)
        weights = model.weights(encode_phrases([phrase]))[0]
        assert row["phrase"] == line
        assert row["article"] == ARTICLES[int(probabilities.argmax())]
        assert row["probability"] == pytest.approx(float(probabilities.max()))
        assert row["attended_word"] == phrase.split()[int(weights.argmax())]
        assert row["attention_weight"] == pytest.approx(float(weights.max()))
    with pytest.raises(DataError, match="a phrase must have at least one word of the training phrases; got 'gnu'"):
        predict(attention_translates_articles.Predict(), run, tmp_path, "gnu")


def test_letters_are_counted_by_the_tied_model_with_the_lowest_loss(
    untrained_run: Callable[..., TrainedRun], tmp_path: Path
) -> None:
    run = untrained_run("attention_counts_letters", {})
    rows = predict(attention_counts_letters.Predict(), run, tmp_path, "abacadabca ddddd", "b")
    assert [(row["word"], row["count"]) for row in rows] == [("abacadabca", 5), ("ddddd", 5), ("b", 1)]
    models = dict(run.model.named_children())
    words = attention_counts_letters.random_words(5_000, 10, 4, seed=3)
    with torch.no_grad():
        losses = {name: float(models[name].loss(words.x, words.y)) for name in ("tied 0", "tied 1")}  # type: ignore[operator]
        best = models[min(losses, key=lambda name: losses[name])]
        expected = best(torch.tensor([[0, 1, 0, 2, 0, 3, 0, 1, 2, 0]]))[0].softmax(0)
    assert rows[0]["predicted"] == 1 + int(expected.argmax())
    assert rows[0]["probability"] == pytest.approx(float(expected.max()), rel=1e-5)
    with pytest.raises(DataError, match="words must consist of the letters a, b, c, d; got 'abe'"):
        predict(attention_counts_letters.Predict(), run, tmp_path, "abe")


@pytest.mark.parametrize("network", ["masked", "unmasked"])
def test_sequences_are_continued_greedily(
    untrained_run: Callable[..., TrainedRun], tmp_path: Path, network: Any
) -> None:
    run = untrained_run("transformer_linear_recurrences", {})
    how = transformer_linear_recurrences.Predict(network=network, num_terms=4)
    rows = predict(how, run, tmp_path, "1 2 5 12", "3, 96")
    model = cast("RecurrencePredictor", getattr(run.model, network))
    for row, start in zip(rows, ([1, 2, 5, 12], [3, 96]), strict=True):
        terms = list(start)
        with torch.no_grad():
            for _ in range(4):
                terms.append(int(model(torch.tensor([terms]))[0, -1].argmax()))
        assert row["next_terms"] == " ".join(map(str, terms[len(start) :]))
    for line in ("1 97", "1 x", "-1"):
        with pytest.raises(DataError, match=f"terms must be integers from 0 to 96; got '{line}'"):
            predict(how, run, tmp_path, line)
