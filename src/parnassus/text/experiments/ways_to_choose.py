"""Ways to choose the next character: the likeliest text is not like people's (book sec. 9.2; Holtzman et al. 2020)."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.data import open_text
from parnassus.report import FAINT, INK, PALETTE, curves, subplots
from parnassus.text import CharacterTokeniser, NGrams, beam_search, chooser, nucleus, written
from parnassus.train import Run, at_least, at_most, reported

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

covers = ("B9.2-9", "B9.2-10", "B9.2-11", "B9.3-14", "B9.3-16", "Z9.4")
expected = {
    "test_perplexity": at_most(5.5, "equally likely characters that the model is as unsure as, unseen text"),
    "beam_advantage": at_least(0.5, "nats a character by which the widest beam's text is likelier than people's"),
    "beam_repeats": at_least(0.4, "share of runs of 12 characters that were written before, widest beam"),
    "greedy_repeats": at_least(0.4, "the same of greedy text"),
    "drawn_repeats": at_most(0.1, "the same of text drawn at temperature 1"),
    "people_repeats": at_most(0.1, "the same of unseen text by people"),
    "drawn_words": reported("share of words that occur in the text learned from, drawn at temperature 1"),
    "nucleus_gain": at_least(0.02, "by how much that share is larger when drawn from the nucleus of 0.9"),
    "hot_words": at_most(0.6, "the same share at temperature 2"),
}
profiles: dict[str, dict[str, object]] = {
    "smoke": {"order": 3, "prompts": 2, "length": 40, "widths": (1, 2)},
    "gpu": {"text": "moby_dick", "order": 8, "prompts": 64, "length": 400, "widths": (1, 2, 4, 8, 16, 32)},
}

TEMPERATURES = (0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 2.0)
COUNTS = (2, 3, 5, 10, 20)
MASSES = (0.3, 0.5, 0.7, 0.8, 0.9, 0.95)
RUN, GIVEN = 12, 24  # characters that count as repeated, and of each prompt
SHOWN = ("people", "temperature 0.5", "temperature 1", "temperature 2", "the 3 likeliest", "nucleus 0.9")


@dataclass(frozen=True)
class Experiment:
    text: str = "pydoc"  # what to learn: pydoc, tiny_shakespeare, moby_dick, or a text file of yours
    order: int = 6  # characters in a run that is counted
    smoothing: float = 6.0  # how much of the next shorter run is mixed in
    prompts: int = 16  # beginnings from unseen text
    length: int = 200  # characters written after each
    widths: tuple[int, ...] = (1, 2, 4, 8, 16)  # of the beam

    def __call__(self, run: Run) -> dict[str, float]:
        if self.prompts < 1 or self.length < RUN:
            raise ValueError(
                f"one prompt and {RUN} characters after it are the least; "
                f"got prompts={self.prompts}, length={self.length}"
            )
        text = open_text(self.text)
        tokeniser = CharacterTokeniser.fit(text.train + text.test)
        train, test = tokeniser.encode(text.train), tokeniser.encode(text.test)
        model = NGrams.backed_off(train, self.order, vocabulary=tokeniser.vocabulary, smoothing=self.smoothing)
        known = set(words_in(text.train))
        pieces = parts(test, self.prompts, GIVEN + self.length)
        prompts = pieces[:, :GIVEN]

        def judged(texts: Tensor) -> Judged:
            likely = model.token_log_probs(torch.cat([prompts, texts], 1))[:, GIVEN:]
            spelt = [tokeniser.decode(row) for row in texts]
            return Judged(float(likely.mean()), repeated(spelt), in_vocabulary(spelt, known), spelt[0])

        people = judged(pieces[:, GIVEN:])
        ways = ways_to_draw(torch.Generator().manual_seed(run.seed))
        together = written(model, prompts.repeat(len(ways), 1), side_by_side(list(ways.values())), self.length)
        drawn = {name: judged(rows) for name, rows in zip(ways, together.chunk(len(ways)), strict=True)}
        searched = {}
        for width in self.widths:
            found = beam_search(model, prompts, width=width, length=self.length)
            rows = [found.best(row).tokens for row in range(len(prompts))]
            searched[f"beam of {width}"] = judged(torch.tensor(rows))

        run.figure(
            "likely, varied, sensible",
            trade_off({**drawn, **searched}, people),
            "Every way to choose, by how likely its text is to the model. Left: how much of the text is new; right: "
            "how many of its words exist. The star is unseen text by people: it is far less likely than what a beam "
            "finds, for the likeliest text says the same again and again. Larger dots are higher temperatures, more "
            "characters, more mass, wider beams.",
        )
        run.figure(
            "how many characters are sensible",
            nucleus_sizes(model, test[: 20 * self.length]),
            "How many characters the nucleus holds, over all places of an unseen text. In the middle of a word it is "
            "one or two, at a beginning a dozen or more: no fixed number of likeliest characters is right for both.",
        )
        widest, greedy = searched[f"beam of {self.widths[-1]}"], searched[f"beam of {self.widths[0]}"]
        shown = {"people": people, **drawn, **searched}
        run.table(
            "in their own words",
            [
                {"way": name, "log p a character": round(each.log_prob, 2), "text": each.sample[:110]}
                for name, each in shown.items()
                if name in SHOWN or each in (greedy, widest)
            ],
            "What each way writes after the same beginning: “" + tokeniser.decode(prompts[0]).replace("\n", " ") + "”.",
        )
        run.note(
            "the likelihood trap",
            f"The widest beam writes text that is {widest.log_prob - people.log_prob:.2f} nats a character likelier "
            f"than people's, and {widest.repeats:.0%} of it was written before; of people's text {people.repeats:.0%}. "
            "A better search makes the text worse: the model is only near the truth where people write, and the most "
            "probable text is not a typical one. Drawing keeps the text typical, and cutting the tail of unlikely "
            "characters keeps it from leaving the road.",
        )
        return {
            "test_perplexity": float(model.perplexity(test)),
            "beam_advantage": widest.log_prob - people.log_prob,
            "beam_repeats": widest.repeats,
            "greedy_repeats": greedy.repeats,
            "drawn_repeats": drawn["temperature 1"].repeats,
            "people_repeats": people.repeats,
            "drawn_words": drawn["temperature 1"].words,
            "nucleus_gain": drawn["nucleus 0.9"].words - drawn["temperature 1"].words,
            "hot_words": drawn["temperature 2"].words,
        }


@dataclass(frozen=True)
class Judged:
    """Texts of one way: mean log p a character, share repeated, share of words that exist, and the first of them."""

    log_prob: float
    repeats: float
    words: float
    sample: str


def ways_to_draw(generator: torch.Generator) -> dict[str, Callable[[Tensor], Tensor]]:
    return {
        **{f"temperature {each:g}": chooser(temperature=each, generator=generator) for each in TEMPERATURES},
        **{f"the {each} likeliest": chooser(top_k=each, generator=generator) for each in COUNTS},
        **{f"nucleus {each:g}": chooser(top_p=each, generator=generator) for each in MASSES},
    }


def side_by_side(ways: list[Callable[[Tensor], Tensor]]) -> Callable[[Tensor], Tensor]:
    """One choice for all: the first part of the rows by the first way, and so on; the model reads for all at once."""
    return lambda logits: torch.cat([way(part) for way, part in zip(ways, logits.chunk(len(ways)), strict=True)])


def parts(tokens: Int[Tensor, " time"], count: int, length: int) -> Int[Tensor, "count length"]:
    """Pieces of the text, spread evenly over it."""
    if len(tokens) < length:
        raise ValueError(f"the unseen text needs at least {length} characters; it has {len(tokens)}")
    starts = torch.linspace(0, len(tokens) - length, count).long()
    return torch.stack([tokens[start : start + length] for start in starts.tolist()])


def repeated(texts: list[str]) -> float:
    """Of all runs of 12 characters, the share that stood before in one of these texts."""
    runs = [text[place : place + RUN] for text in texts for place in range(len(text) - RUN + 1)]
    return 1 - len(set(runs)) / len(runs)


def words_in(text: str) -> list[str]:
    """Whole words: those at the ends of a text may be cut."""
    return re.findall(r"(?<=[^a-z])[a-z]+(?=[^a-z])", text.lower())


def in_vocabulary(texts: list[str], known: set[str]) -> float:
    found = [word in known for text in texts for word in words_in(text)]
    return sum(found) / max(1, len(found))


def nucleus_sizes(model: NGrams, tokens: Int[Tensor, " time"]) -> "Figure":
    """How many characters the nuclei along a text hold."""
    contexts = tokens.unfold(0, model.order - 1, 1)[:-1]
    logits: Float[Tensor, "time vocabulary"] = model.distribution(contexts).log()
    number = torch.arange(1, 31)
    shares = {}
    for mass in (0.5, 0.9, 0.95):
        sizes = (nucleus(logits, mass) > -torch.inf).sum(1)
        shares[f"mass {mass}"] = number, (sizes[:, None] <= number).double().mean(0)
    return curves(shares, x_label="characters", y_label="share of nuclei with at most so many")


def trade_off(ways: dict[str, Judged], people: Judged) -> "Figure":
    families = {
        "temperature": [each for name, each in ways.items() if name.startswith("temp")],
        "likeliest k": [each for name, each in ways.items() if name.startswith("the")],
        "nucleus": [each for name, each in ways.items() if name.startswith("nucleus")],
        "beam": [each for name, each in ways.items() if name.startswith("beam")],
    }
    figure, axes = subplots(1, 2, size=(10.0, 4.2))
    _panel(axes[0, 0], families, people, lambda each: 1 - each.repeats)
    _panel(axes[0, 1], families, people, lambda each: each.words)
    axes[0, 0].set(xlabel="log p a character (nats)", ylabel="share that is new", ylim=(-0.05, 1.1))
    axes[0, 1].set(xlabel="log p a character (nats)", ylabel="share of words that exist", ylim=(-0.05, 1.1))
    axes[0, 0].legend(loc="lower left")
    return figure


def _panel(ax: "Axes", families: dict[str, list[Judged]], people: Judged, value: Callable[[Judged], float]) -> None:
    for (name, family), colour in zip(families.items(), PALETTE, strict=False):
        x, y = [each.log_prob for each in family], [value(each) for each in family]
        ax.plot(x, y, color=colour, linewidth=1, label=name)
        ax.scatter(x, y, s=[15 + 12 * place for place in range(len(family))], color=colour, linewidths=0)
    ax.axvline(people.log_prob, color=FAINT, linestyle="--", linewidth=1)
    ax.scatter([people.log_prob], [value(people)], marker="*", s=170, color=INK, zorder=3, label="people")
