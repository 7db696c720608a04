"""Claims about masks and about the blocks of a transformer (Zhao sec. 11; book sec. 10.1)."""

import torch
from torch import Tensor, nn

from parnassus.atlas import Correction, Evidence, all_of, at_least, at_most, claim, close, erratum
from parnassus.attention.block import Arrangement, Block, feed_forward, post_norm, pre_norm
from parnassus.attention.dot_product import attend, attention, masked_softmax
from parnassus.attention.embedding import PositionalEmbedding
from parnassus.attention.masks import length_mask, padding_mask
from parnassus.attention.self_attention import SelfAttention

FAR = -1e6  # the score that the notes give to what is hidden


def normals(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


@claim("Z11.8")
def a_mask_cuts_the_softmax_short() -> Evidence:
    """Hidden keys get weight 0 exactly, the others their own softmax; no slope goes there (Zhao sec. 11)."""
    scores, values = normals(2, 3, 6).float().requires_grad_(), normals(2, 6, 4, seed=1).float().requires_grad_()
    given = scores.detach().clone()
    mask = length_mask(torch.tensor([4, 1]), 6)
    weights = masked_softmax(scores, mask)
    slopes = torch.autograd.grad((weights @ values).square().sum(), (scores, values))
    hidden = ~mask.expand_as(scores)
    return all_of(
        hidden_weight=close(weights[hidden], 0.0),
        sum_of_the_rest=close(weights.sum(-1), 1.0, atol=1e-6),
        truncated=close(weights[0, :, :4], given[0, :, :4].softmax(-1), rtol=1e-6),
        slope_into_hidden_scores=close(slopes[0][hidden], 0.0),
        slope_into_hidden_values=close(slopes[1][0, 4:], 0.0),
        slope_into_seen_scores=at_least(slopes[0][0, :, :4].abs().max(), 0.01),
        scores_are_left_as_they_were=close(scores, given),
    )


@claim("Z11.8")
def a_large_negative_score_is_not_minus_infinity() -> Evidence:
    """−10⁶ hides exactly in float32, but not from lower scores; at length 0 it is uniform, −∞ is NaN (Zhao sec. 11)."""
    scores, mask = normals(3, 6).float(), length_mask(torch.tensor(4), 6)
    nothing = torch.zeros_like(mask)
    low = scores - 2e6

    def by_far(scores: Tensor, mask: Tensor) -> Tensor:
        return scores.masked_fill(~mask, FAR).softmax(-1)

    return all_of(
        the_same_weights=close(by_far(scores, mask), masked_softmax(scores, mask)),
        length_0_uniform_with_it=close(by_far(scores, nothing), 1 / 6, rtol=1e-6),
        length_0_nan_with_infinity=close(
            float(scores.masked_fill(~nothing, -torch.inf).softmax(-1).isnan().float().mean()), 1.0
        ),
        length_0_nothing_here=close(masked_softmax(scores, nothing), 0.0),
        low_scores_weight_on_hidden_with_it=close(by_far(low, mask)[:, 4:].sum(-1), 1.0, rtol=1e-6),
        low_scores_weight_on_hidden_here=close(masked_softmax(low, mask)[:, 4:], 0.0),
        in_half_precision_it_is=close(float(torch.tensor(FAR).half()), -torch.inf),
    )


@claim("Z11.8", "B10.1.1-4")
def padding_may_hold_anything() -> Evidence:
    """NaN in hidden keys and values changes no output and no slope; weights of 0 let it through (Zhao sec. 11)."""
    query, key, value = normals(2, 3, 4), normals(2, 6, 4, seed=1), normals(2, 6, 5, seed=2)
    mask = length_mask(torch.tensor([4, 0]), 6)
    clean = attention(query, key, value, mask)
    spoiled = [x.masked_fill(~mask.mT, torch.nan) for x in (key, value)]
    query, key, value = leaves = [x.requires_grad_() for x in (query, *spoiled)]
    output, fused = attention(query, key, value, mask).output, attend(query, key, value, mask)
    slopes = [*torch.autograd.grad(output.sum(), leaves), *torch.autograd.grad(fused.sum(), leaves)]
    naive = clean.weights @ spoiled[1]
    return all_of(
        output=close(output, clean.output),
        fused=close(fused, clean.output, rtol=1e-9, atol=1e-12),
        an_empty_sequence_gets=close(output[1], 0.0),
        slopes_that_are_not_finite=close(float(sum((~slope.isfinite()).sum() for slope in slopes)), 0.0),
        nan_by_weights_of_0_alone=at_least(float(naive.isnan().float().mean()), 0.99),
    )


@erratum("Z11.8", printed="set the attention weights to −10⁶", right="set the scores to −10⁶, then take the softmax")
def it_is_the_scores_that_are_set() -> Correction:
    """Weights of −10⁶ are no distribution, and what they mix is no value that was seen (Zhao sec. 11)."""
    scores, values = normals(3, 6), normals(6, 4, seed=1)
    mask = length_mask(torch.tensor(4), 6)
    wanted = scores[:, :4].softmax(-1) @ values[:4]
    weights = scores.softmax(-1).masked_fill(~mask, FAR)
    corrected = scores.masked_fill(~mask, FAR).softmax(-1)
    return Correction(
        printed=all_of(sums=close(weights.sum(-1), 1.0, rtol=1e-6), mixed=close(weights @ values, wanted, rtol=1e-6)),
        corrected=all_of(
            sums=close(corrected.sum(-1), 1.0, rtol=1e-12), mixed=close(corrected @ values, wanted, rtol=1e-9)
        ),
    )


@claim("B10.1.1-4")
@torch.no_grad()
def filler_is_seen_by_nobody() -> Evidence:
    """Tokens that are 0 are hidden: how many follow, and what their vectors are, changes nothing (book sec. 10.1.1)."""
    torch.manual_seed(0)
    embedding = PositionalEmbedding(10, 12, 8).double()
    blocks = [Block(SelfAttention(8, 2), feed_forward(8), norm=lambda: nn.LayerNorm(8)).double() for _ in range(2)]

    def read(tokens: Tensor, *, hide: bool = True) -> Tensor:
        x: Tensor = embedding(tokens)
        for block in blocks:
            x = block(x, padding_mask(tokens) if hide else None)
        return x

    text = torch.tensor([[3, 1, 4, 1, 5]])
    padded = nn.functional.pad(text, (0, 6))
    before = read(padded)
    unhidden = read(padded, hide=False)
    embedding.tokens.weight[0] += 100.0
    return all_of(
        the_mask=close(padding_mask(padded).float(), (padded != 0)[:, None].float()),
        as_without_filler=close(before[:, :5], read(text), rtol=1e-9, atol=1e-12),
        another_filler=close(read(padded)[:, :5], before[:, :5], rtol=1e-9, atol=1e-12),
        without_the_mask=at_least((unhidden[:, :5] - before[:, :5]).abs().max(), 0.01),
    )


def library_block(ours: Block, *, first: bool) -> nn.TransformerEncoderLayer:
    """The encoder layer of torch with the weights of ours; `first` is pre-norm."""
    theirs = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True, norm_first=first, dtype=torch.float64)
    pairs = {
        "self_attn.in_proj_": ours.attention.ask,
        "self_attn.out_proj.": ours.attention.answer,
        "linear1.": ours.dense.get_submodule("0"),
        "linear2.": ours.dense.get_submodule("2"),
        "norm1.": ours.norms[0],
        "norm2.": ours.norms[1],
    }
    theirs.load_state_dict({name + key: v for name, part in pairs.items() for key, v in part.state_dict().items()})
    return theirs


def block(*, first: bool, seed: int = 0) -> Block:
    torch.manual_seed(seed)
    arrange = pre_norm if first else post_norm
    return Block(SelfAttention(8, 2), feed_forward(8, 16), norm=lambda: nn.LayerNorm(8), arrange=arrange).double()


@claim("B10.1-8")
@torch.no_grad()
def a_block_is_that_of_vaswani() -> Evidence:
    """Attention and a dense network, each inside norm(x + F(x)): the encoder layer of torch (book fig. 10.1).

    After the last norm every place has mean 0 and variance 1. Pre-norm, x + F(norm(x)), leaves the stream alone: where
    the parts are silent it is the identity.
    """
    x = normals(2, 5, 8)
    post, pre, silent = block(first=False), block(first=True), block(first=True)
    for name in ("attention.answer", "dense.2"):
        for parameter in silent.get_submodule(name).parameters():
            parameter.zero_()
    return all_of(
        post_norm=close(post(x), library_block(post, first=False)(x), rtol=1e-9, atol=1e-12),
        pre_norm=close(pre(x), library_block(pre, first=True)(x), rtol=1e-9, atol=1e-12),
        mean=close(post(x).mean(-1), 0.0, atol=1e-12),
        variance=close(post(x).var(-1, unbiased=False), 1.0, rtol=1e-3),
        silent_parts=close(silent(x), x),
    )


@claim("B10.1-8")
def the_residual_way_keeps_gradients_alive() -> Evidence:
    """Through 24 blocks with x + F(norm(x)) slopes arrive; without the sum they are lost (book sec. 10.1)."""
    blocks = [block(first=True, seed=number) for number in range(24)]

    def slope(arrange: Arrangement) -> float:
        """The slope at the input, in units of that at the output."""
        x = start = normals(2, 5, 8).requires_grad_()
        for each in blocks:
            each.arrange = arrange
            x = each(x)
        towards = normals(2, 5, 8, seed=1)
        return float(torch.autograd.grad((x * towards).sum(), start)[0].norm() / towards.norm())

    return all_of(
        with_the_sum=at_least(slope(pre_norm), 0.5),
        without=at_most(slope(lambda x, norm, part: part(norm(x))), 1e-3),
    )


@erratum("B10.1-8", printed="two feed-forward layers with ReLU activations", right="two layers, one ReLU between them")
@torch.no_grad()
def one_activation_between_two_layers() -> Correction:
    """A ReLU after the second layer could only ever add to the stream; Vaswani et al. have none (book sec. 10.1)."""
    ours, x = block(first=True), normals(2, 5, 8)
    theirs = library_block(ours, first=True)(x)
    right = ours(x)
    ours.dense = nn.Sequential(ours.dense, nn.ReLU())
    return Correction(printed=close(ours(x), theirs, rtol=1e-6), corrected=close(right, theirs, rtol=1e-9, atol=1e-12))
