"""Claims about beam search, n-gram smoothing and perplexity (book sec. 9.3, Zhao sec. 9)."""

from itertools import pairwise
from math import log

import torch
from scipy.stats import chisquare

from parnassus.atlas import Correction, Evidence, accepts, all_of, claim, close, erratum, greater_equal
from parnassus.text.beam_search import beam_search
from parnassus.text.enumeration import (
    enumerate_continuations,
    inclusion_probabilities,
    without_replacement_probabilities,
)
from parnassus.text.generation import generate
from parnassus.text.ngrams import NGramModel, perplexity
from parnassus.text.sampling import greedy
from parnassus.text.stochastic_beam_search import stochastic_beam_search
from parnassus.text.word_tokeniser import WordTokeniser

COMPANIES = ["google"] * 5 + ["bank of america"] * 3 + ["bank of england"] * 2 + ["bank of japan"] * 2
PARKS = ["yellowstone national park"] * 6 + ["yosemite national park"] * 4 + ["hyde park"] * 3 + ["central park"] * 2
NAMES = WordTokeniser.fit(" ".join(COMPANIES + PARKS), special=("<end>",))
END = 0  # ends a name, and so also precedes the next one


def _bigram_model(names: list[str]) -> NGramModel:
    """Bigram model of these names."""
    tokens = torch.cat([torch.cat([torch.tensor([END]), NAMES.encode(name)]) for name in names] + [torch.tensor([END])])
    single = NGramModel.fit(tokens, 1, vocabulary=NAMES.vocabulary, smoothing=0.0)
    return NGramModel.fit(tokens, 2, vocabulary=NAMES.vocabulary, smoothing=0.0, lower=single)


def random_model(vocabulary: int = 4) -> NGramModel:
    tokens = torch.randint(vocabulary, (150,), generator=torch.Generator().manual_seed(0))
    return NGramModel.fit_interpolated(tokens, 3, vocabulary=vocabulary, smoothing=0.3)


@claim("B9.3-13", "B9.3-16")
def beam_search_ranges_from_greedy_to_exhaustive() -> Evidence:
    """Width 1 is greedy; width V^{T−1} finds the best of all V^T texts, whose probabilities sum to 1 (book eq. 9.9)."""
    model, length = random_model(), 5
    prompts = torch.tensor([[0, 1], [2, 2], [3, 0]])
    narrow = beam_search(model, prompts, width=1, length=length)
    wide = beam_search(model, prompts, width=4 ** (length - 1), length=length)
    stopping = beam_search(model, prompts, width=4 ** (length - 1), length=length, stop=3, penalty=0.75)
    rows = range(len(prompts))
    continuations = [enumerate_continuations(model, prompt, length=length) for prompt in prompts]
    ended = [enumerate_continuations(model, prompt, length=length, stop=3) for prompt in prompts]
    return all_of(
        sums_to_one=close(torch.stack([each.log_probs.exp().sum() for each in continuations + ended]), 1.0, rtol=1e-12),
        greedy=close(torch.tensor([narrow.best(row).tokens for row in rows]), generate(model, prompts, greedy, length)),
        exact=close(
            torch.tensor([wide.best(row).tokens for row in rows]), torch.stack([each.best() for each in continuations])
        ),
        exact_with_stop_and_penalty=close(
            torch.tensor([stopping.best(row).score for row in rows], dtype=torch.float64),
            torch.stack([each.scores(0.75).max() for each in ended]),
            rtol=1e-12,
        ),
        beam_gain=greater_equal(
            torch.tensor([wide.best(row).log_prob - narrow.best(row).log_prob for row in rows]).max(), 0.01
        ),
    )


@claim("B9.3-13")
def beam_search_continues_while_a_longer_text_can_have_a_better_score() -> Evidence:
    """A prefix of probability 1/20 that continues with certainty has the best score log(1/20)/10 at α = 1.

    Both complete texts are more likely, so that without a penalty the search ends after two steps (book sec. 9.3).
    """
    tokens = torch.tensor([2, 2, 0] * 10 + [2, 2, 1, 0] * 9 + [2, 2, 1, 1, 1])
    model = NGramModel.fit(tokens, 3, vocabulary=3, smoothing=0.0)
    with_penalty, without = (
        beam_search(model, torch.tensor([[2, 2]]), width=2, length=10, stop=0, penalty=penalty)
        for penalty in (1.0, 0.0)
    )
    every_text = enumerate_continuations(model, torch.tensor([2, 2]), length=10, stop=0)
    return all_of(
        best_score=close(with_penalty.best().score, log(1 / 20) / 10, rtol=1e-12),
        best_of_all=close(with_penalty.best().score, every_text.scores(1.0).max(), rtol=1e-12),
        steps=close(float(len(with_penalty.steps)), 10.0),
        steps_without_penalty=close(float(len(without.steps)), 2.0),
        best_without_penalty=close(without.best().log_prob, log(1 / 2), rtol=1e-12),
    )


@claim("B9.3-14")
def greedy_decoding_finds_the_most_likely_park() -> Evidence:
    """After "yellowstone" greedy decoding gives "national park", also the most likely text (book sec. 9.3)."""
    model = _bigram_model(PARKS)
    prompt = NAMES.encode("yellowstone")
    text = generate(model, prompt[None], greedy, 3, stop=END)[0]
    best = beam_search(model, prompt[None], width=4, length=3, stop=END).best()
    return all_of(
        words=close(text, torch.cat([NAMES.encode("national park"), torch.tensor([END])])),
        best=close(text, torch.tensor(best.tokens)),
    )


@claim("B9.3-15", "B9.3-16")
def greedy_decoding_misses_the_most_likely_company() -> Evidence:
    """Greedy starts with "bank" and ends at probability 3/12; width 2 finds "google" with 5/12 (book sec. 9.3)."""
    model = _bigram_model(COMPANIES)
    start = torch.tensor([[END]])
    narrow, wide = (beam_search(model, start, width=width, length=4, stop=END).best() for width in (1, 2))
    first = model.distribution(start)[0, NAMES.encode("bank")]
    greedy_tokens = generate(model, start, greedy, 4)[0]
    exact = enumerate_continuations(model, start[0], length=4, stop=END)
    return all_of(
        begins_with_bank=close(first, 7 / 12, rtol=1e-12),
        greedy=close(greedy_tokens[:3], NAMES.encode("bank of america")),
        width_one_is_greedy=close(torch.tensor(narrow.tokens), greedy_tokens),
        greedy_probability=close(torch.tensor(narrow.log_prob).exp(), 3 / 12, rtol=1e-6),
        width_two=close(torch.tensor(wide.tokens[:1]), NAMES.encode("google")),
        width_two_probability=close(torch.tensor(wide.log_prob).exp(), 5 / 12, rtol=1e-6),
        exhaustive=close(exact.log_probs.max().exp(), 5 / 12, rtol=1e-12),
    )


@claim("B9.5-17")
def stochastic_beam_search_samples_without_replacement() -> Evidence:
    """Its k texts are k ordered samples without replacement from the model (Kool et al. 2019; book sec. 9.5)."""
    model, prompt, repeats = random_model(3), torch.tensor([1]), 8_000
    continuations = enumerate_continuations(model, prompt, length=3, stop=2)
    exact = without_replacement_probabilities(continuations.log_probs.exp(), 2)
    generator = torch.Generator().manual_seed(0)
    draws = stochastic_beam_search(model, prompt.expand(repeats, 1), width=2, length=3, stop=2, generator=generator)
    matches = (draws.tokens[:, :, None] == continuations.tokens).all(-1)
    indices = matches.long().argmax(-1)  # (repeats, 2) indices of texts
    size = len(continuations.tokens)
    counts = torch.bincount(indices[:, 0] * size + indices[:, 1], minlength=size**2).double()
    pairs = torch.tensor([exact.get((i, j), 0.0) for i in range(size) for j in range(size)], dtype=torch.float64)
    frequent = pairs * repeats >= 5
    observed = torch.cat([counts[frequent], counts[~frequent].sum()[None]])
    expected = repeats * torch.cat([pairs[frequent], pairs[~frequent].sum()[None]])
    included = inclusion_probabilities(continuations.log_probs.exp(), 2)
    frequency = torch.bincount(indices.flatten(), minlength=size).double() / repeats
    mean = (continuations.log_probs.exp() * continuations.lengths).sum()
    triples = stochastic_beam_search(model, prompt.expand(repeats, 1), width=3, length=3, stop=2, generator=generator)
    triple_matches = (triples.tokens[:, :, None] == continuations.tokens).all(-1)
    lengths = continuations.lengths[triple_matches.long().argmax(-1)].double()
    estimates = triples.mean(lengths)
    return all_of(
        no_duplicates=close((indices[:, 0] == indices[:, 1]).sum(), 0.0),
        pairs_in_order=accepts(float(chisquare(observed.numpy(), expected.numpy()).pvalue)),
        inclusion=close(frequency, included, atol=4 * float((included * (1 - included) / repeats).sqrt().max())),
        unbiased_mean=close(estimates.mean(), mean, atol=4 * float(estimates.std()) / repeats**0.5),
        decreasing=greater_equal(draws.perturbed_log_probs[:, 0] - draws.perturbed_log_probs[:, 1], 0.0),
    )


@claim("Z9.3")
def smoothing_interpolates_with_the_lower_order_model() -> Evidence:
    """ε = 0 gives relative frequencies, ε → ∞ the lower-order model, and all rows sum to one (Zhao sec. 9)."""
    tokens = torch.randint(5, (200,), generator=torch.Generator().manual_seed(0))
    single = NGramModel.fit(tokens, 1, vocabulary=6, smoothing=0.0)
    uniform = NGramModel.fit(tokens, 1, vocabulary=6, smoothing=1e15)
    smooth = NGramModel.fit(tokens, 1, vocabulary=6, smoothing=2.0)
    pair, strong = (NGramModel.fit(tokens, 2, vocabulary=6, smoothing=eps, lower=smooth) for eps in (1.5, 1e15))
    triple = NGramModel.fit(tokens, 3, vocabulary=6, smoothing=0.5, lower=smooth)
    contexts = torch.cartesian_prod(torch.arange(6), torch.arange(6))
    prior = smooth.distribution(contexts[:1, :0])[0]
    return all_of(
        frequencies=close(single.distribution(contexts[:1])[0], torch.bincount(tokens, minlength=6) / 200, rtol=1e-6),
        uniform=close(uniform.distribution(contexts[:1])[0], 1 / 6, rtol=1e-9),
        to_single_tokens=close(strong.distribution(contexts)[3], prior, rtol=1e-9),
        pairs_sum_to_one=close(pair.distribution(contexts).sum(1), 1.0, rtol=1e-12),
        triples_sum_to_one=close(triple.distribution(contexts).sum(1), 1.0, rtol=1e-12),
        positive=greater_equal(triple.distribution(contexts).min(), 1e-5),
    )


@erratum("Z9.3", printed="n(x) = how often x occurs", right="n(x) = how often x has a successor")
def the_last_token_has_no_successor() -> Correction:
    """In “a b a c” the printed row of c sums to ½, because c occurs once and has no successor (Zhao sec. 9)."""
    tokens = torch.tensor([0, 1, 0, 2])
    smooth = NGramModel.fit(tokens, 1, vocabulary=3, smoothing=1.0)
    model = NGramModel.fit(tokens, 2, vocabulary=3, smoothing=1.0, lower=smooth)
    prior = smooth.distribution(tokens[None, :0])[0]
    following = torch.zeros(3, 3, dtype=torch.float64)
    for before, after in pairwise(tokens.tolist()):
        following[before, after] += 1
    printed = (following + prior) / (torch.bincount(tokens)[:, None] + 1)
    return Correction(
        printed=close(printed.sum(1), 1.0, rtol=1e-12),
        corrected=close(model.distribution(torch.arange(3)[:, None]).sum(1), 1.0, rtol=1e-12),
    )


@claim("Z9.4")
def perplexity_is_an_effective_number_of_choices() -> Evidence:
    """1 if certain, m if uniform, ∞ after a token of probability 0; the geometric mean of 1/p (Zhao sec. 9)."""
    uniform = torch.full((28,), 1 / 28, dtype=torch.float64).log()
    probabilities = torch.tensor([0.5, 0.25, 0.1], dtype=torch.float64)
    return all_of(
        certain=close(perplexity(torch.zeros(9)), 1.0),
        uniform=close(perplexity(uniform), 28.0, rtol=1e-12),
        impossible=close(perplexity(torch.tensor([1.0, 0.0]).log()), float("inf")),
        geometric_mean=close(perplexity(probabilities.log()), (1 / probabilities).prod() ** (1 / 3), rtol=1e-12),
        any_base=close(2 ** -probabilities.log2().mean(), perplexity(probabilities.log()), rtol=1e-12),
    )
