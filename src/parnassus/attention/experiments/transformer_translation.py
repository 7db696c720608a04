"""Transformer translation from German to English, with the attention of each word (book sec. 10.1.1).

Train on sentences of a small grammar, on 29,000 captions (--profile gpu), or on pairs in a file (--pairs mine.tsv).
Translate: echo "der hund sieht die katze." | parnassus predict last, or parnassus predict last sentences.txt.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, ClassVar, Literal, cast

import torch
from jaxtyping import Int
from torch import Tensor
from torch.optim.lr_scheduler import OneCycleLR
from torch.optim.swa_utils import AveragedModel

from parnassus.attention.core.attention_maps import attention_maps
from parnassus.attention.figures import plot_alignment
from parnassus.attention.models.seq2seq import seq2seq
from parnassus.attention.models.translator import SPECIAL, Translator, encode_sentences
from parnassus.data import Batches, DataError, Translations
from parnassus.data.built_in.phrases import phrases
from parnassus.data.sentence_pairs import open_pairs
from parnassus.optim import Adam, clip_gradients
from parnassus.text import BytePairTokeniser, Tokeniser, WordTokeniser, tokeniser_from_dict, tokeniser_to_dict
from parnassus.text.bleu import bleu, bleu_signature
from parnassus.text.tokeniser import warn_unknown_words
from parnassus.train import BuiltIn, NonNegative, Positive, Run, UnitInterval, at_least, descend, no_band
from parnassus.train.sample_predict_evaluate import Input, ResultRow
from parnassus.train.trained import TrainedRun

covers = ("B10.1.1-1", "B10.1.1-6", "B10.1.1-7", "B10.1.1-8")
expected = {
    "exact": at_least(0.9, "fraction of test sentences translated exactly as the reference, beam search"),
    "exact_greedy": no_band("fraction of test sentences translated exactly as the reference, greedy decoding"),
    "words_right": no_band("fraction of test sentences with the words of the reference in any order, beam search"),
    "bleu": no_band("sacreBLEU on the test sentences, beam search; nan if sacrebleu is not installed"),
    "bleu_greedy": no_band("sacreBLEU on the test sentences, greedy decoding"),
    "valid_bleu": no_band("sacreBLEU on the validation sentences, beam search"),
    "test_loss": no_band("negative log-likelihood per target token in nats, without label smoothing"),
    "left_out": no_band("number of sentence pairs removed because they are too long"),
    "parameters": no_band("number of parameters"),
}
profiles = {
    "smoke": {"steps": 5, "batch_size": 8, "width": 16, "num_layers": 1, "num_test": 20, "num_beams": 2},
    "gpu": {
        "pairs": "multi30k", "tokenizer": "byte_pairs", "num_examples": 29_000, "max_length": 128,
        "width": 256, "dim_feedforward": 512, "num_layers": 4, "dropout": 0.3, "steps": 4_000, "batch_size": 256,
        "learning_rate": 2e-3, "num_beams": 5, "num_test": 1_014,
    },
}  # fmt: skip

TABLE_ROWS = 8  # translations in the report


@dataclass(frozen=True)
class Experiment:
    pairs: Annotated[str, BuiltIn("phrases", "multi30k")] = "phrases"  # sentence pairs: data set, or path of a .tsv
    tokenizer: Literal["words", "byte_pairs"] = "words"  # tokenisation
    vocab_size: Positive[int] = 6_000  # maximum number of tokens of each language
    max_length: Positive[int] = 32  # maximum number of tokens of a sentence
    width: Positive[int] = 64  # width of embeddings and layers
    dim_feedforward: Positive[int] | None = None  # hidden units of each MLP; four times the width by default
    num_heads: Positive[int] = 4  # attention heads per layer
    num_layers: Positive[int] = 2  # blocks of the encoder and of the decoder
    dropout: UnitInterval = 0.1  # dropout probability
    label_smoothing: UnitInterval = 0.1  # probability of the target that is distributed over all tokens
    num_examples: Positive[int] = 2_000  # maximum number of training pairs
    steps: Positive[int] = 400  # gradient steps
    batch_size: Positive[int] = 64  # sentence pairs per gradient step
    learning_rate: Positive[float] = 3e-3  # peak learning rate of Adam, after 10 % of the steps
    weight_averaging_fraction: UnitInterval = 0.1  # the weights are averaged over this last fraction of the steps
    num_beams: Positive[int] = 4  # hypotheses kept in beam search
    num_test: Positive[int] = 300  # maximum number of test sentences

    def model(self, source: dict[str, object], target: dict[str, object]) -> Translator:
        tokenisers = tokeniser_from_dict(source), tokeniser_from_dict(target)
        model = seq2seq(
            (tokenisers[0].vocabulary, tokenisers[1].vocabulary),
            self.max_length,
            width=self.width,
            hidden=self.dim_feedforward,
            heads=self.num_heads,
            depth=self.num_layers,
            dropout=self.dropout,
            label_smoothing=self.label_smoothing,
        )
        return Translator(model, *tokenisers)

    def __call__(self, run: Run) -> dict[str, float]:
        pairs = open_pairs(self.pairs)
        pairs = replace(pairs, train=pairs.train[: self.num_examples])
        source, target = (self.fit_tokeniser([pair[side] for pair in pairs.train]) for side in range(2))
        pairs, num_removed = self.remove_long_pairs(pairs, source, target)
        model = run.build(self.model, source=tokeniser_to_dict(source), target=tokeniser_to_dict(target))
        model, optimizer, schedule = run.prepare(
            model,
            partial(Adam, lr=self.learning_rate, betas=(0.9, 0.98)),
            partial(
                OneCycleLR, max_lr=self.learning_rate, total_steps=self.steps + 1, pct_start=0.1, cycle_momentum=False
            ),
        )
        optimizer.register_step_pre_hook(lambda *_: clip_norm(model))
        average: AveragedModel = AveragedModel(model, device=run.device)
        run.keep("average", average)

        valid = [part.to(run.device) for part in encode_pairs(model, pairs.valid[: self.num_test])]
        orders = {phrase.german: phrase.order for phrase in phrases(4_700)} if self.pairs == "phrases" else {}
        monitored = pairs.valid[: self.num_test // 2]
        batches = pair_batches(model, pairs.train, self.batch_size, self.steps, run.device)
        for step, loss in descend(run, model, optimizer, batches):
            schedule.step()
            run.log(step, loss=loss)
            if step >= (1 - self.weight_averaging_fraction) * self.steps:
                average.update_parameters(model)
            if (step + 1) % max(1, self.steps // 10) == 0:
                run.record(step, valid_loss=token_loss(model, *valid), **exact_by_order(model, monitored, orders))
        if int(average.n_averaged) > 0:
            model.load_state_dict(average.module.state_dict())
        model.eval()
        return {**self.evaluate(run, model, pairs), "left_out": float(num_removed)}

    def fit_tokeniser(self, sentences: Sequence[str]) -> Tokeniser:
        """The tokeniser of one language; words that occur once are unknown, so that the unknown token is trained."""
        text = "\n".join(sentences)
        if self.tokenizer == "byte_pairs":
            return BytePairTokeniser.fit(text, self.vocab_size, special=SPECIAL)
        return WordTokeniser.fit(text, max_words=self.vocab_size, min_count=2, special=SPECIAL)

    def remove_long_pairs(self, pairs: Translations, source: Tokeniser, target: Tokeniser) -> tuple[Translations, int]:
        """The pairs that fit into the maximum length, and the number of removed pairs."""
        parts = [
            [pair for pair in part if self.is_within_max_length(pair, source, target)]
            for part in (pairs.train, pairs.valid, pairs.test)
        ]
        if not all(parts):
            raise DataError(
                f"every part needs a pair of at most max_length={self.max_length} tokens; try a larger --max-length"
            )
        num_removed = len(pairs.train) + len(pairs.valid) + len(pairs.test) - sum(map(len, parts))
        return Translations(pairs.source, pairs.target, *parts), num_removed

    def is_within_max_length(self, pair: tuple[str, str], source: Tokeniser, target: Tokeniser) -> bool:
        """Whether both sentences of a pair, with begin and end tokens, have at most the maximum length."""
        return max(len(source.encode(pair[0])) + 1, len(target.encode(pair[1])) + 2) <= self.max_length

    def evaluate(self, run: Run, model: Translator, pairs: Translations) -> dict[str, float]:
        """Results on the test and validation sentences, with examples for the report."""
        test = pairs.test[: self.num_test]
        references = [target for _, target in test]
        translations = {width: translate_pairs(model, test, width) for width in dict.fromkeys((1, self.num_beams))}
        best = translations[self.num_beams]
        bleus = {width: bleu(lines, references) for width, lines in translations.items()}
        valid = pairs.valid[: self.num_test]
        run.table(
            "beam search",
            [
                {"beam width": width, "exact": exact_match(lines, references), "sacreBLEU": bleus[width]}
                for width, lines in translations.items()
            ],
            f"{len(test)} test sentences; {bleu_signature()}.",
        )
        report_translations(run, test, best)
        plot_attention(run, model, test)
        if self.pairs == "phrases":
            run.note(
                "word order",
                "Words are learned before their order. Sentences with English word order are translated correctly "
                "first, those with the verb at the end of a clause last: see the chart “exact”, by word order, on "
                "validation sentences.",
            )
        source, target = (part.to(run.device) for part in encode_pairs(model, test))
        return {
            "exact": exact_match(best, references),
            "exact_greedy": exact_match(translations[1], references),
            "words_right": exact_match([sort_words(line) for line in best], [sort_words(line) for line in references]),
            "bleu": bleus[self.num_beams],
            "bleu_greedy": bleus[1],
            "valid_bleu": bleu(translate_pairs(model, valid, self.num_beams), [target for _, target in valid]),
            "test_loss": token_loss(model, source, target),
            "parameters": float(sum(parameter.numel() for parameter in model.parameters())),
        }


@dataclass(frozen=True)
class Predict:
    suffixes: ClassVar[tuple[str, ...]] = (".txt",)
    num_beams: Positive[int] = 4  # hypotheses kept in beam search; 1 is greedy decoding
    length_penalty: NonNegative[float] = 1.0  # exponent α of the ranking by log p / length^α

    def __call__(self, trained: TrainedRun, inputs: Sequence[Input]) -> Iterator[ResultRow]:
        """A translation for each line; empty lines stay empty."""
        model = cast("Translator", trained.model)
        for line in (line for each in inputs for line in each.lines()):
            warn_unknown_words(model.source, line)
            yield {"source": line, "translation": self.translate(model, line.strip())}

    def translate(self, model: Translator, sentence: str) -> str:
        if not sentence:
            return ""
        return model.translate([sentence], width=self.num_beams, penalty=self.length_penalty)[0]


@dataclass(frozen=True)
class Evaluate:
    pairs: Annotated[str, BuiltIn("phrases", "multi30k")] | None = None  # data set or .tsv file; by default the run's
    split: Literal["test", "all"] = "test"  # pairs to evaluate: every tenth pair of a file, or all pairs
    num_examples: Positive[int] = 300  # maximum number of pairs
    num_beams: Positive[int] = 4  # hypotheses kept in beam search; 1 is greedy decoding

    def __call__(self, runs: Sequence[TrainedRun]) -> list[ResultRow]:
        return [self.evaluate(trained) for trained in runs]

    def evaluate(self, trained: TrainedRun) -> ResultRow:
        """BLEU, exact matches and negative log-likelihood of one run, without pairs that are too long for its model."""
        experiment, model = cast("Experiment", trained.experiment), cast("Translator", trained.model)
        name = self.pairs or experiment.pairs
        found = open_pairs(name)
        chosen = found.test if self.split == "test" else found.train + found.valid + found.test
        pairs = [pair for pair in chosen if experiment.is_within_max_length(pair, model.source, model.target)][
            : self.num_examples
        ]
        if not pairs:
            raise DataError(f"{name} has no pair of at most {experiment.max_length} tokens, the maximum in training")
        lines, references = translate_pairs(model, pairs, self.num_beams), [target for _, target in pairs]
        return {
            "run": trained.folder.path.name,
            "pairs": name,
            "sentences": len(pairs),
            "bleu": bleu(lines, references),
            "exact": exact_match(lines, references),
            "nats_per_token": token_loss(model, *encode_pairs(model, pairs)),
        }


def clip_norm(model: Translator) -> None:
    """Clip the gradient norm to 1."""
    clip_gradients(model.parameters(), 1.0)


def encode_pairs(
    model: Translator, pairs: Sequence[tuple[str, str]]
) -> tuple[Int[Tensor, "row n"], Int[Tensor, "row m"]]:
    """Sources and targets as tokens; targets begin with the begin token."""
    source = encode_sentences(model.source, [pair[0] for pair in pairs])
    return source, encode_sentences(model.target, [pair[1] for pair in pairs], begin=True)


def pair_batches(
    model: Translator, pairs: Sequence[tuple[str, str]], size: int, steps: int, device: torch.device
) -> Batches[tuple[Tensor, Tensor]]:
    """Batches of pairs, padded to their longest sentence only."""
    source, target = (part.to(device) for part in encode_pairs(model, pairs))

    def select(rows: Tensor) -> tuple[Tensor, Tensor]:
        return trim_padding(source[rows]), trim_padding(target[rows])

    return Batches(select, len(pairs), size=size, steps=steps, device=device)


def trim_padding(tokens: Int[Tensor, "batch time"]) -> Int[Tensor, "batch shorter"]:
    """Without the columns that are padding in every row."""
    return tokens[:, : int((tokens != 0).sum(1).max())]


@torch.no_grad()
def token_loss(model: Translator, source: Int[Tensor, "row n"], target: Int[Tensor, "row m"]) -> float:
    """The mean of −log p per target token in nats, without label smoothing and dropout."""
    training = model.training
    model.eval()
    total = torch.cat([model.model.log_prob(x, y) for x, y in zip(source.split(256), target.split(256), strict=True)])
    model.train(training)
    return -float(total.sum() / (target[:, 1:] != 0).sum())


def translate_pairs(model: Translator, pairs: Sequence[tuple[str, str]], width: int) -> list[str]:
    """Translations of the sources, in batches of sentences of similar length."""
    order = sorted(range(len(pairs)), key=lambda row: len(pairs[row][0]))
    lines = [""] * len(pairs)
    for start in range(0, len(pairs), 64):
        rows = order[start : start + 64]
        for row, line in zip(rows, model.translate([pairs[row][0] for row in rows], width=width), strict=True):
            lines[row] = line
    return lines


def exact_match(translations: Sequence[str], references: Sequence[str]) -> float:
    """The fraction of translations that equal their reference."""
    return sum(line == reference for line, reference in zip(translations, references, strict=True)) / len(references)


def sort_words(line: str) -> str:
    """The words of a sentence in alphabetical order."""
    return " ".join(sorted(line.strip(".?!").split()))


def report_translations(run: Run, pairs: Sequence[tuple[str, str]], translations: Sequence[str]) -> None:
    """The first correct and the first incorrect translations."""
    references = {
        row: pair[1] for row, (pair, line) in enumerate(zip(pairs, translations, strict=True)) if pair[1] != line
    }
    correct = [row for row in range(len(pairs)) if row not in references]
    run.table(
        "translations",
        [
            {"source": pairs[row][0], "translation": translations[row], "reference": references.get(row, "equal")}
            for row in [*correct[: TABLE_ROWS // 2], *list(references)[: TABLE_ROWS // 2]]
        ],
        "Test sentences: some that are translated exactly as the reference, and some that are not.",
    )


def plot_attention(run: Run, model: Translator, pairs: Sequence[tuple[str, str]]) -> None:
    """Cross-attention for a sentence with a different word order in both languages."""
    chosen = next((pair for pair in pairs if ", dass" in pair[0] or "weil" in pair[0]), pairs[0])
    source, target = (part.to(run.device) for part in encode_pairs(model, [chosen]))
    maps = attention_maps(model.model, source, target[:, :-1])
    weights = torch.stack([layer[0].mean(0) for name, layer in maps.items() if name.endswith("cross")]).mean(0)
    run.figure(
        "cross-attention",
        plot_alignment(weights.cpu(), token_names(model.source, source[0]), token_names(model.target, target[0, 1:])),
        "Cross-attention weights, mean over all heads and blocks of the decoder: source words (columns) for each "
        "target word (rows). Where the German verb is last and the English verb second, large weights leave the "
        "diagonal.",
    )


def token_names(tokeniser: Tokeniser, tokens: Int[Tensor, " time"]) -> list[str]:
    """Each token as text; the end token as a word."""
    return [tokeniser.decode(token[None].cpu()).strip() or "end" for token in tokens]


def exact_by_order(model: Translator, pairs: Sequence[tuple[str, str]], orders: Mapping[str, str]) -> dict[str, float]:
    """The fraction of exact greedy translations by the German word order."""
    hits: dict[str, list[bool]] = {}
    for (german, english), line in zip(pairs, translate_pairs(model, pairs, 1), strict=True):
        hits.setdefault(orders.get(german, "all"), []).append(line == english)
    return {f"exact/{order}": sum(values) / len(values) for order, values in sorted(hits.items())}
