"""Bahdanau attention: context vectors, masks and decoding steps."""

import pytest
import torch

from parnassus.attention import AdditiveScore, BahdanauDecoder, BilinearScore, length_mask

torch.manual_seed(0)
MEMORY = torch.randn(3, 6, 5)
TOKENS = torch.randint(0, 11, (3, 4))


def test_context_is_the_attention_weighted_mean() -> None:
    decoder = BahdanauDecoder(11, 7, 5)
    score, state = decoder.score, torch.randn(3, 7)
    assert isinstance(score, AdditiveScore)
    result = decoder.context(state, MEMORY)
    for row in range(3):
        scores = [score.value(torch.tanh(score.query(state[row]) + score.key(h))) for h in MEMORY[row]]
        alpha = torch.cat(scores).softmax(0)
        torch.testing.assert_close(result.weights[row], alpha)
        torch.testing.assert_close(result.output[row], (alpha[:, None] * MEMORY[row]).sum(0))


def test_forward_matches_successive_steps() -> None:
    decoder = BahdanauDecoder(11, 7, 5, score=BilinearScore(7, 5))
    output = decoder(TOKENS, MEMORY)
    state = torch.zeros(3, 7)
    for time in range(4):
        logits, state, weights = decoder.step(TOKENS[:, time], state, MEMORY)
        torch.testing.assert_close(output.logits[:, time], logits)
        torch.testing.assert_close(output.weights[:, time], weights)


def test_padding_is_masked() -> None:
    decoder = BahdanauDecoder(11, 7, 5)
    mask = length_mask(torch.tensor([2, 6, 0]), 6)
    changed_memory = MEMORY.clone()
    changed_memory[0, 2:] = 1e6
    output, expected = decoder(TOKENS, changed_memory, mask), decoder(TOKENS, MEMORY, mask)
    torch.testing.assert_close(output.logits, expected.logits)
    assert output.weights[0, :, 2:].abs().max() == 0
    assert output.weights[2].abs().max() == 0  # fully masked: no context and no NaN
    assert bool(output.logits.isfinite().all())


def test_decoder_is_causal() -> None:
    decoder = BahdanauDecoder(11, 7, 5)
    changed = TOKENS.clone()
    changed[:, 2:] = (changed[:, 2:] + 1) % 11
    original, output = decoder(TOKENS, MEMORY).logits, decoder(changed, MEMORY).logits
    torch.testing.assert_close(original[:, :2], output[:, :2])
    assert not torch.allclose(original[:, 2], output[:, 2])


def test_all_parameters_receive_gradients() -> None:
    decoder = BahdanauDecoder(11, 7, 5)
    decoder(TOKENS, MEMORY).logits.square().mean().backward()
    assert all(p.grad is not None and p.grad.abs().max() > 0 for p in decoder.parameters())


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="sizes must be at least 1; got vocabulary=11, width=0, memory=5"):
        BahdanauDecoder(11, 0, 5)
