"""Things to touch: where the heads of a trained model look (book sec. 10.1; Diehl sec. 2.2)."""

from typing import Annotated, cast

import torch
from torch import Tensor

from parnassus.atlas.marks import probe
from parnassus.attention.experiments.article_of_the_noun import ARTICLES, LONGEST, WORDS, ArticleFinder, encoded
from parnassus.attention.maps import attention_distance, attention_entropy, attention_maps
from parnassus.attention.writer import Writer
from parnassus.text.visible import visible
from parnassus.touch import Answer, Bars, Curves, Images, Numbers, Typed, Whole
from parnassus.train.trained import Trained

READ = 48  # tokens of the prompt, the last ones, that are looked at
NAMED = 24  # of them those that are named beside a bar
FINE = 4  # pixels a weight


def _writer(trained: Trained) -> Writer:
    return cast("Writer", trained.model)


def _depth(trained: Trained) -> int:
    return len(_writer(trained).model.blocks)


def _heads(trained: Trained) -> int:
    return _writer(trained).model.heads


@probe("gpt")
@torch.no_grad()
def see_where_heads_look(
    trained: Trained,
    prompt: Annotated[str, Typed("a text; type on", 400)] = "The quick brown fox jumps over the lazy dog.",
    block: Annotated[int, Whole("block, counted from below", 1, _depth)] = 1,
    head: Annotated[int, Whole("head", 1, _heads)] = 1,
    back: Annotated[int, Whole("who looks: tokens back from the newest", 0, READ - 1)] = 0,
) -> list[Answer]:
    """Where each head of a language model looks while it reads what you type (book sec. 10.1).

    In the pictures a row is a token that looks, columns are what it looks at; nothing lies above the diagonal, for that
    is the future. Go through the blocks: some heads look one token back whatever it is, some at the last blank, some
    at tokens like their own. A head that need not look at anything often rests on the first token.
    """
    writer = _writer(trained)
    tokens = writer.tokens(prompt)[-min(READ, writer.model.window) :]
    maps = list(attention_maps(writer, tokens[None]).values())
    layer = maps[block - 1][0]
    looks = max(0, len(tokens) - 1 - back)
    row = layer[head - 1, looks, : looks + 1]
    names = [f"{place + 1} {visible(writer.tokeniser.decode(token[None]))}" for place, token in enumerate(tokens)]
    first = max(0, looks + 1 - NAMED)
    entropy, distance = attention_entropy(layer), attention_distance(layer)
    numbers: dict[str, float | str] = {
        "who looks": names[looks],
        "looks most at": names[int(row.argmax())],
        "as if at so many tokens": float(entropy[head - 1, looks].exp()),
        "mean distance": float(distance[head - 1, looks]),
        "weight on the first token": float(row[0]),
    }
    blocks = [float(number) for number in range(1, len(maps) + 1)]
    lines = {
        f"head {number}": (blocks, [float(attention_distance(each[0, number - 1]).mean()) for each in maps])
        for number in range(1, layer.shape[0] + 1)
    }
    return [
        Images(
            f"The heads of block {block}",
            _picture(layer),
            [f"head {number}" for number in range(1, layer.shape[0] + 1)],
            about="The whiter, the more weight; the largest weight of each head is white.",
        ),
        Bars(
            f"What “{names[looks]}” looks at",
            names[first : looks + 1],
            row[first:],
            marked=int(row[first:].argmax()),
            about=f"Head {head} of block {block}; the number is the token's place. They sum to 1 over all places.",
        ),
        Numbers("In numbers", numbers),
        Curves("How far heads look, block by block", lines, "block", "mean distance in tokens", marked=float(block)),
    ]


@probe("article_of_the_noun")
@torch.no_grad()
def find_the_noun(
    trained: Trained, phrase: Annotated[str, Typed("an English phrase", 80)] = "we saw the very old tree at night"
) -> list[Answer]:
    """Which word decides about the German article, and for which (Diehl sec. 2.2).

    Exchange the noun for another: key, lamp, house. Then move words around or leave some out: there are no positions
    here, so the order does not matter. A phrase without a noun still gets an answer, and it shows what the model says
    when it has nothing to go by.
    """
    typed = phrase.lower().split()
    words = [word for word in typed if word in WORDS][:LONGEST]
    if not words:
        return [Numbers(f"No word that it knows. Try some of {', '.join(WORDS[:12])}", {"known words": 0.0})]
    model = cast("ArticleFinder", trained.model)
    tokens = encoded([" ".join(words)])
    weights = model.weights(tokens)[0, : len(words)]
    chances = model(tokens)[0].softmax(0)
    named = [f"{place} {word}" for place, word in enumerate(words, 1)]
    return [
        Bars("The attention of each word", named, weights, marked=int(weights.argmax())),
        Bars("The article", ARTICLES, chances, marked=int(chances.argmax())),
        Numbers(
            "In numbers",
            {
                "as if at so many words": float(attention_entropy(weights[None])[0].exp()),
                "words left out, as it does not know them or they are too many": float(len(typed) - len(words)),
            },
        ),
    ]


def _picture(layer: Tensor) -> Tensor:
    """A grey picture for each head, its largest weight white."""
    scaled = layer / layer.amax((1, 2), keepdim=True).clamp(min=1e-9)
    return scaled[:, None].repeat_interleave(FINE, 2).repeat_interleave(FINE, 3)
