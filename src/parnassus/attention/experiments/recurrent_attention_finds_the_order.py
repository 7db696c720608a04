"""Attention on top of recurrent states learns how word order changes, and shows it (book sec. 10.1, Zhao sec. 11)."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.attention.bahdanau import BahdanauDecoder, Decoded
from parnassus.attention.scores import BilinearScore
from parnassus.data.seeds import mix
from parnassus.losses import cross_entropy
from parnassus.optim import Adam
from parnassus.report import bars, subplots
from parnassus.report.ink import SEQUENTIAL
from parnassus.train import Run, SideBySide, at_least, at_most, descend, reported

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B10.1-3", "Z11.12", "Z11.13")
expected = {
    "additive": at_least(0.8, "share of words of unseen sentences translated rightly, additive attention"),
    "product": at_least(0.9, "the same with a bilinear score"),
    "one_vector": at_most(0.93, "the same if the decoder sees one vector of the whole sentence"),
    "near_the_word": at_least(0.6, "weight that additive attention gives to the word it writes and its neighbours"),
    "additive_longer": reported("share of words with sentences half as long again as any trained on"),
    "one_vector_longer": reported("the same with one vector"),
}
profiles = {"smoke": {"steps": 8, "width": 12, "judged": 20}, "gpu": {"steps": 4_000, "width": 256, "longest": 20}}


@dataclass(frozen=True)
class Experiment:
    words: int = 12  # words of each language
    longest: int = 7  # words in a sentence at most; at least half as many
    width: int = 48  # units of encoder and decoder
    steps: int = 600  # gradient steps
    batch: int = 64  # sentences a step
    lr: float = 1e-2  # Adam's largest learning rate, reached after a fifth of the steps
    judged: int = 300  # unseen sentences

    def __call__(self, run: Run) -> dict[str, float]:
        models = SideBySide[Translator](
            {
                "additive": Translator(self.words, self.width),
                "product": Translator(self.words, self.width, BilinearScore(self.width, self.width)),
                "one_vector": Translator(self.words, self.width, whole=True),
            }
        )
        models, optimizer = run.prepare(models, partial(Adam, lr=self.lr))
        warming = OneCycleLR(optimizer, self.lr, total_steps=self.steps + 1, pct_start=0.2, cycle_momentum=False)
        run.keep("warming", warming)
        for step, loss in descend(run, models, optimizer, Sentences(self, run.device)):
            warming.step()
            run.log(step, loss=loss)

        models.eval()
        with torch.no_grad():
            source, target = sentences(self.words, self.longest, self.judged, mix(run.seed, -1), run.device)
            decoded = {name: model(source, target) for name, model in models.every()}
            right = {name: share_right(model.greedy(source), target) for name, model in models.every()}
            longer = sentences(self.words, self.longest * 3 // 2, self.judged, mix(run.seed, -2), run.device)
            further = {name: share_right(model.greedy(longer[0]), longer[1]) for name, model in models.every()}
        run.figure(
            "words",
            bars(
                {name.replace("_", " "): share for name, share in right.items()}
                | {f"{name.replace('_', ' ')}, longer": share for name, share in further.items()},
                x_label="share of words translated rightly",
            ),
            f"Unseen sentences of {self.longest} words, and of {self.longest * 3 // 2}, longer than any in training.",
        )
        run.figure(
            "where it looks",
            draw_alignment({name: decoded[name].weights[0].cpu() for name in ("additive", "product")}),
            "One sentence: which words the decoder looks at (columns) while it writes (rows). The other language has "
            "the opposite order; nobody told the network, and its attention says so. States carry what was "
            "read beside them too: to look one word aside may be enough.",
        )
        run.note(
            "what to see",
            "The sentences are made up: the second language has a word for each word of the first, and the opposite "
            "order of words. With attention the decoder asks for the word that it needs; without, the encoder must "
            "put the whole sentence into one vector.",
        )
        aligned = decoded["additive"].weights.flip(2)
        near = sum(aligned.diagonal(shift, 1, 2).sum(1) for shift in (-1, 0, 1)) / self.longest
        return {
            **right,
            "near_the_word": float(near.mean()),
            "additive_longer": further["additive"],
            "one_vector_longer": further["one_vector"],
        }


class Translator(nn.Module):
    """An encoder that reads in both directions, and a decoder that looks at its states; `whole`: at the last alone."""

    def __init__(self, words: int, width: int, score: nn.Module | None = None, *, whole: bool = False) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.read = nn.GRU(width, width // 2, batch_first=True, bidirectional=True)
        self.write = BahdanauDecoder(words + 1, width, 2 * (width // 2), score=score)  # one more word: the beginning
        self.begin = nn.Linear(2 * (width // 2), width)
        self.whole = whole

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """The states to look at, and the state to begin with."""
        states, last = self.read(self.words(source))
        joined = last.transpose(0, 1).flatten(1)
        return joined[:, None] if self.whole else states, self.begin(joined).tanh()

    def forward(self, source: Tensor, target: Tensor) -> Decoded:
        """What it would write after each word of the target, the beginning first."""
        begin = torch.full_like(target[:, :1], self.words.num_embeddings)
        memory, state = self.encode(source)
        decoded: Decoded = self.write(torch.cat([begin, target[:, :-1]], 1), memory, state=state)
        return decoded

    def loss(self, source: Tensor, target: Tensor) -> Tensor:
        return cross_entropy(self(source, target).logits, target).mean()

    def greedy(self, source: Tensor) -> Tensor:
        """As many words as were read, each the likeliest after its own earlier ones."""
        memory, state = self.encode(source)
        word, written = torch.full_like(source[:, 0], self.words.num_embeddings), []
        for _ in range(source.shape[1]):
            logits, state, _ = self.write.step(word, state, memory)
            word = logits.argmax(-1)
            written.append(word)
        return torch.stack(written, 1)


@dataclass(frozen=True)
class Sentences:
    """Sentences made anew at every step, all of a batch of one length, a pure function of (seed, step)."""

    of: Experiment
    device: torch.device

    def __len__(self) -> int:
        return self.of.steps

    def at(self, step: int, seed: int, rank: int, world: int) -> tuple[Tensor, Tensor]:
        key = mix(seed, step, rank)
        shortest = (self.of.longest + 1) // 2
        length = shortest + key % (self.of.longest - shortest + 1)
        return sentences(self.of.words, length, max(1, self.of.batch // world), key, self.device)


def sentences(words: int, length: int, count: int, seed: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Random words, and the same in the other language: word w becomes w + 3 (mod n), and the order is turned round."""
    source = torch.randint(0, words, (count, length), generator=torch.Generator().manual_seed(seed)).to(device)
    return source, ((source + 3) % words).flip(1)


def share_right(written: Tensor, target: Tensor) -> float:
    return float((written == target).float().mean())


def draw_alignment(maps: dict[str, Tensor]) -> "Figure":
    figure, axes = subplots(1, len(maps), size=(4.2 * len(maps), 3.8))
    for ax, (name, weights) in zip(axes[0], maps.items(), strict=True):
        places = range(weights.shape[0])
        picture = ax.imshow(weights.numpy(), cmap=SEQUENTIAL, vmin=0, vmax=1)
        ax.grid(visible=False)
        ax.set(title=name, xlabel="word read", xticks=list(places), yticks=list(places))
        ax.set_xticklabels([str(place + 1) for place in places])
        ax.set_yticklabels([str(place + 1) for place in places])
    axes[0, 0].set_ylabel("word written")
    figure.colorbar(picture, ax=axes[0].tolist()).outline.set_visible(False)
    return figure
