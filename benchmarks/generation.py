"""Tokens a second in writing text, beside transformers' `generate` with the same weights: at least twice as many.

Both sides hold one GPT-2 of random weights, on two threads unless told, write the likeliest token each time with a
cache of keys and values, and must write the same tokens. They take turns in one process, each as it comes and compiled:
ours with `compile_hidden`, theirs with torch.compile and their static cache. The bar is for the better of ours against
the better of theirs, at every size. Larger models wait for their weights to come out of memory, each of which a token
needs once: as many tokens a second as all cores can read all weights are the ceiling, which is told too.
Run it with: python benchmarks/generation.py (the bench environment has transformers)
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
"""Blocks, width, heads and tokens: our default, nanoGPT's for Shakespeare, and GPT-2 with 124 million weights."""
LIMIT = 2.0
WINDOW, PROMPT = 256, 16


def with_the_weights_of(theirs: GPT2LMHeadModel, config: GPT2Config) -> LanguageModel:
    """Our GPT with the weights of theirs, whose dense layers are stored the other way round."""
    ours = gpt(config.vocab_size, WINDOW, width=config.n_embd, heads=config.n_head, depth=config.n_layer)
    state = {key.removeprefix("transformer."): value for key, value in theirs.state_dict().items()}
    names = {"attn.c_attn": "attention.in_proj", "attn.c_proj": "attention.out_proj", "mlp.c_fc": "dense.0"}
    names |= {"mlp.c_proj": "dense.2", "ln_1": "norms.0", "ln_2": "norms.1"}
    ending = {"wte.weight": "embedding.tokens.weight", "wpe.weight": "embedding.positions.weight"}
    weights = {mine: state[key] for key, mine in ending.items()}
    weights |= {f"norm.{kind}": state[f"ln_f.{kind}"] for kind in ("weight", "bias")}
    for block in range(config.n_layer):
        for key, mine in names.items():
            for kind in ("weight", "bias"):
                value = state[f"h.{block}.{key}.{kind}"]
                weights[f"blocks.{block}.{mine}.{kind}"] = value.T.contiguous() if value.ndim == 2 else value
    ours.load_state_dict(weights)
    return ours.eval()


def sides(size: str, length: int) -> tuple[dict[str, Callable[[], Tensor]], Callable[[], None]]:
    """Ways to write `length` tokens after the same prompt, and a way to read all weights as often."""
    depth, width, heads, tokens = SIZES[size]
    config = GPT2Config(
        vocab_size=tokens, n_positions=WINDOW, n_embd=width, n_layer=depth, n_head=heads,
        bos_token_id=0, eos_token_id=None,
    )  # fmt: skip
    torch.manual_seed(0)
    theirs = GPT2LMHeadModel(config).eval()
    ours, joined = (with_the_weights_of(theirs, config) for _ in range(2))
    joined.compile_hidden()
    compiled = deepcopy(theirs)
    compiled.forward = torch.compile(compiled.forward)
    prompt = torch.randint(0, tokens, (1, PROMPT))
    seen = torch.ones_like(prompt)

    def library(model: GPT2LMHeadModel, cache: str | None) -> Tensor:
        told = model.generate(
            prompt, attention_mask=seen, do_sample=False, max_new_tokens=length, use_cache=True, pad_token_id=0,
            cache_implementation=cache,
        )  # fmt: skip
        tokens: Tensor = told[0, PROMPT:]
        return tokens

    weights = torch.cat(
        [weight.detach().flatten() for weight in (*ours.blocks.parameters(), ours.embedding.tokens.weight)]
    )

    def reading() -> None:
        for _ in range(length):
            weights.sum()

    ways: dict[str, Callable[[], Tensor]] = {
        "transformers": lambda: library(theirs, None),
        "transformers compiled": lambda: library(compiled, "static"),
        "ours": lambda: generate(ours, prompt, greedy, length)[0],
        "ours compiled": lambda: generate(joined, prompt, greedy, length)[0],
    }
    return ways, reading


def compare(size: str, turns: int, length: int) -> float:
    """Print tokens a second of all; the median over the turns of our best against their best."""
    ways, reading = sides(size, length)
    texts = [write() for write in ways.values()]  # compile and warm up
    if not all(torch.equal(text, texts[0]) for text in texts):
        sys.exit("the sides write different texts: one of them does not compute what it should")
    timed: dict[str, Callable[[], object]] = {**ways, "reading": reading}
    times: dict[str, list[float]] = {name: [] for name in timed}
    for turn in range(turns):
        for name in sorted(timed, reverse=bool(turn % 2)):
            began = time.perf_counter()
            timed[name]()
            times[name].append(time.perf_counter() - began)
    rates = {name: length / statistics.median(taken) for name, taken in times.items()}
    told = ", ".join(f"{name} {rates[name]:,.0f} ({rates[name] / rates['reading']:.0%})" for name in ways)
    print(f"{size}: {told} tokens a second, of {rates['reading']:,.0f} at which the weights can be read")
    plain = ratio(times, ["transformers"], ["ours"])
    best = ratio(times, ["transformers", "transformers compiled"], ["ours", "ours compiled"])
    print(f"{size}: ours / transformers = {plain:.2f} as they come, {best:.2f} the better of each (at least {LIMIT})")
    return best


def ratio(times: dict[str, list[float]], theirs: list[str], ours: list[str]) -> float:
    """How often the fastest of ours goes into the fastest of theirs, the median over the turns."""
    turns = range(len(times[ours[0]]))
    best = [[min(times[name][turn] for name in names) for turn in turns] for names in (theirs, ours)]
    return statistics.median([slow / fast for slow, fast in zip(best[0], best[1], strict=True)])


def main() -> None:
    """Exit code 1 when a ratio is below the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, nargs="+", default=["nano", "small"], help="of the models")
    parser.add_argument("--turns", type=int, default=10, help="texts of each side that are timed")
    parser.add_argument("--length", type=int, default=100, help="tokens a text")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads")
    sizes, turns, length, threads = vars(parser.parse_args()).values()
    torch.set_num_threads(threads)
    print(f"{threads} threads, {length} tokens a text")
    good = [compare(size, turns, length) >= LIMIT for size in sizes]
    sys.exit(0 if all(good) else 1)


if __name__ == "__main__":
    main()
