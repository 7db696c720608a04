"""An interactive next-token distribution of a language model (book sec. 10.1.1)."""

from math import log
from typing import Annotated, cast

import torch

from parnassus.atlas.decorators import probe
from parnassus.attention.models.text_generator import TextGenerator
from parnassus.text.sampling import logits_processor
from parnassus.text.tokeniser import show_whitespace
from parnassus.train.trained import TrainedRun
from parnassus.widgets import Answer, Bars, Curves, FloatSlider, IntSlider, Numbers, TextInput

MAX_BARS = 20  # most likely tokens shown
MAX_POINTS = 60  # last tokens of the prompt in the curve


def _generator(trained: TrainedRun) -> TextGenerator:
    return cast("TextGenerator", trained.model)


def _vocabulary(trained: TrainedRun) -> int:
    return _generator(trained).model.vocabulary


@probe("gpt")
@torch.no_grad()
def next_token_distribution(
    trained: TrainedRun,
    prompt: Annotated[str, TextInput("prompt", 400)] = "The ",
    temperature: Annotated[float, FloatSlider("temperature", 0.1, 3.0, log=True)] = 1.0,
    *,
    top_k: Annotated[int, IntSlider("top-k: sample from the k most likely tokens", 1, _vocabulary)] = 10_000_000,
    top_p: Annotated[float, FloatSlider("top-p: smallest set of tokens with this probability", 0.05, 1.0)] = 1.0,
) -> list[Answer]:
    """The next-token distribution of a language model with temperature, top-k and top-p (book sec. 10.1.1).

    Type a word letter by letter: the entropy is high before the first letter and low before the last. A low temperature
    concentrates the distribution, a high one flattens it. Top-k keeps a fixed number of tokens; top-p (nucleus) keeps
    many when the entropy is high and few when it is low.
    """
    generator = _generator(trained)
    logits = generator.logits(prompt)
    distribution = logits_processor(temperature=temperature, top_k=top_k, top_p=top_p)(logits).softmax(0)
    best = distribution.topk(min(MAX_BARS, len(distribution)))
    names = [show_whitespace(generator.tokeniser.decode(token[None])) for token in best.indices]
    entropy = float(torch.special.entr(distribution).sum()) / log(2)
    numbers: dict[str, float | str] = {
        "tokens with non-zero probability": float((distribution > 0).sum()),
        "entropy, in bits": entropy,
        "perplexity": 2**entropy,
        "entropy at temperature 1 without top-k and top-p, in bits": float(torch.special.entr(logits.softmax(0)).sum())
        / log(2),
    }
    about = "An entropy of b bits is that of a uniform distribution over 2ᵇ tokens, the perplexity."
    bars = Bars(
        "Next-token distribution",
        names,
        best.values,
        marked=0,
        about="The most likely tokens after temperature, top-k and top-p.",
    )
    return [bars, Numbers("Statistics", numbers, about=about), *_token_losses(generator, prompt)]


def _token_losses(generator: TextGenerator, prompt: str) -> list[Answer]:
    """The negative log-likelihood of each token of the prompt, in bits; nothing for a short prompt."""
    tokens = generator.encode_prompt(prompt)[-generator.model.window :]
    if len(tokens) < 3:
        return []
    bits = (generator.model.nll(tokens[None])[0] / log(2))[-MAX_POINTS:].tolist()
    positions = [float(position) for position in range(len(tokens) - len(bits) + 1, len(tokens) + 1)]
    about = "−log₂ p of each token of the text, given the previous ones."
    return [
        Curves(
            "Negative log-likelihood",
            {"bits": (positions, bits)},
            "position in the text",
            "−log₂ p (bits)",
            about=about,
        )
    ]
