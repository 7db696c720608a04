"""Claims about masks and transformer blocks (Zhao sec. 11; book sec. 10.1)."""

import torch
from torch import Tensor, nn

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.attention.core.dot_product import attention, fused_attention, masked_softmax
from parnassus.attention.core.masks import length_mask
from parnassus.attention.core.self_attention import SelfAttention
from parnassus.attention.models.block import Block, ResidualConnection, feed_forward, post_norm, pre_norm
from parnassus.attention.positions.learned import PositionalEmbedding
from parnassus.layers.token_embedding import padding_mask
from parnassus.probability import standard_normal

MASKED_SCORE = -1e6  # score of masked keys in the notes


@claim("Z11.8")
def masked_keys_have_zero_weight_and_zero_gradient() -> Evidence:
    """Masked keys have weight 0 exactly and no gradient; the others have their own softmax (Zhao sec. 11)."""
    scores, values = (
        standard_normal(2, 3, 6).float().requires_grad_(),
        standard_normal(2, 6, 4, seed=1).float().requires_grad_(),
    )
    original = scores.detach().clone()
    mask = length_mask(torch.tensor([4, 1]), 6)
    weights = masked_softmax(scores, mask)
    gradients = torch.autograd.grad((weights @ values).square().sum(), (scores, values))
    masked = ~mask.expand_as(scores)
    return all_of(
        masked_weight=close(weights[masked], 0.0),
        sum_of_unmasked_weights=close(weights.sum(-1), 1.0, atol=1e-6),
        softmax_of_unmasked_scores=close(weights[0, :, :4], original[0, :, :4].softmax(-1), rtol=1e-6),
        gradient_of_masked_scores=close(gradients[0][masked], 0.0),
        gradient_of_masked_values=close(gradients[1][0, 4:], 0.0),
        gradient_of_unmasked_scores=greater_equal(gradients[0][0, :, :4].abs().max(), 0.01),
        scores_not_modified_in_place=close(scores, original),
    )


@claim("Z11.8")
def a_large_negative_score_is_not_minus_infinity() -> Evidence:
    """−10⁶ masks exactly in float32 unless scores are lower; length 0 gives uniform weights, −∞ NaN (Zhao sec. 11)."""
    scores, mask = standard_normal(3, 6).float(), length_mask(torch.tensor(4), 6)
    empty = torch.zeros_like(mask)
    low_scores = scores - 2e6

    def constant_masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
        return scores.masked_fill(~mask, MASKED_SCORE).softmax(-1)

    return all_of(
        equal_weights=close(constant_masked_softmax(scores, mask), masked_softmax(scores, mask)),
        length_0_uniform_with_constant=close(constant_masked_softmax(scores, empty), 1 / 6, rtol=1e-6),
        length_0_nan_with_infinity=close(
            float(scores.masked_fill(~empty, -torch.inf).softmax(-1).isnan().float().mean()), 1.0
        ),
        length_0_zero_with_masked_softmax=close(masked_softmax(scores, empty), 0.0),
        low_scores_masked_weight_with_constant=close(
            constant_masked_softmax(low_scores, mask)[:, 4:].sum(-1), 1.0, rtol=1e-6
        ),
        low_scores_masked_weight_with_masked_softmax=close(masked_softmax(low_scores, mask)[:, 4:], 0.0),
        minus_infinity_in_float16=close(float(torch.tensor(MASKED_SCORE).half()), -torch.inf),
    )


@claim("Z11.8", "B10.1.1-4")
def nan_in_padding_does_not_propagate() -> Evidence:
    """NaN in masked keys and values changes no output or gradient; weights of 0 alone propagate it (Zhao sec. 11)."""
    query, key, value = standard_normal(2, 3, 4), standard_normal(2, 6, 4, seed=1), standard_normal(2, 6, 5, seed=2)
    mask = length_mask(torch.tensor([4, 0]), 6)
    clean = attention(query, key, value, mask)
    with_nan = [x.masked_fill(~mask.mT, torch.nan) for x in (key, value)]
    query, key, value = leaves = [x.requires_grad_() for x in (query, *with_nan)]
    output, fused = attention(query, key, value, mask).output, fused_attention(query, key, value, mask)
    gradients = [*torch.autograd.grad(output.sum(), leaves), *torch.autograd.grad(fused.sum(), leaves)]
    naive = clean.weights @ with_nan[1]
    return all_of(
        output=close(output, clean.output),
        fused=close(fused, clean.output, rtol=1e-9, atol=1e-12),
        empty_sequence_output=close(output[1], 0.0),
        non_finite_gradients=close(float(sum((~gradient.isfinite()).sum() for gradient in gradients)), 0.0),
        nan_fraction_with_zero_weights_alone=greater_equal(float(naive.isnan().float().mean()), 0.99),
    )


@erratum("Z11.8", printed="set the attention weights to −10⁶", right="set the scores to −10⁶, then take the softmax")
def masking_sets_scores_and_not_weights() -> Correction:
    """Weights of −10⁶ do not sum to 1, and the output is not the mean of the unmasked values (Zhao sec. 11)."""
    scores, values = standard_normal(3, 6), standard_normal(6, 4, seed=1)
    mask = length_mask(torch.tensor(4), 6)
    expected = scores[:, :4].softmax(-1) @ values[:4]
    weights = scores.softmax(-1).masked_fill(~mask, MASKED_SCORE)
    corrected = scores.masked_fill(~mask, MASKED_SCORE).softmax(-1)
    return Correction(
        printed=all_of(
            sums=close(weights.sum(-1), 1.0, rtol=1e-6), output=close(weights @ values, expected, rtol=1e-6)
        ),
        corrected=all_of(
            sums=close(corrected.sum(-1), 1.0, rtol=1e-12), output=close(corrected @ values, expected, rtol=1e-9)
        ),
    )


@claim("B10.1.1-4")
@torch.no_grad()
def padding_tokens_are_masked() -> Evidence:
    """Tokens with index 0 are masked: their number and their embeddings do not change the output (book sec. 10.1.1)."""
    torch.manual_seed(0)
    embedding = PositionalEmbedding(10, 12, 8).double()
    blocks = [Block(SelfAttention(8, 2), feed_forward(8), norm=lambda: nn.LayerNorm(8)).double() for _ in range(2)]

    def encode(tokens: Tensor, *, use_mask: bool = True) -> Tensor:
        x: Tensor = embedding(tokens)
        for block in blocks:
            x = block(x, padding_mask(tokens) if use_mask else None)
        return x

    text = torch.tensor([[3, 1, 4, 1, 5]])
    padded = nn.functional.pad(text, (0, 6))
    output = encode(padded)
    unmasked = encode(padded, use_mask=False)
    embedding.tokens.weight[0] += 100.0
    return all_of(
        mask=close(padding_mask(padded).float(), (padded != 0)[:, None].float()),
        without_padding=close(output[:, :5], encode(text), rtol=1e-9, atol=1e-12),
        other_padding_embedding=close(encode(padded)[:, :5], output[:, :5], rtol=1e-9, atol=1e-12),
        effect_without_the_mask=greater_equal((unmasked[:, :5] - output[:, :5]).abs().max(), 0.01),
    )


def library_block(ours: Block, *, norm_first: bool) -> nn.TransformerEncoderLayer:
    """nn.TransformerEncoderLayer with the weights of `ours`; `norm_first` selects pre-norm."""
    library = nn.TransformerEncoderLayer(
        8, 2, 16, dropout=0.0, batch_first=True, norm_first=norm_first, dtype=torch.float64
    )
    pairs = {
        "self_attn.in_proj_": ours.attention.in_proj,
        "self_attn.out_proj.": ours.attention.out_proj,
        "linear1.": ours.dense.get_submodule("0"),
        "linear2.": ours.dense.get_submodule("2"),
        "norm1.": ours.norms[0],
        "norm2.": ours.norms[1],
    }
    library.load_state_dict({name + key: v for name, part in pairs.items() for key, v in part.state_dict().items()})
    return library


def build_block(*, norm_first: bool, seed: int = 0) -> Block:
    torch.manual_seed(seed)
    residual = pre_norm if norm_first else post_norm
    return Block(SelfAttention(8, 2), feed_forward(8, 16), norm=lambda: nn.LayerNorm(8), residual=residual).double()


@claim("B10.1-8")
@torch.no_grad()
def transformer_block_matches_the_encoder_layer_of_torch() -> Evidence:
    """Attention and a dense network, each inside norm(x + F(x)): the encoder layer of torch (book fig. 10.1).

    After the last norm every position has mean 0 and variance 1. A pre-norm block, x + F(norm(x)), is the identity if
    the output layers of both parts are zero.
    """
    x = standard_normal(2, 5, 8)
    post, pre, zeroed = build_block(norm_first=False), build_block(norm_first=True), build_block(norm_first=True)
    for name in ("attention.out_proj", "dense.2"):
        for parameter in zeroed.get_submodule(name).parameters():
            parameter.zero_()
    return all_of(
        post_norm=close(post(x), library_block(post, norm_first=False)(x), rtol=1e-9, atol=1e-12),
        pre_norm=close(pre(x), library_block(pre, norm_first=True)(x), rtol=1e-9, atol=1e-12),
        mean=close(post(x).mean(-1), 0.0, atol=1e-12),
        variance=close(post(x).var(-1, unbiased=False), 1.0, rtol=1e-3),
        zero_output_layers_give_the_identity=close(zeroed(x), x),
    )


@claim("B10.1-8")
def residual_connections_preserve_gradients() -> Evidence:
    """Through 24 blocks x + F(norm(x)) gradients are preserved; without the sum they vanish (book sec. 10.1)."""
    blocks = [build_block(norm_first=True, seed=number) for number in range(24)]

    def relative_gradient(residual: ResidualConnection) -> float:
        """Norm of the gradient at the input, relative to that at the output."""
        x = start = standard_normal(2, 5, 8).requires_grad_()
        for layer in blocks:
            layer.residual = residual
            x = layer(x)
        output_gradient = standard_normal(2, 5, 8, seed=1)
        return float(torch.autograd.grad((x * output_gradient).sum(), start)[0].norm() / output_gradient.norm())

    return all_of(
        with_residual_connections=greater_equal(relative_gradient(pre_norm), 0.5),
        without_residual_connections=less_equal(relative_gradient(lambda x, norm, part: part(norm(x))), 1e-3),
    )


@erratum("B10.1-8", printed="two feed-forward layers with ReLU activations", right="two layers, one ReLU between them")
@torch.no_grad()
def one_activation_between_two_layers() -> Correction:
    """A ReLU after the second layer allows non-negative updates only; Vaswani et al. have none (book sec. 10.1)."""
    ours, x = build_block(norm_first=True), standard_normal(2, 5, 8)
    library = library_block(ours, norm_first=True)(x)
    corrected = ours(x)
    ours.dense = nn.Sequential(ours.dense, nn.ReLU())
    return Correction(
        printed=close(ours(x), library, rtol=1e-6), corrected=close(corrected, library, rtol=1e-9, atol=1e-12)
    )
