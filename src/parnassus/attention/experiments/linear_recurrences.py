"""A transformer continues linear recurrences; without a causal mask it looks the answer up (Diehl sec. 3)."""

from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from parnassus.attention.block import Block, feed_forward
from parnassus.attention.maps import attention_maps
from parnassus.attention.self_attention import SelfAttention
from parnassus.attention.sinusoidal import SinusoidalEmbedding, sinusoidal, waves
from parnassus.data import Split
from parnassus.optim import Adam
from parnassus.report import PALETTE, subplots
from parnassus.report.ink import DIVERGING, SEQUENTIAL
from parnassus.train import Run, SideBySide, at_least, at_most, between, descend

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("C-12", "D3.4")
expected = {
    "least": between(0.183, 0.1832, "nats a term that none can go below: two guesses among three in twelve terms"),
    "masked": between(0.183, 0.24, "nats a term with the causal mask"),
    "masked_above_least": between(-1e-4, 0.05, "what the masked transformer loses against the best predictor"),
    "open": at_most(0.1, "nats a term without the mask: below what is possible, for the answer is in the input"),
    "masked_continues": at_least(0.9, "share of sequences that it continues without error from three terms"),
    "open_continues": at_most(0.75, "the same without the mask, when there is no answer to look up"),
}
profiles = {
    "smoke": {"steps": 3, "width": 16},
    "gpu": {"steps": 3_900, "width": 512},  # 25 epochs of 10,000 sequences, as the tutorial has it
}

TERMS = 13  # twelve are read, the last is only predicted
GIVEN = 3  # terms from which a sequence is continued
NAMES = {"masked": "with the causal mask", "open": "without a mask"}


@dataclass(frozen=True)
class Experiment:
    steps: int = 500  # gradient steps
    batch: int = 64  # sequences a step
    count: int = 10_000  # sequences in training
    modulus: int = 97  # a prime: terms are counted modulo it, or there would be 409,153 tokens
    width: int = 64  # of the two blocks of two heads
    hidden: int = 32  # units of their dense parts
    dropout: float = 0.1  # share of weights and units left out in training
    lr: float = 2e-3  # Adam's learning rate

    def __call__(self, run: Run) -> dict[str, float]:
        table = recurrences(self.modulus).to(run.device)
        drawn = torch.randint(len(table), (self.count,), generator=torch.Generator().manual_seed(run.seed))
        side, optimizer = run.prepare(
            SideBySide[NextTerm]({"masked": self.model(causal=True), "open": self.model(causal=False)}),
            partial(Adam, lr=self.lr),
        )
        batches = Split(table[drawn.to(run.device)]).batches(self.batch, self.steps)
        for step, loss in descend(run, side, optimizer, batches):
            run.log(step, loss=loss / 2)

        side.eval()
        least = least_nats(table)
        with torch.no_grad():
            nats = {name: model.nll(table).mean(0).cpu() for name, model in side.every()}
        continued = {name: model.continued(table[:, :GIVEN], TERMS - GIVEN) for name, model in side.every()}
        right = {name: (rows == table).all(1).cpu() for name, rows in continued.items()}
        run.figure(
            "nats by term",
            draw_nats(least, nats),
            "What the next term costs, over all 27 sequences. The steps are the least possible: the two "
            "coefficients must be guessed, all else follows. Without the mask the transformer pays nothing, "
            "not even for what nobody can know: it reads the answer.",
        )
        show_maps(run, side, table[-1:])
        show_codes(run)
        rows = torch.linspace(8, len(table) - 1, 5).long().tolist()
        run.table(
            "continued",
            [
                {
                    "true": words(table[row]),
                    **{NAMES[name]: words(terms[row, GIVEN:]) for name, terms in continued.items()},
                }
                for row in rows
            ],
            f"From the first {GIVEN} terms on, each model reads what it wrote; modulo {self.modulus}.",
        )
        run.note(
            "what to see",
            "In the tutorial each term may look at the next, which is the one to be predicted, so a small loss says "
            "nothing. A loss below the least possible one is how to notice. There are only 27 sequences, drawn "
            f"{self.count:,} times: the transformer learns them by heart, and no arithmetic. Places are told by sines "
            "and cosines; the tutorial's have an exponent doubled twice.",
        )
        return {
            "least": float(least.mean()),
            **{name: float(nll.mean()) for name, nll in nats.items()},
            "masked_above_least": float(nats["masked"].mean() - least.mean()),
            **{f"{name}_continues": float(share.float().mean()) for name, share in right.items()},
        }

    def model(self, *, causal: bool) -> "NextTerm":
        blocks = [
            Block(
                SelfAttention(self.width, 2, causal=causal, dropout=self.dropout),
                feed_forward(self.width, self.hidden, dropout=self.dropout),
                norm=partial(nn.LayerNorm, self.width),
            )
            for _ in range(2)
        ]
        return NextTerm(SinusoidalEmbedding(self.modulus, self.width), blocks)


class NextTerm(nn.Module):
    """Two pre-norm blocks that name the next term at every place; a `LanguageModel` would insist on the mask."""

    def __init__(self, embedding: SinusoidalEmbedding, blocks: list[Block]) -> None:
        super().__init__()
        self.embedding, self.blocks = embedding, nn.ModuleList(blocks)
        vocabulary, width = embedding.tokens.weight.shape
        self.leave = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, vocabulary))

    def forward(self, terms: Tensor) -> Tensor:
        x: Tensor = self.embedding(terms)
        for block in self.blocks:
            x = block(x)
        logits: Tensor = self.leave(x)
        return logits

    def nll(self, terms: Tensor) -> Tensor:
        """−log p(s_{t+1} | what place t sees), by sequence and place."""
        return cross_entropy(self(terms[:, :-1]).mT, terms[:, 1:], reduction="none")

    def loss(self, terms: Tensor) -> Tensor:
        return self.nll(terms).mean()

    @torch.no_grad()
    def continued(self, terms: Tensor, count: int) -> Tensor:
        """The likeliest next term, `count` times, each read like those before it."""
        for _ in range(count):
            terms = torch.cat([terms, self(terms)[:, -1:].argmax(-1)], 1)
        return terms


def recurrences(modulus: int) -> Tensor:
    """s_{t+1} = a s_t + b s_{t−1} modulo a prime, s_{−1} = 0, for all s_0 ∈ {1, 2, 3} and a, b ∈ {0, 1, 2}: 27 rows."""
    if modulus < 4:
        raise ValueError(f"the modulus must be larger than the first terms, which go up to 3; got modulus={modulus}")
    rows = []
    for first, a, b in product((1, 2, 3), (0, 1, 2), (0, 1, 2)):
        terms = [0, first]
        while len(terms) < TERMS + 1:
            terms.append((a * terms[-1] + b * terms[-2]) % modulus)
        rows.append(terms[1:])
    return torch.tensor(rows)


def least_nats(table: Tensor) -> Tensor:
    """H(s_{t+1} | s_0 … s_t) for rows that are equally likely: the difference of the entropies of two beginnings."""
    entropies = []
    for length in range(1, table.shape[1] + 1):
        share = table[:, :length].unique(dim=0, return_counts=True)[1].double() / len(table)
        entropies.append(torch.special.entr(share).sum())
    return torch.stack(entropies).diff().cpu()


def words(terms: Tensor) -> str:
    return " ".join(str(int(term)) for term in terms)


def draw_nats(least: Tensor, nats: dict[str, Tensor]) -> "Figure":
    figure, axes = subplots(size=(7.2, 3.8))
    ax, place = axes[0, 0], torch.arange(1, len(least) + 1)
    edges = torch.arange(len(least) + 1) + 0.5
    ax.stairs(least.numpy(), edges.numpy(), color=PALETTE[7], label="least possible", linewidth=2)
    for (name, nll), colour, marker in zip(nats.items(), PALETTE, ("o", "s"), strict=False):
        ax.plot(place, nll, color=colour, marker=marker, markersize=5, label=NAMES[name])
    ax.set(xlabel="term that is predicted", ylabel="nats", xticks=place.tolist())
    ax.legend()
    return figure


def show_maps(run: Run, side: "SideBySide[NextTerm]", terms: Tensor) -> None:
    """Who looks where in the first block, mean of its heads, with and without the mask."""
    figure, axes = subplots(1, 2, size=(8.4, 4.2))
    labels = [str(int(term)) for term in terms[0, :-1]]
    for ax, (name, model) in zip(axes[0], side.every(), strict=True):
        maps = torch.stack([weights[0].mean(0) for weights in attention_maps(model, terms[:, :-1]).values()])
        ax.imshow(maps.amax(0).cpu().numpy(), cmap=SEQUENTIAL, vmin=0.0, vmax=1.0)
        ax.set(title=NAMES[name], xlabel="looked at", ylabel="looks")
        ax.set_xticks(range(len(labels)), labels)
        ax.set_yticks(range(len(labels)), labels)
        ax.grid(visible=False)
    run.figure(
        "where it looks",
        figure,
        "Attention on one sequence, heads averaged, the larger of the two blocks. Right of the diagonal is what comes "
        "later: without the mask it is looked at as well, and any few terms tell which of the sequences this is.",
    )


def show_codes(run: Run) -> None:
    """Sines and cosines for 2,000 places and a width of 512, and with the exponent of the tutorial."""
    places, even = torch.arange(2_000, dtype=torch.float64), torch.arange(0, 512, 2, dtype=torch.float64)
    codes = {
        "pos / 10000^(2i/d)": sinusoidal(places, 512),
        "as in the tutorial: 10000^(4i/d)": waves(places, 10_000.0 ** (-2 * even / 512)).mT.flatten(-2),
    }
    figure, axes = subplots(1, 2, size=(10.4, 4.4))
    for ax, (title, code) in zip(axes[0], codes.items(), strict=True):
        picture = ax.imshow(code.numpy(), cmap=DIVERGING, vmin=-1, vmax=1, extent=(0, 512, 2_000, 0))
        picture.set_interpolation("antialiased")  # fast waves blur to white, and do not fake slow ones
        ax.set_aspect("auto")
        ax.set(title=title, xlabel="coordinate", ylabel="place")
        ax.grid(visible=False)
    figure.colorbar(picture, ax=axes[0].tolist()).outline.set_visible(False)
    run.figure(
        "codes of places",
        figure,
        "A row is the code of a place. On the right more than half of the coordinates hardly move: i is even there "
        "already and is doubled once more.",
    )
