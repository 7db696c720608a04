"""Text as tokens, and choosing the next one: tokenisers, and one way to decode for every model of sequences."""

from parnassus.text.bag_of_words import bag_of_words
from parnassus.text.beam import Hypothesis, Node, Search, beam_search
from parnassus.text.bleu import bleu
from parnassus.text.byte_pairs import BytePairTokeniser
from parnassus.text.characters import CharacterTokeniser
from parnassus.text.choosing import Choose, chooser, cooled, cut_law, draw, greedy, likeliest, nucleus
from parnassus.text.enumeration import (
    Continuations,
    draws_without_replacement,
    every_continuation,
    inclusion_probabilities,
)
from parnassus.text.generation import complete, generate, written
from parnassus.text.lstm import RecurrentLanguageModel, RecurrentState
from parnassus.text.merges import learn_merges
from parnassus.text.merges_by_library import learn_merges_by_library
from parnassus.text.ngrams import NGrams, perplexity
from parnassus.text.reading import Reader, State
from parnassus.text.stochastic_beam import Draws, stochastic_beam_search
from parnassus.text.tokeniser import (
    Tokeniser,
    as_it_comes,
    load_tokeniser,
    save_tokeniser,
    tokeniser_facts,
    tokeniser_from_facts,
)
from parnassus.text.visible import visible
from parnassus.text.vocabulary import Vocabulary, special_id
from parnassus.text.words import WordTokeniser

__all__ = [
    "BytePairTokeniser",
    "CharacterTokeniser",
    "Choose",
    "Continuations",
    "Draws",
    "Hypothesis",
    "NGrams",
    "Node",
    "Reader",
    "RecurrentLanguageModel",
    "RecurrentState",
    "Search",
    "State",
    "Tokeniser",
    "Vocabulary",
    "WordTokeniser",
    "as_it_comes",
    "bag_of_words",
    "beam_search",
    "bleu",
    "chooser",
    "complete",
    "cooled",
    "cut_law",
    "draw",
    "draws_without_replacement",
    "every_continuation",
    "generate",
    "greedy",
    "inclusion_probabilities",
    "learn_merges",
    "learn_merges_by_library",
    "likeliest",
    "load_tokeniser",
    "nucleus",
    "perplexity",
    "save_tokeniser",
    "special_id",
    "stochastic_beam_search",
    "tokeniser_facts",
    "tokeniser_from_facts",
    "visible",
    "written",
]
