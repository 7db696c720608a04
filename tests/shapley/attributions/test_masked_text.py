"""Value functions of texts: tokens are omitted or masked; texts of any length, strings and ids."""

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

POINTS = {"good": 2.0, "bad": -3.0, "film": 0.5}


def pleased(texts: list[str]) -> list[float]:
    """Points of words, but a `not` in front turns a word's points round."""
    found = []
    for text in texts:
        words = text.lower().replace(".", "").split()
        pairs = zip(["", *words], words, strict=False)
        found.append(sum((-1 if before == "not" else 1) * POINTS.get(word, 0.0) for before, word in pairs))
    return found


class MeanOfTokens(nn.Module):
    """Reads ids; overlooks 0."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(9, 4, padding_idx=0)
        self.out = nn.Linear(4, 2)

    def forward(self, ids: Tensor) -> Tensor:
        there = (ids != 0).sum(1, keepdim=True).clamp(min=1)
        logits: Tensor = self.out(self.embedding(ids).sum(1) / there).tanh()
        return logits


@pytest.mark.parametrize(
    "text", ["A good film.", "  (well,  don’t\ngo - ever!)  ", "word", "it's  'quoted' … ÄÖ"], ids=lambda text: text[:6]
)
def test_words_joined_are_the_text(text: str) -> None:
    assert "".join(split_keeping_spaces(text)) == text.strip()


def test_words_and_punctuation_are_separate() -> None:
    assert [word.strip() for word in split_keeping_spaces("It isn't good.")] == ["It", "isn't", "good", "."]
    assert split_keeping_spaces(" \n ") == []


def test_attributions_of_words_sum_to_the_output() -> None:
    text = "The film was not good."
    for stand_in in (None, "something"):
        game = masked_words(pleased, text, stand_in)
        assert isinstance(game, ValueFunction)
        assert game.players == 6
        found = explain_exactly(game, game.full_input)
        assert float(found.prediction) == pytest.approx(pleased([text])[0])
        assert float(found.base_values) == 0.0
        parts = dict(zip([word.strip() for word in game.tokens], found.values[0, 0].tolist(), strict=True))
        # worth: 0.5 of the film; 2 of good alone, −2 with not: what the two have together is −4, half of it each
        assert parts == pytest.approx({"The": 0.0, "film": 0.5, "was": 0.0, "not": -2.0, "good": 0.0, ".": 0.0})
        together = interaction_indices(game(game.full_input, all_coalitions(6))[0, 0])
        assert float(together[3, 4]) == pytest.approx(-4.0)
        assert float(together[1, 4]) == pytest.approx(0.0, abs=1e-12)


def test_omission_joins_words_and_masking_preserves_positions() -> None:
    text = "not really good"
    known = torch.tensor([[True, False, True]])
    left_out, masked = masked_words(pleased, text), masked_words(pleased, text, "something")
    assert "".join(left_out.mask_tokens([True, False, True])) == "not good"
    assert "".join(masked.mask_tokens([True, False, True])) == "not something good"
    assert float(left_out(left_out.full_input, known)) == -2.0
    assert float(masked(masked.full_input, known)) == 2.0


def test_missing_tokens_have_no_attribution() -> None:
    game = masked_words(pleased, "a good bad film")
    there = game.full_input
    there[0, 1] = 0.0
    found = explain_exactly(game, torch.cat([game.full_input, there]))
    assert found.values[1, 0].tolist() == pytest.approx([0.0, 0.0, -3.0, 0.5])
    assert found.prediction[:, 0].tolist() == pytest.approx([-0.5, -2.5])


def test_groups_of_tokens_are_players() -> None:
    groups = torch.tensor([[True, False, False], [False, True, True]])
    game = MaskedText(masked_words(pleased, "x").model, ["film ", "not ", "good"], groups=groups)
    found = explain_exactly(game, game.full_input)
    assert found.values[0, 0].tolist() == pytest.approx([0.5, -2.0])


@pytest.mark.parametrize("padding", [None, 0])
def test_ids_of_unequal_length_are_read_as_if_alone(padding: int | None) -> None:
    model = MeanOfTokens()
    texts = [[3, 4, 5], [7], [], [1, 2], [8, 8, 8], [6]]
    answers = token_id_model(model, padding)(texts)
    for text, answer in zip(texts, answers, strict=True):
        alone = model(torch.tensor([text], dtype=torch.long)) if text else model(torch.zeros(1, 1, dtype=torch.long))
        assert torch.allclose(answer, alone[0].detach())


def test_ids_are_explained_by_omission_and_masking() -> None:
    model, ids = MeanOfTokens(), torch.tensor([3, 4, 5, 6, 7, 8, 1, 2])
    for game in (
        masked_ids(model, ids, pad_token_id=0),
        masked_ids(model, ids),
        masked_ids(model, ids, mask_token_id=0),
    ):
        found = explain_exactly(game, game.full_input)
        assert found.values.shape == (1, 2, 8)
        assert torch.allclose(found.prediction, model(ids[None]).detach().double(), atol=1e-6)
        few = explain(game, game.full_input, 40, generator=torch.Generator().manual_seed(0))
        assert torch.allclose(few.prediction, found.prediction, atol=1e-9)
    masked = masked_ids(model, ids, mask_token_id=0)
    left_out = masked_ids(model, ids)
    assert torch.allclose(  # a mean that overlooks 0 does not care
        explain_exactly(masked, masked.full_input).values,
        explain_exactly(left_out, left_out.full_input).values,
        atol=1e-6,
    )


def test_one_token_has_all_of_it() -> None:
    game = masked_words(pleased, "bad")
    for found in (explain_exactly(game, game.full_input), explain(game, game.full_input, 8)):
        assert found.values.tolist() == [[[-3.0]]]


class Vectors:
    """An estimator of texts, as a pipeline of scikit-learn is one."""

    def predict_proba(self, x: object) -> object:
        assert isinstance(x, list)
        return [[0.25, 0.75] if "good" in text else [0.5, 0.5] for text in x]


def test_estimators_of_texts_are_models() -> None:
    game = masked_words(Vectors(), "so good")
    found = explain_exactly(game, game.full_input)
    assert found.values[0].tolist() == [[0.0, -0.25], [0.0, 0.25]]


def test_wrong_input_is_rejected() -> None:
    with pytest.raises(ValueError, match="tokens must not be empty"):
        masked_words(pleased, "  ")
    with pytest.raises(ValueError, match="2 for 1 tokens"):
        MaskedText(token_id_model(MeanOfTokens()), [1], [2, 3])
    counts_places = masked_ids(nn.Sequential(nn.Embedding(9, 2), nn.Flatten(), nn.Linear(2, 1)), torch.tensor([1]))
    with pytest.raises(ModelError, match="all tokens omitted"):
        explain_exactly(counts_places, counts_places.full_input)
    silent = masked_words(lambda texts: [float("nan")] * len(texts), "a b")
    with pytest.raises(ModelError, match="returned nan"):
        explain_exactly(silent, silent.full_input)
