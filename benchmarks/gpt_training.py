"""Benchmark of a GPT training step against a minimal hand-written training loop.

The reference follows nanoGPT: one module, fused attention, AdamW of PyTorch, gradient clipping, no logging. Parnassus
trains through Run and descend, with progress, metrics and checkpoints. On a GPU both are compiled and run in bfloat16,
and the fraction of the peak FLOP/s is printed, counting 6 N + 12 L d T floating-point operations per token
(Chowdhery et al. 2022).
Limits: at least 0.99 times the speed of the reference; at size gpt2 on a known GPU, at least 45 % of its peak FLOP/s.
Run: python benchmarks/gpt_training.py --size nano, or --size gpt2 on a GPU
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

os.environ.setdefault("GOMP_SPINCOUNT", "1000")  # as set by the parnassus command: idle threads stop spinning sooner

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
"""Depth, width, heads, vocabulary size, context length and batch size: nanoGPT for CPU and Shakespeare, and GPT-2."""
PEAK_FLOPS = {"H200": 989e12, "H100": 989e12, "A100": 312e12}
"""Peak dense bfloat16 FLOP/s according to the manufacturer, by a substring of the device name."""
LIMIT = 0.99
"""Equal speed within measurement noise: two identical reference loops differ by up to 1 %."""
MIN_PEAK_FRACTION = 0.45
"""Lower limit of the fraction of the peak FLOP/s, at size gpt2."""
LEARNING_RATE = 6e-4


class ReferenceBlock(nn.Module):
    """Pre-norm attention and feed-forward network."""

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


class ReferenceGPT(nn.Module):
    """Token and position embeddings, blocks, a final norm, and the tied output embedding."""

    def __init__(self, depth: int, width: int, heads: int, vocabulary_size: int, context_length: int) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary_size, width), nn.Embedding(context_length, width)
        self.blocks = nn.Sequential(*(ReferenceBlock(width, heads) for _ in range(depth)))
        self.ln = nn.LayerNorm(width)
        for parameter in self.parameters():
            if parameter.ndim == 2:
                nn.init.normal_(parameter, std=0.02)

    def loss(self, tokens: Tensor) -> Tensor:
        inputs, targets = tokens[:, :-1], tokens[:, 1:]
        x = self.wte(inputs) + self.wpe(torch.arange(inputs.shape[1], device=inputs.device))
        logits = linear(self.ln(self.blocks(x)), self.wte.weight)
        return cross_entropy(logits.flatten(0, 1), targets.flatten())


def reference_steps(size: str, text: Tensor, device: str, steps: int) -> Generator[Tensor]:
    """Yield the loss after every `steps` steps of the reference loop."""
    depth, width, heads, vocabulary_size, context_length, batch_size = SIZES[size]
    torch.manual_seed(0)
    model = ReferenceGPT(depth, width, heads, vocabulary_size, context_length).to(device)
    optimizer = AdamW(model.parameters(), LEARNING_RATE, betas=(0.9, 0.95), fused=True)
    loss_of = torch.compile(model.loss) if device == "cuda" else model.loss
    offsets = torch.arange(context_length + 1, device=device)
    while True:
        for _ in range(steps):
            rows = torch.randint(0, len(text) - context_length, (batch_size,)).to(device)
            with torch.autocast(device, torch.bfloat16, enabled=device == "cuda"):
                loss = loss_of(text[rows[:, None] + offsets])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
        yield loss.detach()


def parnassus_steps(size: str, text: Tensor, device: str, steps: int, folder: Path) -> Generator[Tensor]:
    """Yield the loss after every `steps` steps of Parnassus."""
    depth, width, heads, vocabulary_size, context_length, batch_size = SIZES[size]
    on_gpu = device == "cuda"
    options = Options(
        device=device,
        quiet=True,
        precision="bf16" if on_gpu else "float32",
        compile=on_gpu,
        threads=torch.get_num_threads(),
    )
    run = Run(RunFolder.create(folder, "training", {}), options)
    model, optimizer = run.prepare(
        gpt(vocabulary_size, context_length, width=width, heads=heads, depth=depth),
        partial(AdamW, lr=LEARNING_RATE, betas=(0.9, 0.95), fused=True),
    )
    optimizer.register_step_pre_hook(clipping_hook(model))
    offsets = torch.arange(context_length + 1, device=text.device)
    batches = Batches(
        lambda rows: text[rows[:, None] + offsets],
        len(text) - context_length,
        size=batch_size,
        steps=10_000_000,
        device=text.device,
    )
    with closing(descend(run, model, optimizer, batches)) as losses:
        for step, loss in losses:
            run.log(step, loss=loss)
            if (step + 1) % steps == 0:
                yield loss


def operations(size: str) -> float:
    """Return the floating-point operations of a training step: 6 per weight and token, plus those of attention."""
    depth, width, heads, vocabulary_size, context_length, batch_size = SIZES[size]
    with torch.device("meta"):
        weights = sum(
            parameter.numel()
            for parameter in ReferenceGPT(depth, width, heads, vocabulary_size, context_length).parameters()
        )
    return (
        (6.0 * (weights - context_length * width) + 12.0 * depth * width * context_length) * context_length * batch_size
    )


def synchronized_time(device: str) -> float:
    """Return the current time after all queued work of the device has finished."""
    if device == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter()


def main() -> None:
    """Print milliseconds per step, their ratio and the fraction of the peak; exit with 1 if a limit is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", choices=SIZES, default=None, help="model size; default: gpt2 on a GPU, nano on a CPU")
    parser.add_argument("--turns", type=int, default=24, help="number of timed turns per implementation")
    parser.add_argument("--steps", type=int, default=10, help="steps per turn")
    parser.add_argument("--threads", type=int, default=2, help="number of CPU threads")
    requested_size, turns, steps, threads = vars(parser.parse_args()).values()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    size: str = requested_size or ("gpt2" if device == "cuda" else "nano")
    torch.set_num_threads(threads)
    text = torch.randint(0, SIZES[size][3], (500_000,), generator=torch.Generator().manual_seed(0)).to(device)
    with tempfile.TemporaryDirectory() as folder:
        loops = {
            "reference": reference_steps(size, text, device, steps),
            "parnassus": parnassus_steps(size, text, device, steps, Path(folder)),
        }
        for loop in loops.values():
            next(loop)  # compilation and warm-up
        times: dict[str, list[float]] = {name: [] for name in loops}
        for turn in range(turns):
            for name in sorted(loops, reverse=bool(turn % 2)):
                start_time = synchronized_time(device)
                next(loops[name])
                times[name].append((synchronized_time(device) - start_time) / steps)
        for loop in loops.values():
            loop.close()
    ratio = statistics.median(
        reference / own for reference, own in zip(times["reference"], times["parnassus"], strict=True)
    )
    seconds = {name: statistics.median(each) for name, each in times.items()}
    flops_per_second = operations(size) / seconds["parnassus"]
    print(
        f"{size} on {device}: reference {1e3 * seconds['reference']:.1f}, "
        f"Parnassus {1e3 * seconds['parnassus']:.1f} ms per step"
    )
    print(f"reference / Parnassus = {ratio:.2f} (limit: at least {LIMIT}); {flops_per_second / 1e12:.3g} TFLOP/s")
    peak = next(
        (peak for name, peak in PEAK_FLOPS.items() if device == "cuda" and name in torch.cuda.get_device_name()), None
    )
    efficient = True
    if peak is not None:
        print(
            f"fraction of the peak FLOP/s: {flops_per_second / peak:.1%} "
            f"(limit: at least {MIN_PEAK_FRACTION:.0%} at size gpt2)"
        )
        efficient = size != "gpt2" or flops_per_second / peak >= MIN_PEAK_FRACTION
    sys.exit(0 if ratio >= LIMIT and efficient else 1)


if __name__ == "__main__":
    main()
