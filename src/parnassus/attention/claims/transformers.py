"""Claims about encoders, decoders and encoder-decoder transformers: attention masks and padding (book sec. 10.1.1)."""

from collections.abc import Callable, Sequence
from math import sqrt

import torch
from torch import Tensor, nn

from parnassus.atlas import (
    Correction,
    Evidence,
    all_of,
    claim,
    close,
    erratum,
    greater_equal,
    less_equal,
    raises,
    rate,
    runs,
)
from parnassus.attention.core.masks import causal_mask
from parnassus.attention.core.multi_head import cross_attention
from parnassus.attention.core.self_attention import SelfAttention
from parnassus.attention.models.block import Block, DecoderBlock, ResidualConnection, feed_forward, post_norm, pre_norm
from parnassus.attention.models.encoder import encoder
from parnassus.attention.models.seq2seq import Transformer, seq2seq
from parnassus.attention.positions.learned import PositionalEmbedding

WIDTH, HEADS = 16, 4


def norm() -> nn.Module:
    return nn.LayerNorm(WIDTH)


def position_jacobian(function: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """Matrix (t, s) of the largest entries of |∂y_t/∂x_s|."""
    jacobian = torch.autograd.functional.jacobian(lambda row: function(row[None])[0], x[0])
    largest: Tensor = jacobian.abs().amax((1, 3))
    return largest


@claim("B10.1.1-5")
def encoder_layer_matches_torch() -> Evidence:
    """LN(x + MHA(x)), then LN(a + FFN(a)): torch's encoder layer with the same weights (book sec. 10.1.1)."""
    torch.manual_seed(0)
    dense = feed_forward(WIDTH, 32)
    block = Block(SelfAttention(WIDTH, HEADS), dense, norm=norm, residual=post_norm).double()
    library = nn.TransformerEncoderLayer(WIDTH, HEADS, 32, dropout=0.0, batch_first=True).double()
    _copy_attention(block.attention, library.self_attn)
    _copy_parameters(
        (dense[0], dense[2], *block.norms), (library.linear1, library.linear2, library.norm1, library.norm2)
    )
    x = torch.randn(3, 7, WIDTH, dtype=torch.float64)
    visible = torch.arange(7) < torch.tensor([[7], [4], [5]])
    difference = block(x, visible[:, None]) - library(x, src_key_padding_mask=~visible)
    return less_equal(difference[visible].abs(), 1e-12)


@claim("B10.1.1-6")
def decoder_layer_matches_torch() -> Evidence:
    """Causal self-attention, cross-attention, then FFN: torch's layer with the same weights (book sec. 10.1.1)."""
    torch.manual_seed(0)
    dense = feed_forward(WIDTH, 32)
    block = DecoderBlock(
        SelfAttention(WIDTH, HEADS, causal=True),
        cross_attention(WIDTH, HEADS),
        dense,
        norm=norm,
        residual=post_norm,
    ).double()
    library = nn.TransformerDecoderLayer(WIDTH, HEADS, 32, dropout=0.0, batch_first=True).double()
    _copy_attention(block.attention, library.self_attn)
    cross = block.cross
    with torch.no_grad():
        library.multihead_attn.in_proj_weight.copy_(
            torch.cat([cross.query.weight, cross.key.weight, cross.value.weight])
        )
        library.multihead_attn.in_proj_bias.copy_(torch.cat([cross.query.bias, cross.key.bias, cross.value.bias]))
    _copy_parameters(
        (cross.out_proj, dense[0], dense[2], *block.norms),
        (
            library.multihead_attn.out_proj,
            library.linear1,
            library.linear2,
            library.norm1,
            library.norm2,
            library.norm3,
        ),
    )
    y, z = torch.randn(2, 5, WIDTH, dtype=torch.float64), torch.randn(2, 8, WIDTH, dtype=torch.float64)
    visible = torch.arange(8) < torch.tensor([[8], [3]])
    expected = library(y, z, tgt_mask=~causal_mask(5), memory_key_padding_mask=~visible)
    return close(block(y, z, None, visible[:, None]), expected, atol=1e-12)


@claim("B10.1.1-8", "B10.1.1-9")
def outputs_depend_on_the_positions_their_mask_allows() -> Evidence:
    """An encoder depends on all inputs, GPT on the past, a decoder on its past and the source (book sec. 10.1.1)."""
    torch.manual_seed(0)
    x = torch.randn(1, 6, WIDTH, dtype=torch.float64)
    encoder_block = Block(SelfAttention(WIDTH, HEADS), feed_forward(WIDTH), norm=norm).double()
    causal_block = Block(SelfAttention(WIDTH, HEADS, causal=True), feed_forward(WIDTH), norm=norm).double()
    decoder = _decoder_block()
    target = torch.randn(1, 4, WIDTH, dtype=torch.float64)
    causal_jacobian = position_jacobian(causal_block, x)
    return all_of(
        encoder_depends_on_all=greater_equal(position_jacobian(encoder_block, x), 1e-6),
        gpt_depends_on_the_past=greater_equal(causal_jacobian[causal_mask(6)], 1e-6),
        gpt_does_not_depend_on_the_future=close(causal_jacobian[~causal_mask(6)], 0.0),
        decoder_depends_on_all_of_the_source=greater_equal(position_jacobian(lambda z: decoder(target, z), x), 1e-6),
    )


@claim("B10.1.1-1", "B10.1.1-7", "B10.1.1-8")
def a_seq2seq_transformer_returns_one_distribution_per_target_token() -> Evidence:
    """Embeddings, encoder, decoder, softmax: n words in, m ≠ n distributions out (book sec. 10.1.1)."""
    torch.manual_seed(0)
    model = seq2seq((15, 20), 12, width=WIDTH, heads=HEADS, hidden=64, dropout=0.5, residual=post_norm)
    with torch.no_grad():
        probability = model(torch.randint(1, 15, (3, 9)), torch.randint(1, 20, (3, 5))).softmax(-1)
    return all_of(
        shape=close(torch.tensor(probability.shape), torch.tensor([3, 5, 20])),
        sums=close(probability.sum(-1), 1.0, atol=1e-5),
    )


@claim("B10.1.1-6", "B10.1.1-7")
def cached_decoding_equals_teacher_forcing() -> Evidence:
    """Teacher forcing gives all logits at once; token by token with a cache they are the same (book sec. 10.1.1)."""
    model, source, target = _small_transformer()
    with torch.no_grad():
        expected = model(source, target)
    conditioned_decoder, state, steps = model.condition_on(source), None, []
    for t in range(target.shape[1]):
        logits, state = conditioned_decoder.read(target[:, t : t + 1], state)
        steps.append(logits)
    return close(torch.stack(steps, 1), expected, atol=1e-12)


@claim("B10.1.1-4", "B10.1.1-5", "B10.1.1-7")
def padding_changes_no_output() -> Evidence:
    """Padding of source or target changes neither encodings nor logits nor loss (book sec. 10.1.1)."""
    model, source, target = _small_transformer()
    padded_source, padded_target = (torch.cat([x, x.new_zeros(len(x), 3)], 1) for x in (source, target))
    with torch.no_grad():
        return all_of(
            encodings=close(model.encoder(padded_source)[:, : source.shape[1]], model.encoder(source), atol=1e-12),
            logits=close(model(padded_source, padded_target)[:, : target.shape[1]], model(source, target), atol=1e-12),
            loss=close(model.loss(padded_source, padded_target), model.loss(source, target), atol=1e-12),
        )


@claim("B10.1.1-5", "B10.1-8")
def gradients_of_the_last_layer_decrease_with_depth_for_pre_norm_only() -> Evidence:
    """The initial gradient of the last layer falls as 1/√depth with pre-norm, not with post-norm (book sec. 10.1.1).

    The residual stream of pre-norm grows with every layer and is normalised at the end; post-norm normalises after each
    layer and therefore needs a warm-up (Xiong et al. 2020).
    """
    depths = torch.tensor([2.0, 4.0, 8.0, 16.0])
    post = _last_gradients(depths, post_norm)
    return all_of(
        pre_norm=rate(depths, _last_gradients(depths, pre_norm), -0.5, atol=0.12),
        post_norm=greater_equal(post[1:] / post[0], 0.7),
    )


@erratum(
    "B10.1.1-7",
    printed="x = PositionalEmbedding(…) ⏎ (encoder_inputs)",
    right="x = PositionalEmbedding(…)(encoder_inputs), on one line",
)
def the_printed_call_is_separated_from_its_layer() -> Correction:
    """The arguments are on a separate, indented line, which is a syntax error (book sec. 10.1.1)."""
    separated, joined = "x = embed(3, 5)\n          (tokens)\n", "x = embed(3, 5)(tokens)\n"
    return Correction(
        printed=runs(lambda: compile(separated, "listing", "exec"), unless=IndentationError),
        corrected=all_of(
            listing=runs(lambda: compile(joined, "listing", "exec"), unless=IndentationError),
            call=close(
                torch.tensor(PositionalEmbedding(3, 5, 4)(torch.zeros(1, 5).long()).shape), torch.tensor([1, 5, 4])
            ),
        ),
    )


@erratum(
    "B10.1.1-7",
    printed="decoder = Model([decoder_inputs, encoded_seq_inputs], …): encodings are passed on, their mask is not",
    right="the source's padding mask is passed to cross-attention with the encodings",
)
def the_source_mask_must_reach_the_decoder() -> Correction:
    """As separate models, encoder and decoder share no mask: padding changes the output (book sec. 10.1.1)."""
    model, source, target = _small_transformer()
    padded_source = torch.cat([source, source.new_zeros(len(source), 3)], 1)
    with torch.no_grad():
        without_mask = [
            model.next_logits(target, model.project_source(x), None, model.empty_cache(len(target)))
            for x in (source, padded_source)
        ]
        with_mask = [model(x, target)[:, -1] for x in (source, padded_source)]
    return Correction(
        printed=close(without_mask[1], without_mask[0], atol=1e-9),
        corrected=close(with_mask[1], with_mask[0], atol=1e-9),
    )


@erratum(
    "B10.1.1-6",
    printed="attention from target to source masked by causal ∧ target padding (the Keras example behind the listing)",
    right="masked by the source's padding alone",
)
def cross_attention_is_not_causal() -> Correction:
    """The first target may depend on the last source token; a causal mask prevents it (book sec. 10.1.1)."""
    torch.manual_seed(0)
    block = _decoder_block()
    source, target = (torch.randn(1, 5, WIDTH, dtype=torch.float64) for _ in range(2))
    causal_jacobian = position_jacobian(lambda z: block(target, z, None, causal_mask(5)[None]), source)
    full_jacobian = position_jacobian(lambda z: block(target, z), source)
    return Correction(
        printed=greater_equal(causal_jacobian[0, -1], 1e-6), corrected=greater_equal(full_jacobian[0, -1], 1e-6)
    )


@claim("B10.1.1-3", "B10.1.1-7")
def sequences_beyond_the_maximum_length_raise_an_error() -> Evidence:
    """The position table has a fixed length; a longer source or target raises a ValueError (book sec. 10.1.1)."""
    model, source, target = _small_transformer()
    too_long = torch.ones(2, 30, dtype=torch.long)
    return all_of(
        source=raises(ValueError, lambda: model(too_long, target)),
        target=raises(ValueError, lambda: model(source, too_long)),
    )


def _decoder_block() -> DecoderBlock:
    self_attention = SelfAttention(WIDTH, HEADS, causal=True)
    return DecoderBlock(self_attention, cross_attention(WIDTH, HEADS), feed_forward(WIDTH), norm=norm).double()


def _small_transformer() -> tuple[Transformer, Tensor, Tensor]:
    """A transformer, sources of unequal length, and targets."""
    torch.manual_seed(0)
    model = seq2seq((15, 20), 16, width=WIDTH, heads=HEADS).double().eval()
    source, target = torch.randint(1, 15, (2, 9)), torch.randint(1, 20, (2, 6))
    source[1, 5:] = 0
    return model, source, target


def _last_gradients(depths: Tensor, residual: ResidualConnection) -> Tensor:
    """Gradient norms of the last dense layer's second matrix, for stacks of these depths."""
    return torch.tensor([_last_gradient(int(depth), residual) for depth in depths])


def _last_gradient(depth: int, residual: ResidualConnection) -> float:
    """Root mean square over four Xavier initialisations, with targets independent of the tokens."""
    squares = 0.0
    for seed in range(4):
        torch.manual_seed(seed)
        stack = encoder(50, 12, width=32, heads=4, depth=depth, residual=residual, padding=None)
        head = nn.Linear(32, 50)
        for parameter in (*stack.blocks.parameters(), *head.parameters()):
            if parameter.ndim == 2:
                nn.init.xavier_uniform_(parameter)
        for parameter in stack.embedding.parameters():
            nn.init.normal_(parameter, std=0.1)
        tokens, labels = torch.randint(50, (2, 8, 12))
        nn.functional.cross_entropy(head(stack(tokens)).flatten(0, 1), labels.flatten()).backward()
        last = dict(stack.named_parameters())[f"blocks.{depth - 1}.dense.2.weight"].grad
        assert last is not None
        squares += float(last.square().sum())
    return sqrt(squares / 4)


def _copy_attention(layer: SelfAttention, library: nn.MultiheadAttention) -> None:
    with torch.no_grad():
        library.in_proj_weight.copy_(layer.in_proj.weight)
        library.in_proj_bias.copy_(layer.in_proj.bias)
    _copy_parameters((layer.out_proj,), (library.out_proj,))


def _copy_parameters(sources: Sequence[nn.Module], destinations: Sequence[nn.Module]) -> None:
    """Copy the parameters of each module into its counterpart."""
    for source, destination in zip(sources, destinations, strict=True):
        destination.load_state_dict(source.state_dict())
