"""BERT, a bidirectional RNN and a MetaFormer without attention predict masked words (book secs. 10.1.1-10.1.2).

Fill masks in German sentences: echo "der [MASK] sieht die katze." | parnassus predict last
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal, cast

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import one_hot, pad
from torch.nn.utils.rnn import pad_sequence
from torch.optim.lr_scheduler import OneCycleLR

from parnassus.attention.efficient.neighbour_mixing import MetaFormerBlock, NeighbourMixing
from parnassus.attention.figures import plot_mask_predictions
from parnassus.attention.models.bert import MaskedLanguageModel, bert
from parnassus.attention.models.block import feed_forward
from parnassus.attention.models.encoder import Encoder, encoder, masked_mean
from parnassus.attention.models.sentence_classifier import SentenceClassifier
from parnassus.attention.regression.feature_ridge import FeatureRidge
from parnassus.data import DataError, Split
from parnassus.data.built_in.phrases import NOUNS, Phrase, phrases
from parnassus.layers.dense import count_parameters
from parnassus.layers.token_embedding import TokenEmbedding, initialise_embeddings
from parnassus.optim import Adam
from parnassus.recurrent.encoder import RecurrentEncoder
from parnassus.report import bar_chart
from parnassus.text import Tokeniser, WordTokeniser, tokeniser_from_dict, tokeniser_to_dict
from parnassus.text.tokeniser import warn_unknown_words
from parnassus.text.word_tokeniser import split_words
from parnassus.train import ModelCollection, Positive, Run, at_least, at_most, descend, no_band
from parnassus.train.sample_predict_evaluate import Input, ResultRow, non_empty_lines
from parnassus.train.trained import TrainedRun

covers = ("B10.1.1-8", "B10.1.1-9", "B10.1.2-8", "B10.1.2-12", "B10.1.2-13")
expected = {
    "accuracy_bert": at_least(0.42, "accuracy of BERT on masked words, one mask per sentence"),
    "accuracy_recurrent": at_least(0.4, "accuracy on masked words, bidirectional recurrent network"),
    "accuracy_metaformer": at_least(
        0.42, "accuracy on masked words, MetaFormer blocks that mix two neighbours on each side"
    ),
    "accuracy_neighbours": no_band("accuracy on masked words, most frequent word between the two neighbours"),
    "accuracy_bigrams": no_band("accuracy on masked words, most frequent word after the previous word"),
    "accuracy_most_frequent": at_most(0.2, "accuracy on masked words, most frequent word"),
    "nll_bert": at_most(1.7, "negative log-likelihood per masked word in nats, BERT"),
    "nll_recurrent": no_band("negative log-likelihood per masked word in nats, bidirectional recurrent network"),
    "nll_metaformer": no_band("negative log-likelihood per masked word in nats, MetaFormer"),
    "subject_pooled": at_least(0.9, "subject accuracy of a trained transformer with mean pooling"),
    "subject_recurrent": at_least(0.9, "subject accuracy of the final state of a trained recurrent network"),
    "subject_bag": at_most(0.85, "subject accuracy of the mean of trained word vectors, which ignores word order"),
    "probe_pooled": no_band("subject accuracy of a linear probe on BERT's pooled last layer"),
    "probe_recurrent": no_band(
        "subject accuracy of a linear probe on the final state of the recurrent masked language model"
    ),
    "probe_bag": no_band("subject accuracy of a linear probe on the mean of BERT's word vectors"),
}
profiles = {
    "smoke": {"steps": 4, "batch_size": 8, "width": 16, "num_examples": 60, "num_test": 20},
    "gpu": {
        "steps": 4_000,
        "batch_size": 256,
        "width": 128,
        "num_layers": 3,
        "num_examples": 20_000,
        "num_test": 2_000,
    },
}

TITLES = {"bert": "BERT", "recurrent": "bidirectional RNN", "metaformer": "MetaFormer"}
SPECIAL = ("<padding>", "<mask>")
MASK_TEXT = "[MASK]"  # a masked word in the input of `parnassus predict`
PROBE_PENALTY = 1e-3  # ridge penalty of the linear probes


class MaskedWordModels(ModelCollection[MaskedLanguageModel]):
    """The masked language models with their tokeniser."""

    def __init__(self, models: Mapping[str, MaskedLanguageModel], tokeniser: Tokeniser) -> None:
        super().__init__(models)
        self.tokeniser = tokeniser


@dataclass(frozen=True)
class Experiment:
    num_examples: Positive[int] = 3_000  # training sentences
    num_test: Positive[int] = 300  # test sentences
    width: Positive[int] = 64  # width of embeddings and layers
    num_heads: Positive[int] = 4  # attention heads per layer
    num_layers: Positive[int] = 2  # transformer blocks, or layers of the recurrent networks
    window_radius: Positive[int] = 2  # neighbours on each side that a MetaFormer block mixes
    steps: Positive[int] = 400  # gradient steps; half as many for the subject classifiers
    batch_size: Positive[int] = 64  # sentences per gradient step
    learning_rate: Positive[float] = 3e-3  # peak learning rate of Adam, after 10 % of the steps

    def model(self, tokens: dict[str, object], max_length: int) -> MaskedWordModels:
        """Three bidirectional encoders of the same width."""
        tokeniser = tokeniser_from_dict(tokens)
        vocabulary = tokeniser.vocabulary
        recurrent = RecurrentEncoder(vocabulary, width=self.width, depth=self.num_layers)
        models = {
            "bert": bert(vocabulary, max_length, width=self.width, heads=self.num_heads, depth=self.num_layers),
            "recurrent": MaskedLanguageModel(recurrent),
            "metaformer": MaskedLanguageModel(self.metaformer(vocabulary)),
        }
        return MaskedWordModels(models, tokeniser)

    def metaformer(self, vocabulary: int) -> Encoder:
        """An encoder without attention, with one more block so that its receptive field covers a sentence."""
        norm = partial(nn.LayerNorm, self.width)
        blocks = [
            MetaFormerBlock(NeighbourMixing(self.width, self.window_radius), feed_forward(self.width), norm=norm)
            for _ in range(self.num_layers + 1)
        ]
        embedding = initialise_embeddings(TokenEmbedding(vocabulary, self.width))
        return Encoder(embedding, blocks, norm=nn.LayerNorm(self.width))

    def __call__(self, run: Run) -> dict[str, float]:
        sentences = phrases(self.num_examples + self.num_test)
        train_sentences, test_sentences = sentences[: self.num_examples], sentences[self.num_examples :]
        tokeniser = WordTokeniser.fit("\n".join(phrase.german for phrase in sentences), special=SPECIAL)
        train, test = (encode(tokeniser, part).to(run.device) for part in (train_sentences, test_sentences))
        max_length = max(train.shape[1], test.shape[1])
        models = run.build(self.model, tokens=tokeniser_to_dict(tokeniser), max_length=max_length)
        models, optimizer, schedule = run.prepare(
            models,
            partial(Adam, lr=self.learning_rate),
            partial(
                OneCycleLR, max_lr=self.learning_rate, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False
            ),
        )
        for step, loss in descend(run, models, optimizer, Split(train).batches(self.batch_size, self.steps)):
            schedule.step()
            run.log(step, loss=loss / len(models))

        models.eval()
        masked = mask_each_word(test)
        result: dict[str, float] = {}
        for name, model in models.named_models():
            log_p = predict_masked(model, masked)
            result[f"accuracy_{name}"] = float((log_p.argmax(1) == masked.targets).float().mean())
            result[f"nll_{name}"] = -float(log_p.gather(1, masked.targets[:, None]).mean())
        result |= count_baselines(train.cpu(), test.cpu())
        plot_accuracies(run, models, result)
        plot_predictions(run, models.model("bert"), tokeniser, test)
        labels = [
            torch.tensor([subject_index(phrase) for phrase in part], device=run.device)
            for part in (train_sentences, test_sentences)
        ]
        splits = Split(train, labels[0]), Split(test, labels[1])
        trained = self.train_subject_classifiers(run, *splits, tokeniser.vocabulary)
        probes = probe_subjects(models, *splits)
        plot_subjects(run, trained, probes)
        subject = {f"subject_{name}": accuracy for name, accuracy in trained.items()}
        return {**result, **subject, **{f"probe_{name}": accuracy for name, accuracy in probes.items()}}

    def train_subject_classifiers(self, run: Run, train: Split, test: Split, vocabulary: int) -> dict[str, float]:
        """The test accuracy of three sentence encoders trained to classify the subject."""
        max_length = max(train.x.shape[1], test.x.shape[1])
        transformer = encoder(vocabulary, max_length, width=self.width, heads=self.num_heads, depth=self.num_layers)
        words = Encoder(initialise_embeddings(TokenEmbedding(vocabulary, self.width)), [], norm=nn.Identity())
        recurrent = RecurrentEncoder(vocabulary, width=self.width, depth=self.num_layers)
        classifiers: ModelCollection[nn.Module] = ModelCollection(
            {
                "pooled": SentenceClassifier(transformer, Encoder.mean_pool, len(NOUNS)),
                "recurrent": SentenceClassifier(recurrent, RecurrentEncoder.final_state, len(NOUNS)),
                "bag": SentenceClassifier(words, Encoder.mean_pool, len(NOUNS)),
            }
        )
        classifiers, optimizer = run.prepare(classifiers, partial(Adam, lr=self.learning_rate))
        for step, loss in descend(run, classifiers, optimizer, train.pairs(self.batch_size, self.steps // 2)):
            run.log(step, subject_loss=loss / len(classifiers))
        classifiers.eval()
        with torch.no_grad():
            return {name: accuracy(model(test.x), test) for name, model in classifiers.named_models()}


@dataclass(frozen=True)
class Predict:
    suffixes: ClassVar[tuple[str, ...]] = (".txt",)
    network: Literal["bert", "recurrent", "metaformer"] = "bert"  # masked language model
    top_k: Positive[int] = 3  # words reported for each mask

    def __call__(self, trained: TrainedRun, inputs: Sequence[Input]) -> Iterator[ResultRow]:
        """The most probable words at each [MASK] of each line."""
        models = cast("MaskedWordModels", trained.model)
        first = len(models.tokeniser.special)
        for line in non_empty_lines(inputs):
            tokens = encode_masked(models.tokeniser, line)
            with torch.no_grad():
                probabilities = models.model(self.network)(tokens[None])[0].softmax(-1)
            for mask, row in enumerate(probabilities[tokens == MaskedLanguageModel.MASK, first:], 1):
                for value, word in zip(*(part.tolist() for part in row.topk(min(self.top_k, len(row)))), strict=True):
                    name = models.tokeniser.decode(torch.tensor([first + word]))
                    yield {"sentence": line, "mask": mask, "word": name, "probability": value}


def encode_masked(tokeniser: Tokeniser, sentence: str) -> Int[Tensor, " time"]:
    """The tokens of a sentence, with the mask token for each [MASK]."""
    parts = sentence.split(MASK_TEXT)
    if len(parts) < 2:
        raise DataError(f"every sentence must contain {MASK_TEXT}; got {sentence!r}")
    warn_unknown_words(tokeniser, " ".join(parts))
    mask = torch.tensor([MaskedLanguageModel.MASK])
    tokens = [each for part in parts for each in (mask, tokeniser.encode(part))]
    return torch.cat(tokens[1:])


@dataclass(frozen=True)
class MaskedWords:
    """Sentences with one masked word each, its position and its index."""

    tokens: Int[Tensor, "mask time"]
    positions: Int[Tensor, " mask"]
    targets: Int[Tensor, " mask"]


def encode(tokeniser: WordTokeniser, sentences: Sequence[Phrase]) -> Int[Tensor, "sentence time"]:
    """German sentences as padded rows of word indices."""
    return pad_sequence([tokeniser.encode(phrase.german) for phrase in sentences], batch_first=True)


def mask_each_word(tokens: Int[Tensor, "sentence time"]) -> MaskedWords:
    """Each word of each sentence masked in turn."""
    sentences, positions = (tokens != 0).nonzero(as_tuple=True)
    targets = tokens[sentences, positions]
    masked = tokens[sentences].scatter(1, positions[:, None], MaskedLanguageModel.MASK)
    return MaskedWords(masked, positions, targets)


@torch.no_grad()
def predict_masked(model: MaskedLanguageModel, masked: MaskedWords) -> Float[Tensor, "mask vocabulary"]:
    """Log-probabilities of all words at the masked position of each sentence."""
    batches = zip(masked.tokens.split(512), masked.positions.split(512), strict=True)
    return torch.cat(
        [model(tokens)[torch.arange(len(tokens)), positions].log_softmax(-1) for tokens, positions in batches]
    )


def count_baselines(
    train: Int[Tensor, "train_row train_time"], test: Int[Tensor, "test_row test_time"]
) -> dict[str, float]:
    """The accuracy of predictions by word counts: without context, by the previous word, by both neighbours."""
    contexts = {"most_frequent": (False, False), "bigrams": (True, False), "neighbours": (True, True)}
    train_words, test_words = ([_with_neighbours(row) for row in part.tolist()] for part in (train, test))
    most_frequent = Counter(word for row in train_words for _, word, _ in row).most_common(1)[0][0]
    accuracies = {}
    for name, (use_left, use_right) in contexts.items():
        tables: dict[tuple[int, int], Counter[int]] = {}
        for before, word, after in (each for row in train_words for each in row):
            tables.setdefault((before * use_left, after * use_right), Counter())[word] += 1
        hits = [
            tables[key].most_common(1)[0][0] == word if (key := (before * use_left, after * use_right)) in tables
            else most_frequent == word
            for row in test_words
            for before, word, after in row
        ]  # fmt: skip
        accuracies[f"accuracy_{name}"] = sum(hits) / len(hits)
    return accuracies


def _with_neighbours(row: list[int]) -> list[tuple[int, int, int]]:
    """Each word with the previous and the next one; 0 beyond the ends."""
    words = [0, *(word for word in row if word), 0]
    return list(zip(words, words[1:], words[2:], strict=False))


@torch.no_grad()
def probe_subjects(models: ModelCollection[MaskedLanguageModel], train: Split, test: Split) -> dict[str, float]:
    """The test accuracy of linear probes for the subject on sentence vectors of the masked language models."""
    transformer, recurrent = models.model("bert").encoder, models.model("recurrent").encoder
    assert isinstance(transformer, Encoder)
    assert isinstance(recurrent, RecurrentEncoder)
    sentence_vectors: dict[str, Callable[[Tensor], Tensor]] = {
        "pooled": transformer.mean_pool,
        "recurrent": recurrent.final_state,
        "bag": lambda part: masked_mean(transformer.embedding.tokens(part), transformer.mask(part)),
    }
    accuracies = {}
    for name, vector in sentence_vectors.items():
        train_x, test_x = (torch.cat([vector(batch) for batch in part.x.split(512)]) for part in (train, test))
        accuracies[name] = accuracy(fit_and_predict(train_x, train.y, test_x), test)
    return accuracies


def accuracy(scores: Float[Tensor, "row classes"], test: Split) -> float:
    assert test.y is not None
    return float(scores.argmax(1).eq(test.y).float().mean())


def plot_subjects(run: Run, trained: dict[str, float], probes: dict[str, float]) -> None:
    titles = {"pooled": "transformer, mean pooling", "recurrent": "recurrent, final state", "bag": "mean word vector"}
    values = {f"{titles[name]} (trained)": value for name, value in trained.items()}
    run.figure(
        "subject accuracy",
        bar_chart(values | {f"{titles[name]} (probe)": probes[name] for name in probes}, x_label="subject accuracy"),
        "Classification of the subject from one sentence vector. Trained: the encoder is trained for this task. Probe: "
        "a linear probe on the masked language model. Word vectors without order cannot distinguish subject and "
        "object.",
    )
    run.note(
        "sentence vectors",
        "The book states that sentence vectors were an unsolved problem before transformers. Trained for the task, "
        "both the recurrent and the pooled transformer vector encode the subject, and the mean word vector does not. "
        "After masked language modelling alone, neither is much better than the word vectors under a linear probe: "
        "predicting masked words does not require a linear encoding of the subject.",
    )


def subject_index(phrase: Phrase) -> int:
    """The index of the subject: the first noun of the English sentence."""
    indices = {noun.english: index for index, noun in enumerate(NOUNS)}
    return next(indices[word] for word in split_words(phrase.english) if word in indices)


def fit_and_predict(
    train: Float[Tensor, "row width"], labels: Int[Tensor, " row"] | None, test: Float[Tensor, "test_row width"]
) -> Float[Tensor, "test_row classes"]:
    """Class scores for `test` by ridge regression on one-hot targets, in closed form."""
    assert labels is not None
    mean, std = train.mean(0), train.std(0) + 1e-6
    train, test = (pad((x - mean) / std, (0, 1), value=1.0).double() for x in (train, test))
    targets = one_hot(labels, len(NOUNS)).double()
    return FeatureRidge.fit(train, targets, penalty=PROBE_PENALTY).predict(test)


def plot_accuracies(run: Run, models: ModelCollection[MaskedLanguageModel], result: dict[str, float]) -> None:
    values = {
        "most frequent word": result["accuracy_most_frequent"],
        "counts, previous word": result["accuracy_bigrams"],
        "counts, both neighbours": result["accuracy_neighbours"],
        **{TITLES[name]: result[f"accuracy_{name}"] for name in models},
    }
    run.figure(
        "accuracy",
        bar_chart(values, x_label="accuracy on masked words"),
        "Accuracy on masked words of test sentences, one mask at a time. Many masked positions have several plausible "
        "words, so no model reaches 1. The first three use word counts, the others are trained.",
    )
    run.table(
        "networks",
        [
            {"network": TITLES[name], "parameters": count_parameters(models.model(name)),
             "accuracy": result[f"accuracy_{name}"], "NLL (nats per word)": result[f"nll_{name}"]}
            for name in models
        ],
        "The same masked words. For T words attention costs O(T² d) and neighbour mixing O(T d); recurrent networks "
        "need T sequential steps.",
    )  # fmt: skip


def plot_predictions(
    run: Run, model: MaskedLanguageModel, tokeniser: WordTokeniser, test: Int[Tensor, "sentence time"]
) -> None:
    """BERT's predictions for each word of the longest test sentence."""
    longest = int((test != 0).sum(1).argmax())
    masked = mask_each_word(test[longest][None])
    words = [tokeniser.decode(word[None].cpu()) for word in masked.targets]
    probability, predicted = predict_masked(model, masked).exp().topk(3, dim=1)
    labels = [[tokeniser.decode(word[None]) for word in row] for row in predicted.cpu()]
    is_correct = (predicted == masked.targets[:, None]).cpu()
    run.figure(
        "predictions",
        plot_mask_predictions(words, labels, probability.cpu(), is_correct),
        "A test sentence with each of its words masked in turn: the three most probable words and their "
        "probabilities. Orange is the original word.",
    )
