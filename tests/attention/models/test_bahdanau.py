"""Bahdanau attention: context by hand, masks and steps."""

import pytest
import torch

from parnassus.attention import AdditiveScore, BahdanauDecoder, BilinearScore, length_mask

torch.manual_seed(0)
MEMORY = torch.randn(3, 6, 5)
TOKENS = torch.randint(0, 11, (3, 4))


def test_the_context_is_the_mean_weighted_by_the_additive_score() -> None:
    decoder = BahdanauDecoder(11, 7, 5)
    score, state = decoder.score, torch.randn(3, 7)
    assert isinstance(score, AdditiveScore)
    found = decoder.context(state, MEMORY)
    for row in range(3):
        scores = [score.value(torch.tanh(score.query(state[row]) + score.key(h))) for h in MEMORY[row]]
        alpha = torch.cat(scores).softmax(0)
        torch.testing.assert_close(found.weights[row], alpha)
        torch.testing.assert_close(found.output[row], (alpha[:, None] * MEMORY[row]).sum(0))


def test_forward_equals_successive_steps() -> None:
    decoder = BahdanauDecoder(11, 7, 5, score=BilinearScore(7, 5))
    together = decoder(TOKENS, MEMORY)
    state = torch.zeros(3, 7)
    for time in range(4):
        logits, state, weights = decoder.step(TOKENS[:, time], state, MEMORY)
        torch.testing.assert_close(together.logits[:, time], logits)
        torch.testing.assert_close(together.weights[:, time], weights)


def test_padding_is_masked() -> None:
    decoder = BahdanauDecoder(11, 7, 5)
    mask = length_mask(torch.tensor([2, 6, 0]), 6)
    loud = MEMORY.clone()
    loud[0, 2:] = 1e6
    seen, quiet = decoder(TOKENS, loud, mask), decoder(TOKENS, MEMORY, mask)
    torch.testing.assert_close(seen.logits, quiet.logits)
    assert seen.weights[0, :, 2:].abs().max() == 0
    assert seen.weights[2].abs().max() == 0  # nothing to see: no context, and no NaN
    assert bool(seen.logits.isfinite().all())


def test_the_decoder_is_causal() -> None:
    decoder = BahdanauDecoder(11, 7, 5)
    changed = TOKENS.clone()
    changed[:, 2:] = (changed[:, 2:] + 1) % 11
    before, after = decoder(TOKENS, MEMORY).logits, decoder(changed, MEMORY).logits
    torch.testing.assert_close(before[:, :2], after[:, :2])
    assert not torch.allclose(before[:, 2], after[:, 2])


def test_all_parameters_get_gradients() -> None:
    decoder = BahdanauDecoder(11, 7, 5)
    decoder(TOKENS, MEMORY).logits.square().mean().backward()
    assert all(p.grad is not None and p.grad.abs().max() > 0 for p in decoder.parameters())


def test_invalid_arguments_raise() -> None:
    with pytest.raises(ValueError, match="sizes must be at least 1; got vocabulary=11, width=0, memory=5"):
        BahdanauDecoder(11, 0, 5)
