"""Value functions of texts: omitted and masked tokens, texts of any length, strings and ids."""

import pytest
import torch
from torch import Tensor, nn

from parnassus.shapley.attributions.attribution import explain, explain_exactly
from parnassus.shapley.attributions.masked_text import (
    MaskedText,
    masked_ids,
    masked_words,
    split_keeping_spaces,
    token_id_model,
)
from parnassus.shapley.attributions.model_adapters import ModelError
from parnassus.shapley.attributions.value_functions import ValueFunction
from parnassus.shapley.games.cooperative_games import all_coalitions
from parnassus.shapley.games.shapley_values import interaction_indices

SCORES = {"good": 2.0, "bad": -3.0, "film": 0.5}


def sentiment(texts: list[str]) -> list[float]:
    """The sum of word scores; a preceding `not` negates a word's score."""
    scores = []
    for text in texts:
        words = text.lower().replace(".", "").split()
        pairs = zip(["", *words], words, strict=False)
        scores.append(sum((-1 if before == "not" else 1) * SCORES.get(word, 0.0) for before, word in pairs))
    return scores


class MeanEmbedding(nn.Module):
    """Classifies ids by their mean embedding; ignores id 0."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(9, 4, padding_idx=0)
        self.out = nn.Linear(4, 2)

    def forward(self, ids: Tensor) -> Tensor:
        counts = (ids != 0).sum(1, keepdim=True).clamp(min=1)
        logits: Tensor = self.out(self.embedding(ids).sum(1) / counts).tanh()
        return logits


@pytest.mark.parametrize(
    "text", ["A good film.", "  (well,  don’t\ngo - ever!)  ", "word", "it's  'quoted' … ÄÖ"], ids=lambda text: text[:6]
)
def test_words_concatenate_to_the_text(text: str) -> None:
    assert "".join(split_keeping_spaces(text)) == text.strip()


def test_words_and_punctuation_are_separate() -> None:
    assert [word.strip() for word in split_keeping_spaces("It isn't good.")] == ["It", "isn't", "good", "."]
    assert split_keeping_spaces(" \n ") == []


def test_attributions_of_words_sum_to_the_output() -> None:
    text = "The film was not good."
    for mask in (None, "something"):
        game = masked_words(sentiment, text, mask)
        assert isinstance(game, ValueFunction)
        assert game.players == 6
        result = explain_exactly(game, game.full_input)
        assert float(result.prediction) == pytest.approx(sentiment([text])[0])
        assert float(result.base_values) == 0.0
        parts = dict(zip([word.strip() for word in game.tokens], result.values[0, 0].tolist(), strict=True))
        # film is worth 0.5, good 2 alone and −2 after not: the interaction of −4 is shared equally
        assert parts == pytest.approx({"The": 0.0, "film": 0.5, "was": 0.0, "not": -2.0, "good": 0.0, ".": 0.0})
        interactions = interaction_indices(game(game.full_input, all_coalitions(6))[0, 0])
        assert float(interactions[3, 4]) == pytest.approx(-4.0)
        assert float(interactions[1, 4]) == pytest.approx(0.0, abs=1e-12)


def test_omission_joins_words_and_masking_preserves_positions() -> None:
    text = "not really good"
    known = torch.tensor([[True, False, True]])
    omitted, masked = masked_words(sentiment, text), masked_words(sentiment, text, "something")
    assert "".join(omitted.keep_tokens([True, False, True])) == "not good"
    assert "".join(masked.keep_tokens([True, False, True])) == "not something good"
    assert float(omitted(omitted.full_input, known)) == -2.0
    assert float(masked(masked.full_input, known)) == 2.0


def test_missing_tokens_have_no_attribution() -> None:
    game = masked_words(sentiment, "a good bad film")
    partial = game.full_input
    partial[0, 1] = 0.0
    result = explain_exactly(game, torch.cat([game.full_input, partial]))
    assert result.values[1, 0].tolist() == pytest.approx([0.0, 0.0, -3.0, 0.5])
    assert result.prediction[:, 0].tolist() == pytest.approx([-0.5, -2.5])


def test_groups_of_tokens_are_players() -> None:
    groups = torch.tensor([[True, False, False], [False, True, True]])
    game = MaskedText(masked_words(sentiment, "x").model, ["film ", "not ", "good"], groups=groups)
    result = explain_exactly(game, game.full_input)
    assert result.values[0, 0].tolist() == pytest.approx([0.5, -2.0])


@pytest.mark.parametrize("padding", [None, 0])
def test_ids_of_unequal_length_are_evaluated_independently(padding: int | None) -> None:
    model = MeanEmbedding()
    texts = [[3, 4, 5], [7], [], [1, 2], [8, 8, 8], [6]]
    outputs = token_id_model(model, padding)(texts)
    for text, output in zip(texts, outputs, strict=True):
        expected = model(torch.tensor([text], dtype=torch.long)) if text else model(torch.zeros(1, 1, dtype=torch.long))
        assert torch.allclose(output, expected[0].detach())


def test_ids_are_explained_by_omission_and_masking() -> None:
    model, ids = MeanEmbedding(), torch.tensor([3, 4, 5, 6, 7, 8, 1, 2])
    for game in (
        masked_ids(model, ids, pad_token_id=0),
        masked_ids(model, ids),
        masked_ids(model, ids, mask_token_id=0),
    ):
        result = explain_exactly(game, game.full_input)
        assert result.values.shape == (1, 2, 8)
        assert torch.allclose(result.prediction, model(ids[None]).detach().double(), atol=1e-6)
        estimate = explain(game, game.full_input, 40, generator=torch.Generator().manual_seed(0))
        assert torch.allclose(estimate.prediction, result.prediction, atol=1e-9)
    masked = masked_ids(model, ids, mask_token_id=0)
    omitted = masked_ids(model, ids)
    assert torch.allclose(  # a mean that ignores id 0 gives the same values
        explain_exactly(masked, masked.full_input).values,
        explain_exactly(omitted, omitted.full_input).values,
        atol=1e-6,
    )


def test_single_token_gets_the_whole_value() -> None:
    game = masked_words(sentiment, "bad")
    for result in (explain_exactly(game, game.full_input), explain(game, game.full_input, 8)):
        assert result.values.tolist() == [[[-3.0]]]


class TextClassifier:
    """A classifier of texts, such as a scikit-learn pipeline."""

    def predict_proba(self, x: object) -> object:
        assert isinstance(x, list)
        return [[0.25, 0.75] if "good" in text else [0.5, 0.5] for text in x]


def test_text_estimators_are_supported() -> None:
    game = masked_words(TextClassifier(), "so good")
    result = explain_exactly(game, game.full_input)
    assert result.values[0].tolist() == [[0.0, -0.25], [0.0, 0.25]]


def test_invalid_inputs_raise_errors() -> None:
    with pytest.raises(ValueError, match="tokens must not be empty"):
        masked_words(sentiment, "  ")
    with pytest.raises(ValueError, match="2 for 1 tokens"):
        MaskedText(token_id_model(MeanEmbedding()), [1], [2, 3])
    fixed_length = masked_ids(nn.Sequential(nn.Embedding(9, 2), nn.Flatten(), nn.Linear(2, 1)), torch.tensor([1]))
    with pytest.raises(ModelError, match="all tokens omitted"):
        explain_exactly(fixed_length, fixed_length.full_input)
    nan_model = masked_words(lambda texts: [float("nan")] * len(texts), "a b")
    with pytest.raises(ModelError, match="returned nan"):
        explain_exactly(nan_model, nan_model.full_input)
