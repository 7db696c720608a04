"""Things to touch: what a language model expects next, as the text is typed (book sec. 10.1.1)."""

from math import log
from typing import Annotated, cast

import torch

from parnassus.atlas.marks import probe
from parnassus.attention.writer import Writer
from parnassus.text.choosing import cut_law
from parnassus.text.visible import visible
from parnassus.touch import Answer, Bars, Curves, Numbers, Real, Typed, Whole
from parnassus.train.trained import Trained

SHOWN = 20  # tokens of which a bar is drawn
ROWS = 60  # the last letters of the prompt whose price is drawn


def _writer(trained: Trained) -> Writer:
    return cast("Writer", trained.model)


def _vocabulary(trained: Trained) -> int:
    return _writer(trained).model.vocabulary


@probe("gpt")
@torch.no_grad()
def expect_the_next_token(
    trained: Trained,
    prompt: Annotated[str, Typed("the text so far; type on", 400)] = "The ",
    temperature: Annotated[float, Real("temperature", 0.1, 3.0, log=True)] = 1.0,
    *,
    top_k: Annotated[int, Whole("choose among the k likeliest", 1, _vocabulary)] = 10_000_000,
    top_p: Annotated[float, Real("and of those, among the likeliest with this mass", 0.05, 1.0)] = 1.0,
) -> list[Answer]:
    """What may come next, as you type: the law of the next token, cooled and cut (book sec. 10.1.1).

    Type a word letter by letter: before its first letter much is possible, before its last hardly anything. Cool it and
    the likeliest takes all; heat it and all become alike. The two cuts forbid what is unlikely: k by counting, the
    other by mass, which leaves many when the model is in doubt and one when it is sure.
    """
    writer = _writer(trained)
    logits = writer.logits(prompt)
    law = cut_law(temperature=temperature, top_k=top_k, top_p=top_p)(logits).softmax(0)
    best = law.topk(min(SHOWN, len(law)))
    names = [visible(writer.tokeniser.decode(token[None])) for token in best.indices]
    entropy = float(torch.special.entr(law).sum()) / log(2)
    numbers: dict[str, float | str] = {
        "tokens that may come": float((law > 0).sum()),
        "doubt, in bits": entropy,
        "as if one of": 2**entropy,
        "without cooling and cuts, in bits": float(torch.special.entr(logits.softmax(0)).sum()) / log(2),
    }
    about = "Doubt is the entropy of the law: b bits are the doubt of a fair draw among 2ᵇ tokens."
    bars = Bars(
        "What may come next", names, best.values, marked=0, about="The likeliest tokens, after cooling and cuts."
    )
    return [bars, Numbers("In numbers", numbers, about=about), *_prices(writer, prompt)]


def _prices(writer: Writer, prompt: str) -> list[Answer]:
    """How many bits each token of the prompt was worth to the model when it came; nothing for a short one."""
    tokens = writer.tokens(prompt)[-writer.model.window :]
    if len(tokens) < 3:
        return []
    bits = (writer.model.nll(tokens[None])[0] / log(2))[-ROWS:].tolist()
    places = [float(place) for place in range(len(tokens) - len(bits) + 1, len(tokens) + 1)]
    about = "How surprised the model was by each token that you typed, given those before it."
    return [Curves("Surprise", {"bits": (places, bits)}, "place in the text", "bits", about=about)]
