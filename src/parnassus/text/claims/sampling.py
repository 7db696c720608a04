"""Claims about sampling of tokens and generation from a prompt (book sec. 9.2)."""

import torch
from scipy.stats import chisquare

from parnassus.atlas import Correction, Evidence, accepts, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.text.claims.decoding import random_model
from parnassus.text.generation import generate, generate_completions
from parnassus.text.sampling import apply_temperature, greedy, keep_top_k, keep_top_p, sample_tokens, token_sampler


@claim("B9.2-9")
def temperature_interpolates_between_greedy_and_uniform() -> Evidence:
    """Logits over T give p^{1/T}: T = 1 leaves p unchanged, T → 0 is greedy, T → ∞ is uniform (book sec. 9.2)."""
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(7, dtype=torch.float64, generator=generator)
    p = logits.softmax(0)
    best = torch.nn.functional.one_hot(p.argmax(), 7)
    counts = torch.bincount(sample_tokens(apply_temperature(logits, 0.8).expand(20_000, -1), generator), minlength=7)
    power = p ** (1 / 0.8) / (p ** (1 / 0.8)).sum()
    return all_of(
        temperature_1=close(apply_temperature(logits, 1.0).softmax(0), p, rtol=1e-12),
        temperature_0_8=close(apply_temperature(logits, 0.8).softmax(0), power, rtol=1e-12),
        low_temperature=close(apply_temperature(logits, 1e-3).softmax(0), best, atol=1e-12),
        high_temperature=close(apply_temperature(logits, 1e9).softmax(0), 1 / 7, rtol=1e-6),
        sample_frequencies=accepts(float(chisquare(counts.numpy(), 20_000 * power.numpy()).pvalue)),
    )


@erratum("B9.2-9", printed="p^{1/T} of log(p + 1e-8)/T: T = 1 leaves p unchanged", right="log p / T, without 1e-8")
def the_added_constant_makes_impossible_symbols_possible() -> Correction:
    """At T = 1 the listing gives (p + 1e-8)/(1 + V·1e-8); at T = 4 an impossible symbol has 0.3 % (book sec. 9.2)."""
    p = torch.tensor([0.6, 0.4, 0.0], dtype=torch.float64)
    listing = (p + 1e-8).log()
    return Correction(
        printed=close(apply_temperature(listing, 1.0).softmax(0), p),
        corrected=all_of(
            temperature_1=close(apply_temperature(p.log(), 1.0).softmax(0), p, rtol=1e-14),
            temperature_4=close(apply_temperature(p.log(), 4.0).softmax(0)[2], 0.0),
            listing_at_temperature_1=close(
                apply_temperature(listing, 1.0).softmax(0), (p + 1e-8) / (1 + 3e-8), rtol=1e-12
            ),
            listing_at_temperature_4=close(
                apply_temperature(listing, 4.0).softmax(0)[2], 0.01 / (0.6**0.25 + 0.4**0.25 + 0.01), rtol=1e-6
            ),
        ),
    )


@claim("B9.2-9", "B9.2-11")
def filters_keep_the_most_likely_tokens() -> Evidence:
    """Top-k keeps k tokens, top-p the smallest set of mass p, after the temperature; 0 is greedy (book sec. 9.2)."""
    p = torch.tensor([0.1, 0.4, 0.05, 0.3, 0.15], dtype=torch.float64)
    generator = torch.Generator().manual_seed(0)
    rows = p.log().expand(50_000, 5)
    sampler = token_sampler(temperature=0.5, top_k=3, generator=generator)
    expected = torch.tensor([0.0, 0.16, 0.0, 0.09, 0.0225], dtype=torch.float64)
    counts, is_kept = torch.bincount(sampler(rows), minlength=5), expected > 0
    test = chisquare(counts[is_kept].numpy(), (50_000 * expected / expected.sum())[is_kept].numpy())
    nucleus = torch.stack([keep_top_p(p.log(), mass) > -torch.inf for mass in (0.39, 0.41, 0.71, 0.86)])
    return all_of(
        temperature_then_top_k=accepts(float(test.pvalue)),
        others_are_never_drawn=close(counts[~is_kept], 0.0),
        top_k=close(keep_top_k(p.log(), 2) > -torch.inf, torch.tensor([0.0, 1, 0, 1, 0])),
        top_p=close(nucleus, torch.tensor([[0.0, 1, 0, 0, 0], [0, 1, 0, 1, 0], [0, 1, 0, 1, 1], [1, 1, 0, 1, 1]])),
        temperature_0=close(token_sampler(temperature=0.0)(rows[:3]), 1.0),
    )


@claim("B9.2-11")
def repetition_falls_and_surprise_grows_with_the_temperature() -> Evidence:
    """Of sampled texts the repeated 4-grams get fewer and −log p per token larger with T (book sec. 9.2)."""
    model, temperatures = random_model(8), (0.3, 1.0, 3.0)
    prompt = torch.zeros(40, 2, dtype=torch.int64)
    repeated, nll = [], []
    for temperature in temperatures:
        sampler = token_sampler(temperature=temperature, generator=torch.Generator().manual_seed(0))
        texts = generate(model, prompt, sampler, 60)
        distinct = [len(set(map(tuple, text.unfold(0, 4, 1).tolist()))) for text in texts]
        repeated.append(1 - sum(distinct) / (len(distinct) * 57))
        nll.append(-model.log_prob(torch.cat([prompt, texts], 1)).mean() / 60)
    greedy_texts = generate(model, prompt, token_sampler(temperature=0.0), 60)
    return all_of(
        texts_of_temperature_0=close(float(len(greedy_texts.unique(dim=0))), 1.0),
        repeated=less_equal(torch.tensor(repeated).diff(), -0.05),
        surprise=greater_equal(torch.stack(nll).diff(), 0.1),
    )


@claim("B9.2-10")
def completions_in_one_batch_are_those_of_each_prompt() -> Evidence:
    """Prompts of different lengths are continued together as one by one, up to the stop token (book sec. 9.2)."""
    model = random_model()
    prompts = [torch.tensor([0, 1, 1, 2, 3, 1]), torch.tensor([2]), torch.tensor([3, 0, 0])]
    together = generate_completions(model, prompts, greedy, 9, stop=3)
    alone = []
    for prompt in prompts:
        tokens = generate(model, prompt[None], greedy, 9, stop=3)[0].tolist()
        alone.append(tokens[: tokens.index(3)] if 3 in tokens else tokens)
    parts = {
        f"prompt_{i}": close(float(row.tolist() == own), 1.0)
        for i, (row, own) in enumerate(zip(together, alone, strict=True))
    }
    return all_of(**parts, total_length=greater_equal(float(sum(map(len, together))), 8.0))


@claim("B9.2-10")
def prompts_of_any_length_can_be_continued() -> Evidence:
    """Incremental generation from a prompt of 1, 2 or 300 tokens equals reading the whole prompt (book sec. 9.2)."""
    model = random_model()
    prompt = torch.arange(300)[None] % 4
    continued = {length: generate(model, prompt[:, :length], greedy, 1) for length in (1, 2, 300)}
    reference = {length: greedy(model.read(prompt[:, :length])[0]) for length in continued}
    return all_of(
        prompt_of_1=close(continued[1][:, 0], reference[1]),
        prompt_of_2=close(continued[2][:, 0], reference[2]),
        prompt_of_300=close(continued[300][:, 0], reference[300]),
    )
