"""Binary prefix codes, by the lengths of their words: what entropy and divergence cost in bits (Diehl sec. 1.4)."""

from heapq import heapify, heappop, heappush

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.probability.simplex import require_distribution


def shannon_lengths(q: Float[Tensor, " outcomes"]) -> Int[Tensor, " outcomes"]:
    """⌈−log₂ q_i⌉ bits for outcome i: short words for what Q holds likely.

    Words of these lengths exist that are no prefix of one another, since Σ_i 2^(−length_i) ≤ 1 (Kraft).
    """
    _require_possible(q)
    return (-q.log2()).ceil().long()


def huffman_lengths(q: Float[Tensor, " outcomes"]) -> Int[Tensor, " outcomes"]:
    """Lengths in bits of a code that no prefix code beats on average under Q (Huffman 1952).

    The two least likely groups are joined until one is left; each joining makes their words one bit longer.
    """
    _require_possible(q)
    lengths = torch.zeros(len(q), dtype=torch.long, device=q.device)
    groups = [(float(share), index, [index]) for index, share in enumerate(q)]
    heapify(groups)
    while len(groups) > 1:
        (first, _, some), (second, order, others) = heappop(groups), heappop(groups)
        lengths[some + others] += 1
        heappush(groups, (first + second, order, some + others))
    return lengths


def kraft_sum(lengths: Int[Tensor, " outcomes"]) -> Float[Tensor, ""]:
    """Σ_i 2^(−length_i): at most 1 exactly when a prefix code with these lengths exists."""
    return torch.exp2(-lengths.double()).sum()


def prefix_words(lengths: Int[Tensor, " outcomes"]) -> list[str]:
    """Words of 0 and 1 of these lengths, none the beginning of another, in the order of the outcomes.

    Shortest first, each word is the binary number after the last, with zeros added on the right up to its length.
    """
    if not float(kraft_sum(lengths)) <= 1 or (len(lengths) > 1 and not int(lengths.min()) > 0):
        raise ValueError(f"no prefix code has these lengths: Σ 2^(−length) is {float(kraft_sum(lengths)):g}, above 1")
    words, number, before = [""] * len(lengths), -1, 0
    for outcome in lengths.argsort(stable=True).tolist():
        length = int(lengths[outcome])
        number, before = (number + 1) << (length - before), length
        words[outcome] = f"{number:0{length}b}" if length else ""
    return words


def expected_length(p: Float[Tensor, " outcomes"], lengths: Int[Tensor, " words"]) -> Float[Tensor, ""]:
    """Σ_i p_i length_i: bits that an outcome drawn from P takes on average."""
    require_distribution(p)
    if p.shape != lengths.shape:
        raise ValueError(f"need a length for every outcome; got {len(p)} outcomes, {len(lengths)} lengths")
    return p @ lengths.to(p.dtype)


def _require_possible(q: Tensor) -> None:
    require_distribution(q, "q")
    if not float(q.min()) > 0:
        raise ValueError(f"an outcome of probability 0 gets no word; the least entry of q is {float(q.min()):g}")
