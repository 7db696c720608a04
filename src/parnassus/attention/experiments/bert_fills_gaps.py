"""BERT fills gaps in sentences from both sides, beside a recurrent and a leaner network (book secs. 10.1.1-10.1.2)."""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import one_hot, pad
from torch.nn.utils.rnn import pad_sequence
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.attention.bert import MaskedLanguageModel, bert
from parnassus.attention.block import feed_forward
from parnassus.attention.classifier import SentenceClassifier
from parnassus.attention.embedding import TokenEmbedding
from parnassus.attention.encoder import Encoder, encoder, masked_mean, of_length_one
from parnassus.attention.feature_ridge import FeatureRidge
from parnassus.attention.lean import LeanBlock, NeighbourMixing
from parnassus.attention.recurrent_encoder import RecurrentEncoder
from parnassus.data import Split
from parnassus.data.phrases import NOUNS, Phrase, phrases
from parnassus.layers.dense import parameter_count
from parnassus.optim import Adam
from parnassus.report import bars
from parnassus.report.words import guessed_words
from parnassus.text import WordTokeniser
from parnassus.text.words import split_words
from parnassus.train import Run, SideBySide, at_least, at_most, descend, reported

covers = ("B10.1.1-8", "B10.1.1-9", "B10.1.2-8", "B10.1.2-12", "B10.1.2-13")
expected = {
    "found_bert": at_least(0.42, "share of hidden words that BERT finds, one hidden at a time"),
    "found_recurrent": at_least(0.4, "the same with two recurrent networks, one from each end"),
    "found_lean": at_least(0.42, "the same with filters that hear two neighbours on each side a layer"),
    "found_neighbours": reported("the same by counting which word stood between these two neighbours most often"),
    "found_left": reported("the same by counting which word followed the one before most often"),
    "found_commonest": at_most(0.2, "the same when the commonest word is always guessed"),
    "nats_bert": at_most(1.7, "−log p of the hidden word, BERT"),
    "nats_recurrent": reported("−log p of the hidden word, recurrent"),
    "nats_lean": reported("−log p of the hidden word, lean"),
    "subject_pooled": at_least(0.9, "share of subjects named by a transformer's last layer, pooled, that learned to"),
    "subject_thought": at_least(0.9, "the same by the thought vector of a recurrent network"),
    "subject_bag": at_most(0.85, "the same by the mean of word vectors, which knows no order"),
    "untaught_pooled": reported("the same by a linear map upon BERT's last layer, pooled, BERT left as it is"),
    "untaught_thought": reported("the same upon the thought vector of the recurrent network that fills gaps"),
    "untaught_bag": reported("the same upon the mean of BERT's word vectors"),
}
profiles = {
    "smoke": {"steps": 4, "batch": 8, "width": 16, "examples": 60, "judged": 20},
    "gpu": {"steps": 4_000, "batch": 256, "width": 128, "depth": 3, "examples": 20_000, "judged": 2_000},
}

NAMES = {"bert": "BERT", "recurrent": "two recurrent networks", "lean": "filters over neighbours"}
SPECIAL = ("<padding>", "<mask>")
RIDGE = 1e-3
"""Of the linear maps that read the subject off a sentence's vector."""


@dataclass(frozen=True)
class Experiment:
    examples: int = 3_000  # sentences to learn from
    judged: int = 300  # unseen sentences
    width: int = 64  # numbers for each word
    heads: int = 4  # of attention
    depth: int = 2  # blocks, or layers of the recurrent networks
    reach: int = 2  # neighbours on each side that a lean layer hears
    steps: int = 400  # gradient steps; half as many to learn who acts
    batch: int = 64  # sentences a step
    lr: float = 3e-3  # Adam's largest learning rate, reached after a tenth of the steps

    def model(self, vocabulary: int, places: int) -> SideBySide[MaskedLanguageModel]:
        """Three ways to see both sides of a gap, all of the same width."""
        recurrent = RecurrentEncoder(vocabulary, width=self.width, depth=self.depth)
        return SideBySide(
            {
                "bert": bert(vocabulary, places, width=self.width, heads=self.heads, depth=self.depth),
                "recurrent": MaskedLanguageModel(recurrent),
                "lean": MaskedLanguageModel(self.lean(vocabulary)),
            }
        )

    def lean(self, vocabulary: int) -> Encoder:
        """An encoder without attention: one layer more, so that it hears a whole sentence."""
        norm = partial(nn.LayerNorm, self.width)
        blocks = [
            LeanBlock(NeighbourMixing(self.width, self.reach), feed_forward(self.width), norm=norm)
            for _ in range(self.depth + 1)
        ]
        embedding = of_length_one(TokenEmbedding(vocabulary, self.width))
        return Encoder(embedding, blocks, norm=nn.LayerNorm(self.width))

    def __call__(self, run: Run) -> dict[str, float]:
        drawn = phrases(self.examples + self.judged)
        learned, unseen = drawn[: self.examples], drawn[self.examples :]
        words = WordTokeniser.fit("\n".join(phrase.german for phrase in drawn), special=SPECIAL)
        train, test = (rows(words, part).to(run.device) for part in (learned, unseen))
        places = max(train.shape[1], test.shape[1])
        models = run.build(self.model, vocabulary=words.vocabulary, places=places)
        models, optimizer = run.prepare(models, partial(Adam, lr=self.lr))
        warming = OneCycleLR(optimizer, self.lr, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False)
        run.keep("warming", warming)
        for step, loss in descend(run, models, optimizer, Split(train).batches(self.batch, self.steps)):
            warming.step()
            run.log(step, loss=loss / len(models))

        models.eval()
        gaps = every_gap(test)
        result: dict[str, float] = {}
        for name, model in models.every():
            log_p = at_gaps(model, gaps)
            result[f"found_{name}"] = float((log_p.argmax(1) == gaps.wanted).float().mean())
            result[f"nats_{name}"] = -float(log_p.gather(1, gaps.wanted[:, None]).mean())
        result |= counted(train.cpu(), test.cpu())
        show_found(run, models, result)
        show_guesses(run, models.one("bert"), words, test)
        subjects = [torch.tensor([subject(phrase) for phrase in part], device=run.device) for part in (learned, unseen)]
        taught = self.learn_who_acts(run, Split(train, subjects[0]), Split(test, subjects[1]), words.vocabulary)
        untaught = read_who_acts(models, Split(train, subjects[0]), Split(test, subjects[1]))
        show_who_acts(run, taught, untaught)
        named = {f"subject_{name}": share for name, share in taught.items()}
        return {**result, **named, **{f"untaught_{name}": share for name, share in untaught.items()}}

    def learn_who_acts(self, run: Run, train: Split, test: Split, vocabulary: int) -> dict[str, float]:
        """The subject of a sentence from one vector, which three encoders learn to make for this."""
        places = max(train.x.shape[1], test.x.shape[1])
        whole = encoder(vocabulary, places, width=self.width, heads=self.heads, depth=self.depth)
        words = Encoder(of_length_one(TokenEmbedding(vocabulary, self.width)), [], norm=nn.Identity())
        recurrent = RecurrentEncoder(vocabulary, width=self.width, depth=self.depth)
        classifiers: SideBySide[nn.Module] = SideBySide(
            {
                "pooled": SentenceClassifier(whole, Encoder.pooled, len(NOUNS)),
                "thought": SentenceClassifier(recurrent, RecurrentEncoder.thought, len(NOUNS)),
                "bag": SentenceClassifier(words, Encoder.pooled, len(NOUNS)),
            }
        )
        classifiers, optimizer = run.prepare(classifiers, partial(Adam, lr=self.lr))
        for step, loss in descend(run, classifiers, optimizer, train.pairs(self.batch, self.steps // 2)):
            run.log(step, subject_loss=loss / len(classifiers))
        classifiers.eval()
        with torch.no_grad():
            return {name: share_named(model(test.x), test) for name, model in classifiers.every()}


@dataclass(frozen=True)
class Gaps:
    """Sentences with one word hidden each: where it stood, and which it was."""

    tokens: Int[Tensor, "gap time"]
    place: Int[Tensor, " gap"]
    wanted: Int[Tensor, " gap"]


def rows(words: WordTokeniser, part: Sequence[Phrase]) -> Int[Tensor, "sentence time"]:
    """German sentences as rows of words, filled up to the longest."""
    return pad_sequence([words.encode(phrase.german) for phrase in part], batch_first=True)


def every_gap(tokens: Int[Tensor, "sentence time"]) -> Gaps:
    """Each word of each sentence hidden in turn."""
    sentence, place = (tokens != 0).nonzero(as_tuple=True)
    wanted = tokens[sentence, place]
    hidden = tokens[sentence].scatter(1, place[:, None], MaskedLanguageModel.MASK)
    return Gaps(hidden, place, wanted)


@torch.no_grad()
def at_gaps(model: MaskedLanguageModel, gaps: Gaps) -> Float[Tensor, "gap vocabulary"]:
    """The log-probability of every word at the gap of each sentence."""
    parts = zip(gaps.tokens.split(512), gaps.place.split(512), strict=True)
    return torch.cat([model(part)[torch.arange(len(part)), place].log_softmax(-1) for part, place in parts])


def counted(train: Int[Tensor, "row time"], test: Int[Tensor, "other time_too"]) -> dict[str, float]:
    """How many hidden words counting finds: from nothing, from the word before, from both neighbours."""
    contexts = {"commonest": (False, False), "left": (True, False), "neighbours": (True, True)}
    seen = [_between(row) for row in train.tolist()]
    asked = [_between(row) for row in test.tolist()]
    commonest = Counter(word for row in seen for _, word, _ in row).most_common(1)[0][0]
    found = {}
    for name, (left, right) in contexts.items():
        tables: dict[tuple[int, int], Counter[int]] = {}
        for before, word, after in (each for row in seen for each in row):
            tables.setdefault((before * left, after * right), Counter())[word] += 1
        guesses = [
            tables[key].most_common(1)[0][0] == word if (key := (before * left, after * right)) in tables
            else commonest == word
            for row in asked
            for before, word, after in row
        ]  # fmt: skip
        found[f"found_{name}"] = sum(guesses) / len(guesses)
    return found


def _between(row: list[int]) -> list[tuple[int, int, int]]:
    """Each word with the one before and the one after; 0 beyond the ends."""
    words = [0, *(word for word in row if word), 0]
    return list(zip(words, words[1:], words[2:], strict=False))


@torch.no_grad()
def read_who_acts(models: SideBySide[MaskedLanguageModel], train: Split, test: Split) -> dict[str, float]:
    """How well a linear map reads the subject off a sentence's vector, the networks left as filling gaps made them."""
    reader, recurrent = models.one("bert").encoder, models.one("recurrent").encoder
    assert isinstance(reader, Encoder)
    assert isinstance(recurrent, RecurrentEncoder)
    ways: dict[str, Callable[[Tensor], Tensor]] = {
        "pooled": reader.pooled,
        "thought": recurrent.thought,
        "bag": lambda part: masked_mean(reader.embedding.tokens(part), reader.mask(part)),
    }
    found = {}
    for name, vector in ways.items():
        vectors = [torch.cat([vector(piece) for piece in part.x.split(512)]) for part in (train, test)]
        found[name] = share_named(read_off(vectors[0], train.y, vectors[1]), test)
    return found


def share_named(scores: Float[Tensor, "row classes"], test: Split) -> float:
    assert test.y is not None
    return float(scores.argmax(1).eq(test.y).float().mean())


def show_who_acts(run: Run, taught: dict[str, float], untaught: dict[str, float]) -> None:
    titles = {"pooled": "last layer, pooled", "thought": "recurrent thought vector", "bag": "mean of word vectors"}
    shown = {f"{titles[name]} (taught)": share for name, share in taught.items()}
    run.figure(
        "who_acts",
        bars(shown | {f"{titles[name]} (untaught)": untaught[name] for name in untaught}, x_label="subjects named"),
        "One vector for a sentence: does it know who acts? Taught: the whole network learned for this question. "
        "Untaught: it learned to fill gaps, and a linear map reads the answer off. Words without order cannot tell who "
        "sees whom.",
    )
    run.note(
        "sentence vectors",
        "The book holds that vectors for whole sentences were not solved before transformers. Taught, both kinds of "
        "vector know who acts, and words without order do not. Untaught, after filling gaps alone, neither tells much "
        "more than its words do: to guess a hidden word, roles need not be kept where a linear map finds them.",
    )


def subject(phrase: Phrase) -> int:
    """The number of the noun that acts: English names it first."""
    numbers = {noun.english: number for number, noun in enumerate(NOUNS)}
    return next(numbers[word] for word in split_words(phrase.english) if word in numbers)


def read_off(
    train: Float[Tensor, "row width"], labels: Int[Tensor, " row"] | None, test: Float[Tensor, "other width"]
) -> Float[Tensor, "other classes"]:
    """How well each class fits `test`, by ridge regression on one-hot targets, in closed form."""
    assert labels is not None
    mean, spread = train.mean(0), train.std(0) + 1e-6
    train, test = (pad((x - mean) / spread, (0, 1), value=1.0).double() for x in (train, test))
    targets = one_hot(labels, len(NOUNS)).double()
    return FeatureRidge.fit(train, targets, penalty=RIDGE).predict(test)


def show_found(run: Run, models: SideBySide[MaskedLanguageModel], result: dict[str, float]) -> None:
    shown = {
        "the commonest word": result["found_commonest"],
        "by the word before": result["found_left"],
        "by both neighbours": result["found_neighbours"],
        **{NAMES[name]: result[f"found_{name}"] for name in models},
    }
    run.figure(
        "found",
        bars(shown, x_label="share of hidden words found"),
        "Words of unseen sentences, hidden one at a time. Many gaps have several good answers, so nobody finds all; "
        "the first three count words, the others have learned.",
    )
    run.table(
        "networks",
        [
            {"network": NAMES[name], "parameters": parameter_count(models.one(name)), "found": result[f"found_{name}"],
             "nats a gap": result[f"nats_{name}"]}
            for name in models
        ],
        "The same gaps. Attention costs T² d for T words, filters T d, recurrent networks T steps one after the other.",
    )  # fmt: skip


def show_guesses(
    run: Run, model: MaskedLanguageModel, words: WordTokeniser, test: Int[Tensor, "sentence time"]
) -> None:
    """One sentence, each word hidden in turn, and what BERT expects there."""
    longest = int((test != 0).sum(1).argmax())
    gaps = every_gap(test[longest][None])
    names = [words.decode(word[None].cpu()) for word in gaps.wanted]
    probability, guess = at_gaps(model, gaps).exp().topk(3, dim=1)
    labels = [[words.decode(word[None]) for word in row] for row in guess.cpu()]
    run.figure(
        "guesses",
        guessed_words(names, labels, probability.cpu(), (guess == gaps.wanted[:, None]).cpu()),
        "An unseen sentence, each of its words hidden in turn: the three likeliest words in that gap, and how likely "
        "BERT finds them. Orange is the word that stood there.",
    )
