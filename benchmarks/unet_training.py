"""A training step of the U-Net: images a second, and the share of the card's bfloat16 peak.

On CUDA the loss is compiled and runs under bfloat16 autocast, on 32 × 32 colour images with the network for CIFAR-10.
On a CPU it is eager, in float32, and tiny. The work of a step is counted by torch itself, on the eager step.
Run it with: python benchmarks/unet_training.py
"""

import argparse
import statistics
import sys
import time

import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from parnassus.diffusion import DDPM, UNet, cosine_schedule
from parnassus.optim import Adam

PEAKS = {"H200": 989e12, "H100": 989e12, "A100": 312e12, "L40S": 362e12}
"""Dense bfloat16 operations a second, by a word of the card's name (the makers' data sheets)."""
LEAST = 0.2
"""The share of the peak that a step on a known card must reach."""


def step_of(device: str, batch: int) -> tuple[Tensor, Tensor, DDPM]:
    """A batch, its labels and the model."""
    torch.manual_seed(0)
    large = device == "cuda"
    shape = (3, 32, 32) if large else (1, 8, 8)
    width, multipliers = (128, (1, 2, 2, 2)) if large else (16, (1, 2))
    network = UNet(shape, width, multipliers=multipliers, blocks=2 if large else 1, attention=(1,), classes=10)
    schedule = cosine_schedule(1_000)
    model = DDPM(network, shape, schedule=schedule.to(device) if large else schedule, classes=10).to(device)
    return torch.randn(batch, *shape, device=device), torch.arange(batch, device=device) % 10, model


def work(model: DDPM, x: Tensor, label: Tensor) -> int:
    """Floating-point operations of the loss and its gradient."""
    with FlopCounterMode(display=False) as counter:
        model.loss(x, label).backward()
    model.zero_grad()
    return int(counter.get_total_flops())


def timed(model: DDPM, x: Tensor, label: Tensor, turns: int) -> list[float]:
    """Seconds a step, over `turns` rounds of ten steps."""
    cuda = x.is_cuda
    loss_of = torch.compile(model.loss) if cuda else model.loss
    optimizer = Adam(model.parameters(), lr=1e-4)

    def step() -> None:
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=cuda):
            loss = loss_of(x, label)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    for _ in range(5):
        step()
    taken = []
    for _ in range(turns):
        began = _now(cuda=cuda)
        for _ in range(10):
            step()
        taken.append((_now(cuda=cuda) - began) / 10)
    return taken


def _now(*, cuda: bool) -> float:
    if cuda:
        torch.cuda.synchronize()
    return time.perf_counter()


def main() -> None:
    """Print images a second and the share of the peak; exit code 1 when a known card stays below the least share."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5, help="rounds of ten steps that are timed")
    parser.add_argument("--batch", type=int, default=0, help="images a step; 0: 512 on CUDA, 64 on a CPU")
    told = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x, label, model = step_of(device, told.batch or (512 if device == "cuda" else 64))
    flops = work(model, x[:16], label[:16]) / 16
    seconds = statistics.median(timed(model, x, label, told.turns))
    rate = len(x) / seconds
    weights = sum(parameter.numel() for parameter in model.parameters())
    print(f"U-Net of {weights:,} weights on {tuple(x.shape[1:])} images, {flops / 1e9:.2f} GFLOP an image and step")
    print(f"on {device}: {rate:,.0f} images a second, {1e3 * seconds:.1f} ms for a batch of {len(x)}")
    card = torch.cuda.get_device_name() if device == "cuda" else ""
    peak = next((value for word, value in PEAKS.items() if word in card), None)
    if peak is None:
        print(f"{rate * flops / 1e12:.3g} TFLOP a second; the peak of {card or 'this CPU'} is not known here")
        return
    share = rate * flops / peak
    print(
        f"{rate * flops / 1e12:.0f} TFLOP a second, {share:.1%} of the bfloat16 peak of {card} (at least {LEAST:.0%})"
    )
    sys.exit(1 if share < LEAST else 0)


if __name__ == "__main__":
    main()
