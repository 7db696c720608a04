"""A training step of our GPT beside a plain loop written for the purpose: not slower; on a card, its share of the peak.

The plain side is what one would write after nanoGPT: one module, fused attention, torch's own AdamW, gradients clipped,
nothing kept. Ours goes through Run and descend, with progress, metrics and checkpoints. On a card both run in bfloat16
and compiled; the share of the peak counts 6 N + 12 L d T floating-point operations a token (Chowdhery et al. 2022).
Run it with: python benchmarks/gpt_training.py --size nano, or --size gpt2 on a card
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import closing
from functools import partial
from pathlib import Path

os.environ.setdefault("GOMP_SPINCOUNT", "1000")  # as the command parnassus has it: threads that wait give way

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu, linear, scaled_dot_product_attention
from torch.optim import AdamW

from parnassus.attention import gpt
from parnassus.attention.experiments.gpt import clipping_hook
from parnassus.data import Batches
from parnassus.runs import RunFolder
from parnassus.train import Options, Run, descend

SIZES = {"nano": (4, 128, 4, 65, 64, 12), "small": (6, 384, 6, 65, 256, 64), "gpt2": (12, 768, 12, 50_304, 1_024, 64)}
"""Blocks, width, heads, tokens, window and windows a step: nanoGPT's for a CPU, for Shakespeare, and GPT-2."""
PEAK = {"H200": 989e12, "H100": 989e12, "A100": 312e12}
"""Floating-point operations a second in bfloat16 that the makers promise, without sparsity."""
LIMIT = 0.99
"""Not slower: two plain loops that are the same differ by up to a hundredth in such a race."""
SHARE = 0.45
"""Of an H200's peak, at the size of GPT-2."""
RATE = 6e-4


class PlainBlock(nn.Module):
    """Attention and a dense network, each after its norm."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc, self.out = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        batch, time, width = x.shape
        q, k, v = self.qkv(self.ln_1(x)).split(width, dim=2)
        q, k, v = (part.view(batch, time, self.heads, width // self.heads).transpose(1, 2) for part in (q, k, v))
        y = scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).contiguous().view(batch, time, width))
        result: Tensor = x + self.out(gelu(self.fc(self.ln_2(x)), approximate="tanh"))
        return result


class PlainGPT(nn.Module):
    """Token and place, blocks, a norm, and the embedding once more."""

    def __init__(self, depth: int, width: int, heads: int, tokens: int, window: int) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(tokens, width), nn.Embedding(window, width)
        self.blocks = nn.Sequential(*(PlainBlock(width, heads) for _ in range(depth)))
        self.ln = nn.LayerNorm(width)
        for parameter in self.parameters():
            if parameter.ndim == 2:
                nn.init.normal_(parameter, std=0.02)

    def loss(self, tokens: Tensor) -> Tensor:
        seen, wanted = tokens[:, :-1], tokens[:, 1:]
        x = self.wte(seen) + self.wpe(torch.arange(seen.shape[1], device=seen.device))
        logits = linear(self.ln(self.blocks(x)), self.wte.weight)
        return cross_entropy(logits.flatten(0, 1), wanted.flatten())


def plain_steps(size: str, text: Tensor, device: str, steps: int) -> Generator[Tensor]:
    """Yield the loss of every `steps` steps of the plain loop."""
    depth, width, heads, tokens, window, batch = SIZES[size]
    torch.manual_seed(0)
    model = PlainGPT(depth, width, heads, tokens, window).to(device)
    optimizer = AdamW(model.parameters(), RATE, betas=(0.9, 0.95), fused=True)
    loss_of = torch.compile(model.loss) if device == "cuda" else model.loss
    reach = torch.arange(window + 1, device=device)
    while True:
        for _ in range(steps):
            rows = torch.randint(0, len(text) - window, (batch,)).to(device)
            with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
                loss = loss_of(text[rows[:, None] + reach])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        yield loss.detach()


def our_steps(size: str, text: Tensor, device: str, steps: int, folder: Path) -> Generator[Tensor]:
    """Yield the loss of every `steps` steps of ours."""
    depth, width, heads, tokens, window, batch = SIZES[size]
    card = device == "cuda"
    options = Options(
        device=device,
        quiet=True,
        precision="bf16" if card else "float32",
        compile=card,
        threads=torch.get_num_threads(),
    )
    run = Run(RunFolder.create(folder, "training", {}), options)
    model, optimizer = run.prepare(
        gpt(tokens, window, width=width, heads=heads, depth=depth),
        partial(AdamW, lr=RATE, betas=(0.9, 0.95), fused=True),
    )
    optimizer.register_step_pre_hook(clipping_hook(model))
    reach = torch.arange(window + 1, device=text.device)
    batches = Batches(
        lambda rows: text[rows[:, None] + reach], len(text) - window, size=batch, steps=10_000_000, device=text.device
    )
    with closing(descend(run, model, optimizer, batches)) as stepping:
        for step, loss in stepping:
            run.log(step, loss=loss)
            if (step + 1) % steps == 0:
                yield loss


def operations(size: str) -> float:
    """Floating-point operations of a step, forward and back: 6 for each weight and token, and attention's own."""
    depth, width, heads, tokens, window, batch = SIZES[size]
    with torch.device("meta"):
        weights = sum(each.numel() for each in PlainGPT(depth, width, heads, tokens, window).parameters())
    return (6.0 * (weights - window * width) + 12.0 * depth * width * window) * window * batch


def wait(device: str) -> float:
    """The time, once the device has done what it was told."""
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def main() -> None:
    """Print milliseconds a step of both, their ratio and our share of the peak; exit code 1 below the limits."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default=None, help="of the model; gpt2 on a card, else nano")
    parser.add_argument("--turns", type=int, default=24, help="how often each side is timed")
    parser.add_argument("--steps", type=int, default=10, help="steps a turn")
    parser.add_argument("--threads", type=int, default=2, help="CPU threads")
    asked, turns, steps, threads = vars(parser.parse_args()).values()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    size: str = asked or ("gpt2" if device == "cuda" else "nano")
    torch.set_num_threads(threads)
    text = torch.randint(0, SIZES[size][3], (500_000,), generator=torch.Generator().manual_seed(0)).to(device)
    with tempfile.TemporaryDirectory() as folder:
        sides = {
            "plain": plain_steps(size, text, device, steps),
            "ours": our_steps(size, text, device, steps, Path(folder)),
        }
        for side in sides.values():
            next(side)  # warm up, compile
        times: dict[str, list[float]] = {name: [] for name in sides}
        for turn in range(turns):
            for name in sorted(sides, reverse=bool(turn % 2)):
                began = wait(device)
                next(sides[name])
                times[name].append((wait(device) - began) / steps)
        for side in sides.values():
            side.close()
    ratio = statistics.median(plain / own for plain, own in zip(times["plain"], times["ours"], strict=True))
    taken = {name: statistics.median(each) for name, each in times.items()}
    done = operations(size) / taken["ours"]
    print(f"{size} on {device}: plain {1e3 * taken['plain']:.1f}, ours {1e3 * taken['ours']:.1f} ms a step")
    print(f"plain / ours = {ratio:.2f} (at least {LIMIT}); ours does {done / 1e12:.3g} TFLOP/s")
    peak = next(
        (peak for card, peak in PEAK.items() if device == "cuda" and card in torch.cuda.get_device_name()), None
    )
    enough = True
    if peak is not None:
        print(f"share of the card's peak: {done / peak:.1%} (at least {SHARE:.0%} at the size gpt2)")
        enough = size != "gpt2" or done / peak >= SHARE
    sys.exit(0 if ratio >= LIMIT and enough else 1)


if __name__ == "__main__":
    main()
