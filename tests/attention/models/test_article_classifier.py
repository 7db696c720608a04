"""The article classifier: attention pooling, encoding and padding."""

import torch

from parnassus.attention.models.article_classifier import (
    ARTICLE_OF_NOUN,
    ARTICLES,
    MAX_WORDS,
    PHRASE_PARTS,
    WORDS,
    ArticleClassifier,
    encode_phrases,
)


def test_phrases_are_encoded_by_word_and_padded() -> None:
    tokens = encode_phrases(["the old tree", "look at the very old dog at night"])
    assert tokens.shape == (2, MAX_WORDS)
    assert [WORDS[index - 1] for index in tokens[0, :3]] == ["the", "old", "tree"]
    assert int(tokens[0, 3:].sum()) == 0


def test_longest_phrase_fits() -> None:
    assert sum(max(len(part.split()) for part in parts) for parts in PHRASE_PARTS.values()) == MAX_WORDS
    assert set(ARTICLE_OF_NOUN.values()) == set(ARTICLES)


def test_padding_has_zero_weight_and_no_effect() -> None:
    torch.manual_seed(0)
    model = ArticleClassifier(8)
    tokens = encode_phrases(["my heavy key"])
    assert float(model.weights(tokens)[0, 3:].abs().max()) == 0.0
    torch.testing.assert_close(model(tokens), model(tokens[:, :3]))
