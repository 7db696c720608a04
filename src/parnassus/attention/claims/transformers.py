"""Claims about encoders, decoders and both together: who sees whom, and what filler may not do (book sec. 10.1.1)."""

from collections.abc import Callable, Sequence
from math import sqrt

import torch
from torch import Tensor, nn

from parnassus.atlas import (
    Correction,
    Evidence,
    all_of,
    at_least,
    at_most,
    claim,
    close,
    erratum,
    raises,
    rate,
    runs,
)
from parnassus.attention.block import Arrangement, Block, DecoderBlock, feed_forward, post_norm, pre_norm
from parnassus.attention.encoder import encoder
from parnassus.attention.masks import causal_mask
from parnassus.attention.multi_head import cross_attention
from parnassus.attention.self_attention import SelfAttention
from parnassus.attention.seq2seq import Transformer, seq2seq

WIDTH, HEADS = 16, 4


def norm() -> nn.Module:
    return nn.LayerNorm(WIDTH)


def reached(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """How much output t moves with input s, as a matrix (t, s): the largest entry of |∂y_t/∂x_s|."""
    jacobian = torch.autograd.functional.jacobian(lambda free: function(free[None])[0], x[0])
    largest: Tensor = jacobian.abs().amax((1, 3))
    return largest


@claim("B10.1.1-5")
def an_encoder_layer_is_that_of_vaswani() -> Evidence:
    """LN(x + MHA(x)), then LN(a + FFN(a)): torch's encoder layer with the same weights (book sec. 10.1.1)."""
    torch.manual_seed(0)
    dense = feed_forward(WIDTH, 32)
    block = Block(SelfAttention(WIDTH, HEADS), dense, norm=norm, arrange=post_norm).double()
    theirs = nn.TransformerEncoderLayer(WIDTH, HEADS, 32, dropout=0.0, batch_first=True).double()
    _copy(block.attention, theirs.self_attn)
    _give((dense[0], dense[2], *block.norms), (theirs.linear1, theirs.linear2, theirs.norm1, theirs.norm2))
    x = torch.randn(3, 7, WIDTH, dtype=torch.float64)
    seen = torch.arange(7) < torch.tensor([[7], [4], [5]])
    difference = block(x, seen[:, None]) - theirs(x, src_key_padding_mask=~seen)
    return at_most(difference[seen].abs(), 1e-12)


@claim("B10.1.1-6")
def a_decoder_layer_is_that_of_vaswani() -> Evidence:
    """Causal self-attention, then the source, then FFN: torch's layer with the same weights (book sec. 10.1.1)."""
    torch.manual_seed(0)
    dense = feed_forward(WIDTH, 32)
    block = DecoderBlock(
        SelfAttention(WIDTH, HEADS, causal=True),
        cross_attention(WIDTH, HEADS),
        dense,
        norm=norm,
        arrange=post_norm,
    ).double()
    theirs = nn.TransformerDecoderLayer(WIDTH, HEADS, 32, dropout=0.0, batch_first=True).double()
    _copy(block.attention, theirs.self_attn)
    cross = block.cross
    with torch.no_grad():
        theirs.multihead_attn.in_proj_weight.copy_(
            torch.cat([cross.query.weight, cross.key.weight, cross.value.weight])
        )
        theirs.multihead_attn.in_proj_bias.copy_(torch.cat([cross.query.bias, cross.key.bias, cross.value.bias]))
    _give(
        (cross.answer, dense[0], dense[2], *block.norms),
        (theirs.multihead_attn.out_proj, theirs.linear1, theirs.linear2, theirs.norm1, theirs.norm2, theirs.norm3),
    )
    y, z = torch.randn(2, 5, WIDTH, dtype=torch.float64), torch.randn(2, 8, WIDTH, dtype=torch.float64)
    seen = torch.arange(8) < torch.tensor([[8], [3]])
    expected = theirs(y, z, tgt_mask=~causal_mask(5), memory_key_padding_mask=~seen)
    return close(block(y, z, None, seen[:, None]), expected, atol=1e-12)


@claim("B10.1.1-8", "B10.1.1-9")
def who_may_see_whom() -> Evidence:
    """An encoder sees all, GPT the past alone, a decoder its own past and all of the source (book sec. 10.1.1)."""
    torch.manual_seed(0)
    x = torch.randn(1, 6, WIDTH, dtype=torch.float64)
    both = Block(SelfAttention(WIDTH, HEADS), feed_forward(WIDTH), norm=norm).double()
    past = Block(SelfAttention(WIDTH, HEADS, causal=True), feed_forward(WIDTH), norm=norm).double()
    decoder = _decoder_block()
    written = torch.randn(1, 4, WIDTH, dtype=torch.float64)
    one_sided = reached(past, x)
    return all_of(
        encoder_sees_all=at_least(reached(both, x), 1e-6),
        gpt_sees_the_past=at_least(one_sided[causal_mask(6)], 1e-6),
        and_never_the_future=close(one_sided[~causal_mask(6)], 0.0),
        decoder_sees_all_of_the_source=at_least(reached(lambda z: decoder(written, z), x), 1e-6),
    )


@claim("B10.1.1-1", "B10.1.1-7")
def the_assembled_model_runs() -> Evidence:
    """Embeddings, encoder, decoder, softmax: n words in, m ≠ n distributions out (book sec. 10.1.1)."""
    torch.manual_seed(0)
    model = seq2seq((15, 20), 12, width=WIDTH, heads=HEADS, hidden=64, dropout=0.5, arrange=post_norm)
    with torch.no_grad():
        probability = model(torch.randint(1, 15, (3, 9)), torch.randint(1, 20, (3, 5))).softmax(-1)
    return all_of(
        shape=close(torch.tensor(probability.shape), torch.tensor([3, 5, 20])),
        sums=close(probability.sum(-1), 1.0, atol=1e-5),
    )


@claim("B10.1.1-6", "B10.1.1-7")
def reading_word_by_word_is_reading_at_once() -> Evidence:
    """Teacher forcing gives all logits at once; word by word with a cache they are the same (book sec. 10.1.1)."""
    model, source, target = _small()
    with torch.no_grad():
        at_once = model(source, target)
    reader, state, steps = model.given(source), None, []
    for t in range(target.shape[1]):
        logits, state = reader.read(target[:, t : t + 1], state)
        steps.append(logits)
    return close(torch.stack(steps, 1), at_once, atol=1e-12)


@claim("B10.1.1-4", "B10.1.1-5", "B10.1.1-7")
def filler_changes_nothing() -> Evidence:
    """However much filler follows source or target: the same codes, logits and loss (book sec. 10.1.1)."""
    model, source, target = _small()
    longer, written = (torch.cat([x, x.new_zeros(len(x), 3)], 1) for x in (source, target))
    with torch.no_grad():
        return all_of(
            codes=close(model.encoder(longer)[:, : source.shape[1]], model.encoder(source), atol=1e-12),
            logits=close(model(longer, written)[:, : target.shape[1]], model(source, target), atol=1e-12),
            loss=close(model.loss(longer, written), model.loss(source, target), atol=1e-12),
        )


@claim("B10.1.1-5", "B10.1-8")
def only_pre_norm_calms_the_gradient_with_depth() -> Evidence:
    """|∂ℓ/∂W| of the last layer at the start falls as 1/√depth with pre-norm; with post-norm it does not fall.

    The residual stream of pre-norm grows with every layer and is divided by its size at the end; post-norm divides
    after each layer, which is why it needs a warm-up (Xiong et al. 2020).
    """
    depths = torch.tensor([2.0, 4.0, 8.0, 16.0])
    post = _last_gradients(depths, post_norm)
    return all_of(
        pre_norm=rate(depths, _last_gradients(depths, pre_norm), -0.5, atol=0.12),
        post_norm=at_least(post[1:] / post[0], 0.7),
    )


@erratum(
    "B10.1.1-7",
    printed="x = PositionalEmbedding(…) ⏎ (encoder_inputs)",
    right="x = PositionalEmbedding(…)(encoder_inputs), on one line",
)
def the_call_is_torn_from_its_layer() -> Correction:
    """Arguments stand on a line of their own, deeper than the line before: no Python program (book sec. 10.1.1)."""
    torn, whole = "x = embed(3, 5)\n          (tokens)\n", "x = embed(3, 5)(tokens)\n"
    return Correction(
        printed=runs(lambda: compile(torn, "listing", "exec"), unless=IndentationError),
        corrected=runs(lambda: compile(whole, "listing", "exec"), unless=IndentationError),
    )


@erratum(
    "B10.1.1-7",
    printed="decoder = Model([decoder_inputs, encoded_seq_inputs], …): codes cross the border, their mask does not",
    right="the source's padding mask goes to cross-attention with the codes",
)
def the_mask_is_lost_on_the_way_to_the_decoder() -> Correction:
    """As models of their own, encoder and decoder share no mask: filler changes the answer (book sec. 10.1.1)."""
    model, source, target = _small()
    longer = torch.cat([source, source.new_zeros(len(source), 3)], 1)
    with torch.no_grad():
        without_mask = [
            model.read_on(target, model.offer(x), None, model.empty_cache(len(target))) for x in (source, longer)
        ]
        with_mask = [model(x, target)[:, -1] for x in (source, longer)]
    return Correction(
        printed=close(without_mask[1], without_mask[0], atol=1e-9),
        corrected=close(with_mask[1], with_mask[0], atol=1e-9),
    )


@erratum(
    "B10.1.1-6",
    printed="attention from target to source masked by causal ∧ target padding (the Keras example behind the listing)",
    right="masked by the source's padding alone",
)
def the_source_has_no_future() -> Correction:
    """The first word written may need the last word read; a causal mask on the source forbids it (book sec. 10.1.1)."""
    torch.manual_seed(0)
    block = _decoder_block()
    source, target = (torch.randn(1, 5, WIDTH, dtype=torch.float64) for _ in range(2))
    as_printed = reached(lambda z: block(target, z, None, causal_mask(5)[None]), source)
    right = reached(lambda z: block(target, z), source)
    return Correction(printed=at_least(as_printed[0, -1], 1e-6), corrected=at_least(right[0, -1], 1e-6))


@claim("B10.1.1-3", "B10.1.1-7")
def a_sentence_beyond_the_table_is_refused() -> Evidence:
    """There is a vector for each of `places` places; a longer source or target gets a sentence (book sec. 10.1.1)."""
    model, source, target = _small()
    long = torch.ones(2, 30, dtype=torch.long)
    return all_of(
        source=raises(ValueError, lambda: model(long, target)), target=raises(ValueError, lambda: model(source, long))
    )


def _decoder_block() -> DecoderBlock:
    own = SelfAttention(WIDTH, HEADS, causal=True)
    return DecoderBlock(own, cross_attention(WIDTH, HEADS), feed_forward(WIDTH), norm=norm).double()


def _small() -> tuple[Transformer, Tensor, Tensor]:
    """A transformer, sources of unequal length, and targets."""
    torch.manual_seed(0)
    model = seq2seq((15, 20), 16, width=WIDTH, heads=HEADS).double().eval()
    source, target = torch.randint(1, 15, (2, 9)), torch.randint(1, 20, (2, 6))
    source[1, 5:] = 0
    return model, source, target


def _last_gradients(depths: Tensor, arrange: Arrangement) -> Tensor:
    """The length of the gradient of the last dense layer's second matrix, for stacks of these depths."""
    return torch.tensor([_last_gradient(int(depth), arrange) for depth in depths])


def _last_gradient(depth: int, arrange: Arrangement) -> float:
    """Its root mean square over a few starts, Xavier's, with tokens that say nothing of the targets."""
    squares = 0.0
    for seed in range(4):
        torch.manual_seed(seed)
        stack = encoder(50, 12, width=32, heads=4, depth=depth, arrange=arrange, padding=None)
        head = nn.Linear(32, 50)
        for parameter in (*stack.blocks.parameters(), *head.parameters()):
            if parameter.ndim == 2:
                nn.init.xavier_uniform_(parameter)
        for parameter in stack.embedding.parameters():
            nn.init.normal_(parameter, std=0.1)
        tokens, wanted = torch.randint(50, (2, 8, 12))
        nn.functional.cross_entropy(head(stack(tokens)).flatten(0, 1), wanted.flatten()).backward()
        last = dict(stack.named_parameters())[f"blocks.{depth - 1}.dense.2.weight"].grad
        assert last is not None
        squares += float(last.square().sum())
    return sqrt(squares / 4)


def _copy(ours: SelfAttention, theirs: nn.MultiheadAttention) -> None:
    with torch.no_grad():
        theirs.in_proj_weight.copy_(ours.ask.weight)
        theirs.in_proj_bias.copy_(ours.ask.bias)
    _give((ours.answer,), (theirs.out_proj,))


def _give(ours: Sequence[nn.Module], theirs: Sequence[nn.Module]) -> None:
    """Copy the weights of each module into the one opposite."""
    for one, other in zip(ours, theirs, strict=True):
        other.load_state_dict(one.state_dict())
