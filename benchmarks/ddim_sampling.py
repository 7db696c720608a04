"""Benchmark of DDIM sampling against the DDIMScheduler of diffusers.

Both implementations evaluate the same U-Net with the same weights at the same time steps, from the same initial noise,
alternately in one process. Parnassus is also timed with a compiled network. On a CPU the network is small, so that the
overhead of a sampling step is visible.
Limits: in eager mode at most the time of diffusers, plus 2 % measurement noise; compiled, at least 1.3 times as fast as
diffusers; images equal up to 10⁻³ of the largest pixel value.
Run: python benchmarks/ddim_sampling.py (requires diffusers, part of the bench environment)
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import torch
from diffusers import DDIMScheduler
from torch import Tensor, nn

from parnassus.diffusion import UNet, ddim, evenly_spaced_steps, linear_schedule

TIMESTEPS = 1_000
MAX_EAGER_RATIO, MIN_COMPILED_SPEEDUP = 1.0, 1.3
TOLERANCE = 1e-3
NOISE = 0.02
"""Relative difference between medians of identical work on an idle machine: differences below it are noise."""


def sample_parnassus(network: Callable[[Tensor, Tensor], Tensor], noise: Tensor, steps: int) -> Tensor:
    """Sample with `parnassus.diffusion.ddim`."""
    return ddim(network, linear_schedule(TIMESTEPS), noise, grid=evenly_spaced_steps(TIMESTEPS, steps))


def sample_diffusers(network: Callable[[Tensor, Tensor], Tensor], noise: Tensor, steps: int) -> Tensor:
    """Sample with the loop from the diffusers documentation, over the same time steps."""
    scheduler = DDIMScheduler(
        TIMESTEPS,
        beta_start=1e-4,
        beta_end=0.02,
        beta_schedule="linear",
        clip_sample=False,
        set_alpha_to_one=True,
        timestep_spacing="trailing",
    )
    scheduler.set_timesteps(steps, device=noise.device)
    x = noise
    for t in scheduler.timesteps:
        x = scheduler.step(network(x, t.expand(len(x))), t, x).prev_sample
    return x


@torch.no_grad()
def seconds(samplers: dict[str, Callable[[], Tensor]], turns: int) -> dict[str, list[float]]:
    """Return the seconds of every call of each sampler, timed alternately after one warm-up call."""
    times: dict[str, list[float]] = {name: [] for name in samplers}
    for turn in range(turns + 1):
        for name in sorted(samplers, reverse=bool(turn % 2)):
            _synchronize()
            start_time = time.perf_counter()
            samplers[name]()
            _synchronize()
            if turn:
                times[name].append(time.perf_counter() - start_time)
    return times


def _synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def network_for(device: str) -> tuple[nn.Module, tuple[int, ...]]:
    """Build a U-Net of a size suited to the device, without zero-initialised layers; return it with its image shape."""
    torch.manual_seed(0)
    shape = (3, 32, 32) if device == "cuda" else (1, 8, 8)
    network = UNet(shape, 64) if device == "cuda" else UNet(shape, 16, multipliers=(1, 2), blocks=1, attention=())
    for parameter in network.parameters():
        if not bool(parameter.any()):
            nn.init.normal_(parameter, std=0.02)  # zero-initialised layers, such as the last one
    return network.to(device).eval(), shape


def main() -> None:
    """Print the time per step and both ratios; exit with 1 if one misses its limit or the images differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=10, help="number of timed calls per sampler")
    parser.add_argument("--steps", type=int, default=50, help="number of DDIM steps")
    parser.add_argument("--count", type=int, default=None, help="batch size; default: 64 on CUDA, 16 on a CPU")
    args = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    network, shape = network_for(device)
    compiled = torch.compile(network)
    noise = torch.randn(args.count or (64 if device == "cuda" else 16), *shape, device=device)
    with torch.no_grad(), torch.backends.cudnn.flags(allow_tf32=False):  # TF32 rounding would mask differences
        own_images, baseline_images = (
            sample_parnassus(network, noise, args.steps),
            sample_diffusers(network, noise, args.steps),
        )
    difference = float((own_images - baseline_images).abs().max() / baseline_images.abs().max())
    times = seconds(
        {
            "diffusers": lambda: sample_diffusers(network, noise, args.steps),
            "parnassus": lambda: sample_parnassus(network, noise, args.steps),
            "compiled": lambda: sample_parnassus(compiled, noise, args.steps),
        },
        args.turns,
    )
    milliseconds = {name: 1e3 * statistics.median(elapsed) / args.steps for name, elapsed in times.items()}
    eager_ratio, compiled_speedup = (
        statistics.median(a / b for a, b in zip(times[numerator], times[denominator], strict=True))
        for numerator, denominator in (("parnassus", "diffusers"), ("diffusers", "compiled"))
    )
    print(
        f"on {device}, {len(noise)} images: " + ", ".join(f"{n} {ms:.3f} ms per step" for n, ms in milliseconds.items())
    )
    print(f"largest pixel difference: {difference:.1e} of the largest pixel value (limit: at most {TOLERANCE})")
    print(f"time ratio Parnassus / diffusers, eager: {eager_ratio:.3f} (limit: at most {MAX_EAGER_RATIO} + {NOISE})")
    print(f"time ratio diffusers / Parnassus compiled: {compiled_speedup:.2f} (limit: at least {MIN_COMPILED_SPEEDUP})")
    sys.exit(
        1
        if eager_ratio > MAX_EAGER_RATIO + NOISE or compiled_speedup < MIN_COMPILED_SPEEDUP or difference > TOLERANCE
        else 0
    )


if __name__ == "__main__":
    main()
