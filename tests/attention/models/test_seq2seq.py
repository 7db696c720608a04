"""The encoder-decoder transformer: loss, decoding and masks."""

import pytest
import torch
from torch import Tensor, nn

from parnassus.attention import (
    DecoderBlock,
    PositionalEmbedding,
    SelfAttention,
    cross_attention,
    feed_forward,
    gpt,
)
from parnassus.attention.models.encoder import encoder
from parnassus.attention.models.seq2seq import Transformer, seq2seq
from parnassus.text import AutoregressiveModel, State


def make_model_and_batch() -> tuple[Transformer, Tensor, Tensor]:
    """A model, three sources of unequal lengths and their targets, which start with token 1."""
    torch.manual_seed(0)
    model = seq2seq((15, 20), 10, width=16, heads=4).double().eval()
    source, target = torch.randint(1, 15, (3, 7)), torch.randint(2, 20, (3, 6))
    source[1, 3:], target[2, 4:], target[:, 0] = 0, 0, 1
    return model, source, target


def test_loss_is_the_mean_over_non_padding_tokens() -> None:
    model, source, target = make_model_and_batch()
    log_p = model(source, target[:, :-1]).log_softmax(-1)
    token_nll = [
        -log_p[row, t, target[row, t + 1]]
        for row in range(3)
        for t in range(5)
        if target[row, t + 1] != 0  # not padding
    ]
    torch.testing.assert_close(model.loss(source, target), torch.stack(token_nll).mean())
    torch.testing.assert_close(-model.log_prob(source, target).sum(), torch.stack(token_nll).sum())


def test_label_smoothing_adds_the_mean_nll_over_the_vocabulary() -> None:
    model, source, target = make_model_and_batch()
    unsmoothed = model.loss(source, target)
    log_p = model(source, target[:, :-1]).log_softmax(-1)
    mean_nll = -log_p.mean(-1)[target[:, 1:] != 0].mean()
    model.label_smoothing = 0.1
    torch.testing.assert_close(model.loss(source, target), 0.9 * unsmoothed + 0.1 * mean_nll)


def test_probabilities_of_all_targets_sum_to_one() -> None:
    torch.manual_seed(0)
    model = seq2seq((5, 4), 4, width=8, heads=2).double()
    model.padding = -1  # no token is padding
    words = torch.cartesian_prod(*[torch.arange(4)] * 3)
    targets = torch.cat([torch.ones(len(words), 1, dtype=torch.long), words], 1)
    sources = torch.tensor([[2, 3, 4]]).expand(len(words), 3)
    torch.testing.assert_close(model.log_prob(sources, targets).exp().sum(), torch.tensor(1.0, dtype=torch.float64))


def test_conditioned_decoder_matches_full_model() -> None:
    model, source, target = make_model_and_batch()
    decoder = model.condition_on(source)
    assert isinstance(decoder, AutoregressiveModel)
    assert decoder.window == 10
    logits, state = decoder.read(target[:, :2])
    torch.testing.assert_close(logits, model(source, target[:, :2])[:, -1])
    logits, state = decoder.read(target[:, 2:5], state)
    torch.testing.assert_close(logits, model(source, target[:, :5])[:, -1])
    assert isinstance(state, State)


def test_selected_state_rows_continue_independently() -> None:
    model, source, target = make_model_and_batch()
    decoder = model.condition_on(source)
    _, state = decoder.read(target[:, :3])
    rows = torch.tensor([2, 0, 0, 1])
    logits, _ = decoder.read(target[rows, 3:4], state.rows(rows))
    torch.testing.assert_close(logits, model(source[rows], target[rows, :4])[:, -1])


def test_single_source_is_broadcast_to_many_targets() -> None:
    model, source, target = make_model_and_batch()
    logits, _ = model.condition_on(source[:1]).read(target[:, :4])
    torch.testing.assert_close(logits, model(source[:1].expand(3, -1), target[:, :4])[:, -1])


def test_decoding_does_not_encode_the_source_again() -> None:
    model, source, target = make_model_and_batch()
    decoder = model.condition_on(source)
    calls: list[int] = []
    model.encoder.register_forward_hook(lambda *_: calls.append(1))
    state = None
    for t in range(4):
        _, state = decoder.read(target[:, t : t + 1], state)
    assert calls == []


def test_future_targets_and_source_padding_have_no_effect() -> None:
    model, source, target = make_model_and_batch()
    changed = target.clone()
    changed[:, 4:] = 7
    torch.testing.assert_close(model(source, changed)[:, :4], model(source, target)[:, :4])
    padded = torch.cat([source, source.new_zeros(3, 2)], 1)
    torch.testing.assert_close(model(padded, target), model(source, target))


def test_padding_only_source_has_finite_values_and_gradients() -> None:
    model, source, target = make_model_and_batch()
    logits = model(torch.zeros_like(source), target)
    assert bool(logits.isfinite().all())
    logits.sum().backward()
    assert all(bool(p.grad.isfinite().all()) for p in model.parameters() if p.grad is not None)


def test_transformer_learns_to_reverse_sequences() -> None:
    torch.manual_seed(0)
    model = seq2seq((6, 8), 6, width=32, heads=2, depth=1)
    source = torch.randint(1, 6, (64, 4))
    target = torch.cat([torch.full((64, 1), 7), source.flip(1)], 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(120):
        optimizer.zero_grad()
        loss = model.loss(source, target)
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.1


def test_invalid_arguments_raise() -> None:
    model, source, target = make_model_and_batch()
    with pytest.raises(ValueError, match="there are 10 positions; got tokens up to position 12"):
        model(source, torch.ones(3, 12, dtype=torch.long))
    with pytest.raises(ValueError, match="one target per source; got 3 sources, 2 targets"):
        model.condition_on(source).read(target[:2])
    with pytest.raises(TypeError, match="must be a DecoderState; got Cache"):
        model.condition_on(source).read(target, gpt(20, 8, width=16).empty_cache(3))
    with pytest.raises(ValueError, match="label_smoothing must satisfy"):
        seq2seq((5, 5), 4, width=8, heads=2, label_smoothing=1.0)
    bidirectional = DecoderBlock(
        SelfAttention(16, 2), cross_attention(16, 2), feed_forward(16), norm=lambda: nn.LayerNorm(16)
    )
    with pytest.raises(ValueError, match="every block of a decoder must be causal"):
        Transformer(encoder(5, 4, width=16), PositionalEmbedding(5, 4, 16), [bidirectional], norm=nn.Identity())
