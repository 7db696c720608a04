"""The programs of exported transformers: tokens or images to logits."""

from typing import cast

from torch import nn

from parnassus.attention.models.article_classifier import WORDS, ArticleClassifier
from parnassus.attention.models.bert import MaskedLanguageModel
from parnassus.attention.models.gpt import LanguageModel
from parnassus.attention.models.recurrence_predictor import RecurrencePredictor
from parnassus.attention.models.seq2seq import Transformer
from parnassus.attention.models.text_generator import TextGenerator
from parnassus.attention.models.translator import Translator
from parnassus.attention.models.vit import VisionTransformer
from parnassus.layers.commands.programs import classifier_programs
from parnassus.recurrent.encoder import RecurrentEncoder
from parnassus.train.export import Program, Programs, ProgramsOf, example_tokens, programs_of
from parnassus.train.trained import TrainedRun

TIME = {"tokens": {1: "time"}}
EXAMPLE_LENGTH = 8


def language_model_programs(model: LanguageModel, _: TrainedRun) -> Programs:
    tokens = example_tokens(model.vocabulary, min(EXAMPLE_LENGTH, model.window))
    about = f"at most {model.window} tokens → logits of the next token at each position"
    return {"logits": Program(model, {"tokens": tokens}, ("logits",), about, TIME)}


def masked_language_model_programs(model: MaskedLanguageModel, _: TrainedRun) -> Programs:
    """None with a recurrent encoder: it packs sentences by their lengths, which a graph of operations cannot."""
    if isinstance(model.encoder, RecurrentEncoder):
        return {}
    tokens = example_tokens(model.encoder.vocabulary, EXAMPLE_LENGTH)
    about = f"tokens, {model.MASK} where masked → logits of the original token at each position"
    return {"logits": Program(model, {"tokens": tokens}, ("logits",), about, TIME)}


def recurrence_predictor_programs(model: RecurrencePredictor, _: TrainedRun) -> Programs:
    tokens = example_tokens(len(model.embedding.tokens.weight), EXAMPLE_LENGTH)
    about = "terms of a sequence → logits of the next term at each position"
    return {"logits": Program(model, {"tokens": tokens}, ("logits",), about, TIME)}


def article_classifier_programs(model: ArticleClassifier, _: TrainedRun) -> Programs:
    tokens = example_tokens(len(WORDS) + 1, 5)
    about = f"indices of words from 1 on, 0 is padding → logits of der, die, das; the words are {' '.join(WORDS)}"
    return {"logits": Program(model, {"tokens": tokens}, ("logits",), about, TIME)}


def transformer_programs(model: Transformer, _: TrainedRun) -> Programs:
    length = min(EXAMPLE_LENGTH, model.window)
    inputs = {
        "source": example_tokens(model.encoder.vocabulary, length),
        "target": example_tokens(model.vocabulary, length - 1),
    }
    about = f"source tokens, at most {model.window} target tokens → logits of the next target token at each position"
    axes = {"source": {1: "source_time"}, "target": {1: "target_time"}}
    return {"logits": Program(model, inputs, ("logits",), about, axes)}


def inner_programs(model: nn.Module, trained: TrainedRun) -> Programs:
    """The programs of a model that is wrapped with its tokenisers, which are in config.json."""
    return programs_of(cast("nn.Module", model.model), trained)


PROGRAMS = cast(
    "dict[type[nn.Module], ProgramsOf]",
    {
        LanguageModel: language_model_programs,
        MaskedLanguageModel: masked_language_model_programs,
        RecurrencePredictor: recurrence_predictor_programs,
        ArticleClassifier: article_classifier_programs,
        Transformer: transformer_programs,
        TextGenerator: inner_programs,
        Translator: inner_programs,
        VisionTransformer: classifier_programs,
    },
)
