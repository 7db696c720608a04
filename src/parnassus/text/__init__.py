"""Tokenisers, n-gram language models, and decoding: sampling, greedy search, beam search."""

from parnassus.text.autoregressive_model import AutoregressiveModel, State
from parnassus.text.bag_of_words import bag_of_words
from parnassus.text.beam_search import BeamNode, BeamSearch, Hypothesis, beam_search
from parnassus.text.bleu import bleu
from parnassus.text.byte_pair_library import learn_merges_by_library
from parnassus.text.byte_pair_merges import learn_merges
from parnassus.text.byte_pair_tokeniser import BytePairTokeniser
from parnassus.text.character_tokeniser import CharacterTokeniser
from parnassus.text.enumeration import (
    Continuations,
    enumerate_continuations,
    inclusion_probabilities,
    without_replacement_probabilities,
)
from parnassus.text.generation import generate, generate_completions, stream_tokens
from parnassus.text.ngrams import NGramModel, perplexity
from parnassus.text.sampling import (
    TokenSampler,
    apply_temperature,
    greedy,
    keep_top_k,
    keep_top_p,
    logits_processor,
    sample_tokens,
    skip_special_tokens,
    token_sampler,
)
from parnassus.text.stochastic_beam_search import BeamSamples, stochastic_beam_search
from parnassus.text.tokeniser import (
    Tokeniser,
    load_tokeniser,
    save_tokeniser,
    show_whitespace,
    stream_text,
    tokeniser_from_dict,
    tokeniser_to_dict,
)
from parnassus.text.vocabulary import Vocabulary, special_id
from parnassus.text.word_tokeniser import WordTokeniser

__all__ = [
    "AutoregressiveModel",
    "BeamNode",
    "BeamSamples",
    "BeamSearch",
    "BytePairTokeniser",
    "CharacterTokeniser",
    "Continuations",
    "Hypothesis",
    "NGramModel",
    "State",
    "TokenSampler",
    "Tokeniser",
    "Vocabulary",
    "WordTokeniser",
    "apply_temperature",
    "bag_of_words",
    "beam_search",
    "bleu",
    "enumerate_continuations",
    "generate",
    "generate_completions",
    "greedy",
    "inclusion_probabilities",
    "keep_top_k",
    "keep_top_p",
    "learn_merges",
    "learn_merges_by_library",
    "load_tokeniser",
    "logits_processor",
    "perplexity",
    "sample_tokens",
    "save_tokeniser",
    "show_whitespace",
    "skip_special_tokens",
    "special_id",
    "stochastic_beam_search",
    "stream_text",
    "stream_tokens",
    "token_sampler",
    "tokeniser_from_dict",
    "tokeniser_to_dict",
    "without_replacement_probabilities",
]
