"""Bahdanau attention over recurrent states learns a reversed word order (book sec. 10.1, Zhao sec. 11)."""

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.attention.core.scores import BilinearScore
from parnassus.attention.models.bahdanau import BahdanauDecoder, DecoderOutput
from parnassus.data.seeds import derive_seed
from parnassus.losses import cross_entropy
from parnassus.optim import Adam
from parnassus.report import bar_chart, subplots
from parnassus.report.style import SEQUENTIAL
from parnassus.train import ModelCollection, Positive, Run, at_least, at_most, descend, no_band

if TYPE_CHECKING:
    from matplotlib.figure import Figure

covers = ("B10.1-3", "Z11.12", "Z11.13")
expected = {
    "additive": at_least(0.8, "word accuracy on test sentences, additive attention"),
    "bilinear": at_least(0.9, "word accuracy on test sentences, bilinear score"),
    "fixed_vector": at_most(0.93, "word accuracy on test sentences, decoder with a single vector of the sentence"),
    "aligned_weight": at_least(0.6, "additive attention weight of the aligned word and its two neighbours"),
    "additive_longer": no_band("word accuracy on sentences 1.5 times the training length, additive attention"),
    "fixed_vector_longer": no_band(
        "word accuracy on sentences 1.5 times the training length, single vector of the sentence"
    ),
}
profiles = {"smoke": {"steps": 8, "width": 12, "num_test": 20}, "gpu": {"steps": 4_000, "width": 256, "max_length": 20}}


@dataclass(frozen=True)
class Experiment:
    vocab_size: Positive[int] = 12  # words of each language
    max_length: Positive[int] = 7  # maximum number of words in a sentence; the minimum is half of it
    width: Positive[int] = 48  # hidden units of encoder and decoder
    steps: Positive[int] = 600  # gradient steps
    batch_size: Positive[int] = 64  # sentences per gradient step
    learning_rate: Positive[float] = 1e-2  # peak learning rate of Adam, after 20 % of the steps
    num_test: Positive[int] = 300  # test sentences

    def __call__(self, run: Run) -> dict[str, float]:
        size, width = self.vocab_size, self.width
        models = ModelCollection[RecurrentTranslator](
            {
                "additive": RecurrentTranslator(size, width),
                "bilinear": RecurrentTranslator(size, width, BilinearScore(width, width)),
                "fixed_vector": RecurrentTranslator(size, width, use_attention=False),
            }
        )
        models, optimizer, schedule = run.prepare(
            models,
            partial(Adam, lr=self.learning_rate),
            partial(
                OneCycleLR, max_lr=self.learning_rate, total_steps=self.steps + 1, pct_start=0.2, cycle_momentum=False
            ),
        )
        for step, loss in descend(run, models, optimizer, SentenceBatches(self, run.device)):
            schedule.step()
            run.log(step, loss=loss)

        models.eval()
        longer = self.max_length * 3 // 2
        with torch.no_grad():
            source, target = sample_sentences(
                size, self.max_length, self.num_test, derive_seed(run.seed, -1), run.device
            )
            decoded = {name: model(source, target) for name, model in models.named_models()}
            accuracies = {name: word_accuracy(model.greedy(source), target) for name, model in models.named_models()}
            source, target = sample_sentences(size, longer, self.num_test, derive_seed(run.seed, -2), run.device)
            longer_accuracies = {
                name: word_accuracy(model.greedy(source), target) for name, model in models.named_models()
            }
        run.figure(
            "word accuracy",
            bar_chart(
                {name.replace("_", " "): accuracy for name, accuracy in accuracies.items()}
                | {f"{name.replace('_', ' ')}, longer": accuracy for name, accuracy in longer_accuracies.items()},
                x_label="word accuracy",
            ),
            f"Test sentences of {self.max_length} words, and of {longer} words, longer than in training.",
        )
        run.figure(
            "alignment",
            plot_alignments({name: decoded[name].weights[0].cpu() for name in ("additive", "bilinear")}),
            "Attention weights of one sentence: source words (columns) for each target word (rows). The target has the "
            "reversed order, and the alignment follows from training alone. Recurrent states also encode neighbouring "
            "words, so that attention to an adjacent word can suffice.",
        )
        run.note(
            "task",
            "The sentences are synthetic: each source word has one translation, and the target order is reversed. With "
            "attention the decoder has access to every state; without, the encoder must compress the sentence into "
            "one vector.",
        )
        aligned = decoded["additive"].weights.flip(2)
        aligned_weight = sum(aligned.diagonal(shift, 1, 2).sum(1) for shift in (-1, 0, 1)) / self.max_length
        return {
            **accuracies,
            "aligned_weight": float(aligned_weight.mean()),
            "additive_longer": longer_accuracies["additive"],
            "fixed_vector_longer": longer_accuracies["fixed_vector"],
        }


class RecurrentTranslator(nn.Module):
    """A bidirectional GRU encoder and a `BahdanauDecoder`; without `use_attention` it attends to the last state."""

    def __init__(self, words: int, width: int, score: nn.Module | None = None, *, use_attention: bool = True) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.encoder = nn.GRU(width, width // 2, batch_first=True, bidirectional=True)
        self.decoder = BahdanauDecoder(words + 1, width, 2 * (width // 2), score=score)  # with a begin token
        self.initial_state = nn.Linear(2 * (width // 2), width)
        self.use_attention = use_attention

    def encode(self, source: Tensor) -> tuple[Tensor, Tensor]:
        """The states that the decoder attends to, and its initial state."""
        states, last = self.encoder(self.embedding(source))
        final_state = last.transpose(0, 1).flatten(1)
        memory = states if self.use_attention else final_state[:, None]
        return memory, self.initial_state(final_state).tanh()

    def forward(self, source: Tensor, target: Tensor) -> DecoderOutput:
        """The output for each target word given the previous ones (teacher forcing)."""
        begin = torch.full_like(target[:, :1], self.embedding.num_embeddings)
        memory, state = self.encode(source)
        output: DecoderOutput = self.decoder(torch.cat([begin, target[:, :-1]], 1), memory, state=state)
        return output

    def loss(self, source: Tensor, target: Tensor) -> Tensor:
        """The mean of −log p per target word, in nats."""
        return cross_entropy(self(source, target).logits, target).mean()

    def greedy(self, source: Tensor) -> Tensor:
        """Greedy translations, as long as the source."""
        memory, state = self.encode(source)
        word, words = torch.full_like(source[:, 0], self.embedding.num_embeddings), []
        for _ in range(source.shape[1]):
            logits, state, _ = self.decoder.step(word, state, memory)
            word = logits.argmax(-1)
            words.append(word)
        return torch.stack(words, 1)


@dataclass(frozen=True)
class SentenceBatches:
    """Random sentences, new at every step and of one length per batch: a pure function of (seed, step)."""

    experiment: Experiment
    device: torch.device

    def __len__(self) -> int:
        return self.experiment.steps

    def at(self, step: int, seed: int, rank: int, world_size: int) -> tuple[Tensor, Tensor]:
        key = derive_seed(seed, step, rank)
        max_length = self.experiment.max_length
        min_length = (max_length + 1) // 2
        length = min_length + key % (max_length - min_length + 1)
        size = max(1, self.experiment.batch_size // world_size)
        return sample_sentences(self.experiment.vocab_size, length, size, key, self.device)


def sample_sentences(words: int, length: int, count: int, seed: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Random source sentences, and targets in which word w is w + 3 (mod n) and the order is reversed."""
    source = torch.randint(0, words, (count, length), generator=torch.Generator().manual_seed(seed)).to(device)
    return source, ((source + 3) % words).flip(1)


def word_accuracy(predicted: Tensor, target: Tensor) -> float:
    return float((predicted == target).float().mean())


def plot_alignments(maps: dict[str, Tensor]) -> "Figure":
    """Attention weights of source words by target word, a panel for each model."""
    figure, axes = subplots(1, len(maps), size=(4.2 * len(maps), 3.8))
    for ax, (name, weights) in zip(axes[0], maps.items(), strict=True):
        positions = range(weights.shape[0])
        image = ax.imshow(weights.numpy(), cmap=SEQUENTIAL, vmin=0, vmax=1)
        ax.grid(visible=False)
        ax.set(title=name, xlabel="source word", xticks=list(positions), yticks=list(positions))
        ax.set_xticklabels([str(position + 1) for position in positions])
        ax.set_yticklabels([str(position + 1) for position in positions])
    axes[0, 0].set_ylabel("target word")
    figure.colorbar(image, ax=axes[0].tolist()).outline.set_visible(False)
    return figure
