"""Benchmark of a training step of the U-Net, in images per second and as a fraction of the bfloat16 peak of the GPU.

On CUDA the loss is compiled and computed under bfloat16 autocast, for 32 × 32 colour images and the CIFAR-10 network.
On a CPU a tiny network is trained in eager mode and float32. The floating-point operations are counted by the
FlopCounterMode of PyTorch on an eager step.
Limit: at least 20 % of the bfloat16 peak, on a GPU whose peak is listed below; otherwise none.
Run: python benchmarks/unet_training.py
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

PEAK_FLOPS = {"H200": 989e12, "H100": 989e12, "A100": 312e12, "L40S": 362e12}
"""Peak dense bfloat16 FLOP/s from the data sheets, by a substring of the device name."""
MIN_PEAK_FRACTION = 0.2
"""Lower limit of the fraction of the peak on a listed GPU."""


def make_inputs(device: str, batch: int) -> tuple[Tensor, Tensor, DDPM]:
    """Create a batch, its labels and the model."""
    torch.manual_seed(0)
    large = device == "cuda"
    shape = (3, 32, 32) if large else (1, 8, 8)
    width, multipliers = (128, (1, 2, 2, 2)) if large else (16, (1, 2))
    network = UNet(shape, width, multipliers=multipliers, blocks=2 if large else 1, attention=(1,), classes=10)
    schedule = cosine_schedule(1_000)
    model = DDPM(network, shape, schedule=schedule.to(device) if large else schedule, classes=10).to(device)
    return torch.randn(batch, *shape, device=device), torch.arange(batch, device=device) % 10, model


def count_flops(model: DDPM, x: Tensor, label: Tensor) -> int:
    """Count the floating-point operations of the loss and its gradient."""
    with FlopCounterMode(display=False) as counter:
        model.loss(x, label).backward()
    model.zero_grad()
    return int(counter.get_total_flops())


def measure_steps(model: DDPM, x: Tensor, label: Tensor, turns: int) -> list[float]:
    """Return the seconds per step for each of `turns` rounds of ten steps."""
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
    times = []
    for _ in range(turns):
        start_time = _synchronized_time(cuda=cuda)
        for _ in range(10):
            step()
        times.append((_synchronized_time(cuda=cuda) - start_time) / 10)
    return times


def _synchronized_time(*, cuda: bool) -> float:
    if cuda:
        torch.cuda.synchronize()
    return time.perf_counter()


def main() -> None:
    """Print images per second and the fraction of the peak; exit with 1 if a listed GPU misses the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=5, help="number of timed rounds of ten steps")
    parser.add_argument("--batch", type=int, default=0, help="batch size; 0: 512 on CUDA, 64 on a CPU")
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x, label, model = make_inputs(device, args.batch or (512 if device == "cuda" else 64))
    flops = count_flops(model, x[:16], label[:16]) / 16
    seconds = statistics.median(measure_steps(model, x, label, args.turns))
    rate = len(x) / seconds
    weights = sum(parameter.numel() for parameter in model.parameters())
    print(f"U-Net of {weights:,} weights on {tuple(x.shape[1:])} images, {flops / 1e9:.2f} GFLOP per image and step")
    print(f"on {device}: {rate:,.0f} images per second, {1e3 * seconds:.1f} ms for a batch of {len(x)}")
    device_name = torch.cuda.get_device_name() if device == "cuda" else ""
    peak = next((value for name, value in PEAK_FLOPS.items() if name in device_name), None)
    if peak is None:
        print(f"{rate * flops / 1e12:.3g} TFLOP/s; the peak of {device_name or 'this CPU'} is not listed")
        return
    fraction = rate * flops / peak
    print(
        f"{rate * flops / 1e12:.0f} TFLOP/s, {fraction:.1%} of the bfloat16 peak of {device_name} "
        f"(limit: at least {MIN_PEAK_FRACTION:.0%})"
    )
    sys.exit(1 if fraction < MIN_PEAK_FRACTION else 0)


if __name__ == "__main__":
    main()
