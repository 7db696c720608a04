"""The beam as a tree: which beginnings of a sentence a search keeps, and which it drops (book sec. 9.3)."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Annotated

import torch
from torch import Tensor

from parnassus.atlas.marks import probe
from parnassus.data import pydoc_text
from parnassus.text.beam import Node, beam_search
from parnassus.text.ngrams import NGrams
from parnassus.text.stochastic_beam import stochastic_beam_search
from parnassus.text.words import WordTokeniser, split_words
from parnassus.touch import Answer, Arrow, Box, Graph, Numbers, Pick, Real, Whole

PROMPTS = ("The", "If the", "This is", "A class", "The value", "When a", "Note that", "It is")
WAYS = ("the likeliest", "by chance, none of them twice")
ROOM = 12  # letters that fit into a box


@cache
def _language() -> tuple[WordTokeniser, NGrams]:
    """The words of Python's help topics, and what follows two of them."""
    words = [word for word in split_words(pydoc_text().train) if word.isalpha() or word in ".,"]
    tokeniser = WordTokeniser.fit(" ".join(words))
    tokens = tokeniser.encode(" ".join(words))
    return tokeniser, NGrams.backed_off(tokens, 3, vocabulary=tokeniser.vocabulary, smoothing=0.5)


@probe()
def beam_as_a_tree(
    prompt: Annotated[int, Pick("the sentence begins", PROMPTS)] = 0,
    width: Annotated[int, Whole("width, beginnings kept at each step", 1, 6)] = 3,
    *,
    length: Annotated[int, Whole("words to add", 2, 8)] = 5,
    penalty: Annotated[float, Real("length penalty, α", 0.0, 2.0)] = 0.75,
    way: Annotated[int, Pick("which are kept", WAYS)] = 0,
    draw: Annotated[int, Whole("another draw, when kept by chance", 0, 20)] = 0,
) -> list[Answer]:
    """What a beam search keeps and drops, word by word (book sec. 9.3).

    Begin with width 1: that is greedy decoding, and the tree a line. Widen the beam until the marked sentence changes:
    its first words were not the likeliest. Then move α: at 0 the shortest sentences win, for every word costs. Kept by
    chance, the sentences are draws from the model, none of them twice: no better, but never the same.
    """
    tokeniser, model = _language()
    start, stop = tokeniser.encode(PROMPTS[prompt])[None], int(tokeniser.encode("."))

    def spelt(token: int) -> str:
        return tokeniser.decode(torch.tensor([token]))

    if way == 0:
        search = beam_search(model, start, width=width, length=length, stop=stop, penalty=penalty)
        found = search.hypotheses()
        sentences = {tokeniser.decode(torch.cat([start[0], torch.tensor(each.tokens)])): each for each in found[:6]}
        told = {
            text: f"log P = {_short(each.log_prob)}, score {_short(each.score)}" for text, each in sentences.items()
        }
        graph = tree_graph(PROMPTS[prompt], search.tree(), spelt, found[0].tokens)
        about = f"Score = log P / L^α with α = {penalty:.2f}; a stop ends a sentence."
        return [graph, Numbers("The best sentences", told, about=about)]
    source = torch.Generator().manual_seed(draw)
    draws = stochastic_beam_search(model, start, width=width, length=length, stop=stop, generator=source)
    texts = [_until(row, stop) for row in draws.tokens[0]]
    told = {
        tokeniser.decode(
            torch.cat([start[0], text])
        ): f"log P = {_short(float(log_p))}, with noise {_short(float(noisy))}"
        for text, log_p, noisy in zip(texts, draws.log_probs[0], draws.perturbed[0], strict=True)
    }
    graph = tree_graph(PROMPTS[prompt], draws.tree(), spelt, tuple(texts[0].tolist()))
    about = "In the order drawn: log P and Gumbel noise together fall from sentence to sentence."
    return [graph, Numbers("The draws", told, about=about)]


def tree_graph(root: str, nodes: Sequence[Node], spelt: Callable[[int], str], chosen: Sequence[int]) -> Graph:
    """The beginnings that a search kept as boxes, the way to the `chosen` one marked.

    Whatever the model, a search over it has such a tree: `spelt` says what a token looks like.
    """
    heights = _heights(nodes)
    words: list[tuple[int, ...]] = []
    for node in nodes:
        words.append((*(() if node.parent is None else words[node.parent]), node.token))
    middle = [height for node, height in zip(nodes, heights, strict=True) if node.parent is None]
    boxes = [Box(root, "", 0.0, sum(middle) / len(middle), True)]
    arrows = []
    for number, (node, height, word) in enumerate(zip(nodes, heights, words, strict=True)):
        marked = tuple(chosen[: len(word)]) == word
        label = spelt(node.token)
        shown = label if len(label) <= ROOM else label[: ROOM - 1] + "…"
        boxes.append(Box(shown, _short(node.log_prob), node.step + 1.0, height, marked))
        before = 0.0 if node.parent is None else nodes[node.parent].log_prob
        chance = torch.tensor(node.log_prob - before).exp()
        arrows.append(Arrow(0 if node.parent is None else node.parent + 1, number + 1, f"{float(chance):.2f}"))
    return Graph(
        "What the beam kept",
        boxes,
        arrows,
        about="In a box: a word, and log P of the sentence up to it; on an arrow: p of the word after those before it.",
    )


def _heights(nodes: Sequence[Node]) -> list[float]:
    """A row of its own for each beginning that was not extended; the others stand in the middle of theirs."""
    children: list[list[int]] = [[] for _ in nodes]
    roots: list[int] = []
    for number, node in enumerate(nodes):
        (roots if node.parent is None else children[node.parent]).append(number)
    heights = [0.0] * len(nodes)
    row = 0.0

    def place(number: int) -> float:
        nonlocal row
        below = [place(child) for child in children[number]]
        if not below:
            row -= 1
        heights[number] = sum(below) / len(below) if below else row
        return heights[number]

    for root in roots:
        place(root)
    return heights


def _until(tokens: Tensor, stop: int) -> Tensor:
    """The tokens to the first stop, which is kept."""
    ends = (tokens == stop).nonzero()
    return tokens[: int(ends[0]) + 1] if len(ends) else tokens


def _short(number: float) -> str:
    return f"{number:.2f}".replace("-", "−")
