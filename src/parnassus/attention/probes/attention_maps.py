"""Interactive attention maps of trained models (book sec. 10.1; Diehl sec. 2.2)."""

from typing import Annotated, cast

import torch
from torch import Tensor

from parnassus.atlas.decorators import probe
from parnassus.attention.core.attention_maps import attention_distance, attention_entropy, attention_maps
from parnassus.attention.models.article_classifier import (
    ARTICLES,
    MAX_WORDS,
    WORDS,
    ArticleClassifier,
    encode_phrases,
    known_words,
)
from parnassus.attention.models.text_generator import TextGenerator
from parnassus.text.tokeniser import show_whitespace
from parnassus.train.trained import TrainedRun
from parnassus.widgets import Answer, Bars, Curves, Images, IntSlider, Numbers, TextInput

MAX_TOKENS = 48  # the prompt is cut to its last tokens
MAX_BARS = 24  # bars of the selected token
PIXELS_PER_WEIGHT = 4  # side of the square that shows a weight


def _generator(trained: TrainedRun) -> TextGenerator:
    return cast("TextGenerator", trained.model)


def _num_blocks(trained: TrainedRun) -> int:
    return len(_generator(trained).model.blocks)


def _num_heads(trained: TrainedRun) -> int:
    return _generator(trained).model.heads


@probe("gpt")
@torch.no_grad()
def attention_heads(
    trained: TrainedRun,
    prompt: Annotated[str, TextInput("text", 400)] = "The quick brown fox jumps over the lazy dog.",
    block: Annotated[int, IntSlider("block, counted from the input", 1, _num_blocks)] = 1,
    head: Annotated[int, IntSlider("head", 1, _num_heads)] = 1,
    offset: Annotated[int, IntSlider("query: tokens before the last one", 0, MAX_TOKENS - 1)] = 0,
) -> list[Answer]:
    """Attention maps of every head of a language model on a text (book sec. 10.1).

    Rows are queries, columns are keys; entries above the diagonal are masked. Step through the blocks: some heads
    attend to the previous token, some to the last space, some to equal tokens. A head without a matching key often
    attends to the first token.
    """
    generator = _generator(trained)
    tokens = generator.encode_prompt(prompt)[-min(MAX_TOKENS, generator.model.window) :]
    maps = list(attention_maps(generator, tokens[None]).values())
    layer = maps[block - 1][0]
    query = max(0, len(tokens) - 1 - offset)
    row = layer[head - 1, query, : query + 1]
    names = [
        f"{position} {show_whitespace(generator.tokeniser.decode(token[None]))}"
        for position, token in enumerate(tokens, 1)
    ]
    first = max(0, query + 1 - MAX_BARS)
    entropy, distance = attention_entropy(layer), attention_distance(layer)
    numbers: dict[str, float | str] = {
        "query": names[query],
        "key with the largest weight": names[int(row.argmax())],
        "effective number of keys, exp(entropy)": float(entropy[head - 1, query].exp()),
        "mean attention distance": float(distance[head - 1, query]),
        "attention weight on the first token": float(row[0]),
    }
    blocks = [float(number) for number in range(1, len(maps) + 1)]
    lines = {
        f"head {number}": (blocks, [float(attention_distance(each[0, number - 1]).mean()) for each in maps])
        for number in range(1, layer.shape[0] + 1)
    }
    return [
        Images(
            f"Attention maps of block {block}",
            _map_images(layer),
            [f"head {number}" for number in range(1, layer.shape[0] + 1)],
            about="Brightness is proportional to the weight; the largest weight of each head is white.",
        ),
        Bars(
            f"Attention weights of the query “{names[query]}”",
            names[first : query + 1],
            row[first:],
            marked=int(row[first:].argmax()),
            about=f"Head {head} of block {block}; tokens are numbered by position. All weights sum to 1.",
        ),
        Numbers("Statistics", numbers),
        Curves("Mean attention distance by block", lines, "block", "mean distance in tokens", marked=float(block)),
    ]


@probe("attention_translates_articles")
@torch.no_grad()
def article_attention(
    trained: TrainedRun,
    phrase: Annotated[str, TextInput("an English phrase", 80)] = "we saw the very old tree at night",
) -> list[Answer]:
    """Attention weights of a model that predicts the German article from an English phrase (Diehl sec. 2.2).

    Replace the noun by key, lamp or house. Then reorder or remove words: the model has no positions, so the order has
    no effect. A phrase without a noun shows the model's prior.
    """
    words = known_words(phrase)[:MAX_WORDS]
    if not words:
        return [Numbers(f"No word of the vocabulary found. Try {', '.join(WORDS[:12])}", {"known words": 0.0})]
    model = cast("ArticleClassifier", trained.model)
    tokens = encode_phrases([" ".join(words)])
    weights = model.weights(tokens)[0, : len(words)]
    probabilities = model(tokens)[0].softmax(0)
    names = [f"{position} {word}" for position, word in enumerate(words, 1)]
    return [
        Bars("Attention weight of each word", names, weights, marked=int(weights.argmax())),
        Bars("Probability of the article", ARTICLES, probabilities, marked=int(probabilities.argmax())),
        Numbers(
            "Statistics",
            {
                "effective number of words, exp(entropy)": float(attention_entropy(weights[None])[0].exp()),
                "words removed: unknown, or beyond the maximum length": float(len(phrase.split()) - len(words)),
            },
        ),
    ]


def _map_images(layer: Tensor) -> Tensor:
    """A grey image for each head, its largest weight white."""
    scaled = layer / layer.amax((1, 2), keepdim=True).clamp(min=1e-9)
    return scaled[:, None].repeat_interleave(PIXELS_PER_WEIGHT, 2).repeat_interleave(PIXELS_PER_WEIGHT, 3)
