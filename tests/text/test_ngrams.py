"""N-gram models compared with explicit counts."""

from collections import Counter
from itertools import pairwise

import pytest
import torch

from parnassus.text import AutoregressiveModel, NGramModel, perplexity
from parnassus.text.ngrams import NGramState

TOKENS = torch.randint(4, (60,), generator=torch.Generator().manual_seed(0))


def test_add_k_smoothing_matches_counts() -> None:
    model = NGramModel.fit(TOKENS, 2, vocabulary=5, smoothing=0.5 * 5)  # add ½ per token; token 4 does not occur
    counts = Counter(pairwise(TOKENS.tolist()))
    for context in range(5):
        total = sum(counts[context, token] for token in range(5))
        expected = torch.tensor([(counts[context, token] + 0.5) / (total + 2.5) for token in range(5)])
        torch.testing.assert_close(model.distribution(torch.tensor([[context]]))[0], expected.double())


def test_trigrams_smoothed_by_unigrams_match_counts() -> None:
    """P(x″ | x, x′) = (n(x, x′, x″) + ε P(x″)) / (n(x, x′) + ε)  (Zhao sec. 9)."""
    unigram_model = NGramModel.fit(TOKENS, 1, vocabulary=5, smoothing=2.0)
    model = NGramModel.fit(TOKENS, 3, vocabulary=5, smoothing=3.0, lower=unigram_model)
    tokens = TOKENS.tolist()
    prior = [(tokens.count(token) + 2.0 / 5) / (60 + 2.0) for token in range(5)]
    trigrams = Counter(zip(tokens, tokens[1:], tokens[2:], strict=False))
    for first, second in [(0, 1), (3, 3), (4, 0)]:
        total = sum(trigrams[first, second, token] for token in range(5))
        expected = [(trigrams[first, second, token] + 3.0 * prior[token]) / (total + 3.0) for token in range(5)]
        probabilities = model.distribution(torch.tensor([[first, second]]))[0]
        torch.testing.assert_close(probabilities, torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_token_by_token_reading_matches_log_likelihood(order: int) -> None:
    model = NGramModel.fit_interpolated(TOKENS, order, vocabulary=5, smoothing=0.7)
    assert isinstance(model, AutoregressiveModel)
    text = torch.randint(5, (3, 9), generator=torch.Generator().manual_seed(1))
    token_log_probs = model.token_log_probs(text)
    state: NGramState | None = None
    for position in range(8):
        logits, state = model.read(text[:, position : position + 1], state)
        torch.testing.assert_close(logits.exp().sum(1), torch.ones(3, dtype=torch.float64))
        torch.testing.assert_close(
            logits.gather(1, text[:, position + 1, None])[:, 0], token_log_probs[:, position + 1]
        )
    full_logits, _ = model.read(text[:, :8])
    torch.testing.assert_close(full_logits, logits)
    torch.testing.assert_close(model.log_prob(text), token_log_probs.sum(1))


def test_selected_state_rows_continue_independently() -> None:
    model = NGramModel.fit_interpolated(TOKENS, 3, vocabulary=4)
    _, state = model.read(torch.tensor([[0, 1], [2, 3]]))
    rows = state.rows(torch.tensor([1, 1, 0]))
    logits, _ = model.read(torch.tensor([[0], [1], [0]]), rows)
    expected, _ = model.read(torch.tensor([[2, 3, 0], [2, 3, 1], [0, 1, 0]]))
    torch.testing.assert_close(logits, expected)


def test_unseen_context_uses_the_lower_order_model_without_smoothing() -> None:
    tokens = torch.tensor([0, 1, 0, 1, 2])
    model = NGramModel.fit_interpolated(tokens, 2, vocabulary=3, smoothing=0.0)
    torch.testing.assert_close(
        model.distribution(torch.tensor([[2]]))[0], torch.tensor([0.4, 0.4, 0.2], dtype=torch.float64)
    )


def test_perplexity_of_uniform_and_impossible_tokens() -> None:
    uniform = NGramModel.fit(TOKENS, 1, vocabulary=28, smoothing=1e15)
    torch.testing.assert_close(uniform.perplexity(TOKENS), torch.tensor(28.0, dtype=torch.float64))
    unsmoothed = NGramModel.fit(TOKENS, 1, vocabulary=5, smoothing=0.0)
    assert float(unsmoothed.perplexity(torch.tensor([0, 4]))) == float("inf")


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="order must lie between 1 and the number of tokens, 60; got order=61"):
        NGramModel.fit(TOKENS, 61, vocabulary=4)
    with pytest.raises(ValueError, match="order must be at least 1; got order=0"):
        NGramModel.fit_interpolated(TOKENS, 0, vocabulary=4)
    with pytest.raises(ValueError, match="tokens must lie between 0 and 2; got 0 to 3"):
        NGramModel.fit(TOKENS, 2, vocabulary=3)
    with pytest.raises(ValueError, match="smoothing must not be negative"):
        NGramModel.fit(TOKENS, 2, vocabulary=4, smoothing=-1.0)
    with pytest.raises(ValueError, match="must be below 2⁶³; got 100000\\^4"):
        NGramModel.fit(TOKENS, 4, vocabulary=100_000)
    with pytest.raises(ValueError, match="must have an order below 2 and a vocabulary of 4; got order=2, vocabulary=4"):
        NGramModel.fit(TOKENS, 2, vocabulary=4, lower=NGramModel.fit(TOKENS, 2, vocabulary=4))
    with pytest.raises(ValueError, match="perplexity needs at least one token"):
        perplexity(torch.zeros(0))
