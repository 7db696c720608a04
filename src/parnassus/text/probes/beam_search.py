"""Beam search as a tree of the kept prefixes (book sec. 9.3)."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Annotated

import torch
from torch import Tensor

from parnassus.atlas.decorators import probe
from parnassus.data import pydoc_text
from parnassus.text.beam_search import BeamNode, beam_search
from parnassus.text.ngrams import NGramModel
from parnassus.text.stochastic_beam_search import stochastic_beam_search
from parnassus.text.word_tokeniser import WordTokeniser, split_words
from parnassus.widgets import Answer, FloatSlider, Graph, GraphEdge, GraphNode, IntSlider, Numbers, Select

PROMPTS = ("The", "If the", "This is", "A class", "The value", "When a", "Note that", "It is")
SELECTIONS = ("most likely (beam search)", "sampled without replacement (stochastic beam search)")
MAX_LABEL = 12  # characters that fit into a box


@cache
def _load_model() -> tuple[WordTokeniser, NGramModel]:
    """Trigram model over the words of Python's help topics."""
    words = [word for word in split_words(pydoc_text().train) if word.isalpha() or word in ".,"]
    tokeniser = WordTokeniser.fit(" ".join(words))
    tokens = tokeniser.encode(" ".join(words))
    return tokeniser, NGramModel.fit_interpolated(tokens, 3, vocabulary=tokeniser.vocabulary, smoothing=0.5)


@probe()
def beam_search_tree(
    prompt: Annotated[int, Select("prompt", PROMPTS)] = 0,
    width: Annotated[int, IntSlider("beam width", 1, 6)] = 3,
    *,
    length: Annotated[int, IntSlider("words to generate", 2, 8)] = 5,
    penalty: Annotated[float, FloatSlider("length penalty, α", 0.0, 2.0)] = 0.75,
    selection: Annotated[int, Select("selection of prefixes", SELECTIONS)] = 0,
    seed: Annotated[int, IntSlider("seed, when sampled", 0, 20)] = 0,
) -> list[Answer]:
    """The prefixes that a beam search keeps at each step (book sec. 9.3).

    Width 1 is greedy decoding: the tree is a line. Increase the width until the best sentence changes: it does not
    start with the most likely words. Then change α: at 0 short sentences win, because every word lowers log P. The
    stochastic beam samples distinct sentences from the model instead.
    """
    tokeniser, model = _load_model()
    start, stop = tokeniser.encode(PROMPTS[prompt])[None], int(tokeniser.encode("."))

    def label_of(token: int) -> str:
        return tokeniser.decode(torch.tensor([token]))

    if selection == 0:
        search = beam_search(model, start, width=width, length=length, stop=stop, penalty=penalty)
        hypotheses = search.hypotheses()
        sentences = {
            tokeniser.decode(torch.cat([start[0], torch.tensor(each.tokens)])): each for each in hypotheses[:6]
        }
        rows = {
            text: f"log P = {_format(each.log_prob)}, score {_format(each.score)}" for text, each in sentences.items()
        }
        graph = tree_graph(PROMPTS[prompt], search.tree(), label_of, hypotheses[0].tokens)
        about = f"Score = log P / L^α with α = {penalty:.2f}; a full stop ends a sentence."
        return [graph, Numbers("Best sentences", rows, about=about)]
    generator = torch.Generator().manual_seed(seed)
    samples = stochastic_beam_search(model, start, width=width, length=length, stop=stop, generator=generator)
    texts = [_up_to_stop(row, stop) for row in samples.tokens[0]]
    rows = {
        tokeniser.decode(
            torch.cat([start[0], text])
        ): f"log P = {_format(float(log_p))}, with noise {_format(float(noisy))}"
        for text, log_p, noisy in zip(texts, samples.log_probs[0], samples.perturbed_log_probs[0], strict=True)
    }
    graph = tree_graph(PROMPTS[prompt], samples.tree(), label_of, tuple(texts[0].tolist()))
    about = "In sampling order: log P + Gumbel noise decreases from sentence to sentence."
    return [graph, Numbers("Samples", rows, about=about)]


def tree_graph(root: str, nodes: Sequence[BeamNode], label_of: Callable[[int], str], selected: Sequence[int]) -> Graph:
    """The prefixes that a search kept as a graph, with the path to the `selected` tokens marked.

    `label_of` gives the text of a token.
    """
    heights = _heights(nodes)
    prefixes: list[tuple[int, ...]] = []
    for node in nodes:
        prefixes.append((*(() if node.parent is None else prefixes[node.parent]), node.token))
    middle = [height for node, height in zip(nodes, heights, strict=True) if node.parent is None]
    graph_nodes = [GraphNode(root, "", 0.0, sum(middle) / len(middle), True)]
    edges = []
    for index, (node, height, prefix) in enumerate(zip(nodes, heights, prefixes, strict=True)):
        marked = tuple(selected[: len(prefix)]) == prefix
        label = label_of(node.token)
        short_label = label if len(label) <= MAX_LABEL else label[: MAX_LABEL - 1] + "…"
        graph_nodes.append(GraphNode(short_label, _format(node.log_prob), node.step + 1.0, height, marked))
        before = 0.0 if node.parent is None else nodes[node.parent].log_prob
        probability = torch.tensor(node.log_prob - before).exp()
        edges.append(GraphEdge(0 if node.parent is None else node.parent + 1, index + 1, f"{float(probability):.2f}"))
    return Graph(
        "Kept prefixes",
        graph_nodes,
        edges,
        about="Box: a word and log P of the sentence up to it. Arrow: p of the word given those before it.",
    )


def _heights(nodes: Sequence[BeamNode]) -> list[float]:
    """Vertical positions: one row for each leaf, and each parent at the mean of its children."""
    children: list[list[int]] = [[] for _ in nodes]
    roots: list[int] = []
    for index, node in enumerate(nodes):
        (roots if node.parent is None else children[node.parent]).append(index)
    heights = [0.0] * len(nodes)
    row = 0.0

    def assign(index: int) -> float:
        nonlocal row
        children_heights = [assign(child) for child in children[index]]
        if not children_heights:
            row -= 1
        heights[index] = sum(children_heights) / len(children_heights) if children_heights else row
        return heights[index]

    for root in roots:
        assign(root)
    return heights


def _up_to_stop(tokens: Tensor, stop: int) -> Tensor:
    """The tokens up to and including the first stop."""
    ends = (tokens == stop).nonzero()
    return tokens[: int(ends[0]) + 1] if len(ends) else tokens


def _format(value: float) -> str:
    return f"{value:.2f}".replace("-", "−")
