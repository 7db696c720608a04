"""Benchmark of text generation against `generate` of transformers, in tokens per second.

Both implementations hold a GPT-2 with the same random weights, decode greedily with a key-value cache and must generate
the same tokens. They run alternately in one process on two threads by default, each in eager mode and compiled:
Parnassus with `compile_hidden`, transformers with torch.compile and a static cache. Larger models are limited by memory
bandwidth, since every token reads all weights once; the corresponding upper bound is printed as well.
Limit: the faster variant of Parnassus generates at least 2 times the tokens per second of the faster variant of
transformers, at every size.
Run: python benchmarks/generation.py (requires transformers, part of the bench environment)
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from copy import deepcopy

import torch
from torch import Tensor
from transformers import GPT2Config, GPT2LMHeadModel

from parnassus.attention import LanguageModel, gpt
from parnassus.text.generation import generate
from parnassus.text.sampling import greedy

SIZES = {"nano": (4, 128, 4, 65), "small": (6, 384, 6, 65), "gpt2": (12, 768, 12, 50_257)}
"""Depth, width, heads and vocabulary size: our default, nanoGPT for Shakespeare, and GPT-2 with 124 million weights."""
LIMIT = 2.0
WINDOW, PROMPT = 256, 16


def copy_weights(hf_model: GPT2LMHeadModel, config: GPT2Config) -> LanguageModel:
    """Build our GPT with the weights of `hf_model`, whose dense layers store transposed matrices."""
    model = gpt(config.vocab_size, WINDOW, width=config.n_embd, heads=config.n_head, depth=config.n_layer)
    state = {key.removeprefix("transformer."): value for key, value in hf_model.state_dict().items()}
    names = {"attn.c_attn": "attention.in_proj", "attn.c_proj": "attention.out_proj", "mlp.c_fc": "dense.0"}
    names |= {"mlp.c_proj": "dense.2", "ln_1": "norms.0", "ln_2": "norms.1"}
    embeddings = {"wte.weight": "embedding.tokens.weight", "wpe.weight": "embedding.positions.weight"}
    weights = {own_key: state[key] for key, own_key in embeddings.items()}
    weights |= {f"norm.{kind}": state[f"ln_f.{kind}"] for kind in ("weight", "bias")}
    for block in range(config.n_layer):
        for key, own_key in names.items():
            for kind in ("weight", "bias"):
                value = state[f"h.{block}.{key}.{kind}"]
                weights[f"blocks.{block}.{own_key}.{kind}"] = value.T.contiguous() if value.ndim == 2 else value
    model.load_state_dict(weights)
    return model.eval()


def make_generators(size: str, length: int) -> tuple[dict[str, Callable[[], Tensor]], Callable[[], None]]:
    """Return functions that generate `length` tokens from one prompt, and one that reads all weights `length` times."""
    depth, width, heads, vocabulary_size = SIZES[size]
    config = GPT2Config(
        vocab_size=vocabulary_size, n_positions=WINDOW, n_embd=width, n_layer=depth, n_head=heads,
        bos_token_id=0, eos_token_id=None,
    )  # fmt: skip
    torch.manual_seed(0)
    hf_model = GPT2LMHeadModel(config).eval()
    model, compiled_model = (copy_weights(hf_model, config) for _ in range(2))
    compiled_model.compile_hidden()
    compiled_hf_model = deepcopy(hf_model)
    compiled_hf_model.forward = torch.compile(compiled_hf_model.forward)
    prompt = torch.randint(0, vocabulary_size, (1, PROMPT))
    attention_mask = torch.ones_like(prompt)

    def generate_hf(model: GPT2LMHeadModel, cache: str | None) -> Tensor:
        output = model.generate(
            prompt, attention_mask=attention_mask, do_sample=False, max_new_tokens=length, use_cache=True,
            pad_token_id=0, cache_implementation=cache,
        )  # fmt: skip
        tokens: Tensor = output[0, PROMPT:]
        return tokens

    weights = torch.cat(
        [weight.detach().flatten() for weight in (*model.blocks.parameters(), model.embedding.tokens.weight)]
    )

    def read_weights() -> None:
        for _ in range(length):
            weights.sum()

    generators: dict[str, Callable[[], Tensor]] = {
        "transformers": lambda: generate_hf(hf_model, None),
        "transformers compiled": lambda: generate_hf(compiled_hf_model, "static"),
        "parnassus": lambda: generate(model, prompt, greedy, length)[0],
        "parnassus compiled": lambda: generate(compiled_model, prompt, greedy, length)[0],
    }
    return generators, read_weights


def compare(size: str, turns: int, length: int) -> float:
    """Print the tokens per second of all variants; return the median ratio of the faster variants."""
    generators, read_weights = make_generators(size, length)
    texts = [generate_text() for generate_text in generators.values()]  # compilation and warm-up
    if not all(torch.equal(text, texts[0]) for text in texts):
        sys.exit("the implementations generate different tokens: at least one is incorrect")
    timed: dict[str, Callable[[], object]] = {**generators, "reading": read_weights}
    times: dict[str, list[float]] = {name: [] for name in timed}
    for turn in range(turns):
        for name in sorted(timed, reverse=bool(turn % 2)):
            start_time = time.perf_counter()
            timed[name]()
            times[name].append(time.perf_counter() - start_time)
    rates = {name: length / statistics.median(elapsed) for name, elapsed in times.items()}
    summary = ", ".join(f"{name} {rates[name]:,.0f} ({rates[name] / rates['reading']:.0%})" for name in generators)
    print(f"{size}, tokens per second: {summary}; upper bound by memory bandwidth {rates['reading']:,.0f}")
    eager = ratio(times, ["transformers"], ["parnassus"])
    best = ratio(times, ["transformers", "transformers compiled"], ["parnassus", "parnassus compiled"])
    print(
        f"{size}: Parnassus / transformers = {eager:.2f} in eager mode, "
        f"{best:.2f} for the faster variants (limit: at least {LIMIT})"
    )
    return best


def ratio(times: dict[str, list[float]], baselines: list[str], own: list[str]) -> float:
    """Return the median over turns of the fastest baseline time divided by our fastest time."""
    turns = range(len(times[own[0]]))
    best = [[min(times[name][turn] for name in names) for turn in turns] for names in (baselines, own)]
    return statistics.median([baseline / fastest for baseline, fastest in zip(best[0], best[1], strict=True)])


def main() -> None:
    """Compare at every requested size; exit with 1 if a ratio is below the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, nargs="+", default=["nano", "small"], help="model sizes")
    parser.add_argument("--turns", type=int, default=10, help="number of timed texts per variant")
    parser.add_argument("--length", type=int, default=100, help="tokens per text")
    parser.add_argument("--threads", type=int, default=2, help="number of CPU threads")
    sizes, turns, length, threads = vars(parser.parse_args()).values()
    torch.set_num_threads(threads)
    print(f"{threads} threads, {length} tokens per text")
    passed = [compare(size, turns, length) >= LIMIT for size in sizes]
    sys.exit(0 if all(passed) else 1)


if __name__ == "__main__":
    main()
