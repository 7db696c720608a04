"""DDIM sampling beside diffusers' DDIMScheduler: no slower in eager mode, 1.3 times as fast compiled.

Both sides ask the same U-Net with the same weights at the same time steps, from the same noise, in one process and in
turn; their images must agree. On the CPU the network is small, so that what a step costs beside it can be seen.
Run it with: python benchmarks/ddim_sampling.py (the bench environment has diffusers)
"""

import argparse
import statistics
import sys
import time
from collections.abc import Callable

import torch
from diffusers import DDIMScheduler
from torch import Tensor, nn

from parnassus.diffusion import UNet, ddim, even_grid, linear_schedule

CHAIN = 1_000
EAGER, COMPILED = 1.0, 1.3
SAME = 1e-3
SPREAD = 0.02
"""How far medians of the same work lie apart on a quiet machine: nobody is faster by less."""


def our_images(network: Callable[[Tensor, Tensor], Tensor], start: Tensor, steps: int) -> Tensor:
    """DDIM as the library has it."""
    return ddim(network, linear_schedule(CHAIN), start, grid=even_grid(CHAIN, steps))


def their_images(network: Callable[[Tensor, Tensor], Tensor], start: Tensor, steps: int) -> Tensor:
    """The loop that diffusers' documentation gives, over the same time steps."""
    scheduler = DDIMScheduler(
        CHAIN,
        beta_start=1e-4,
        beta_end=0.02,
        beta_schedule="linear",
        clip_sample=False,
        set_alpha_to_one=True,
        timestep_spacing="trailing",
    )
    scheduler.set_timesteps(steps, device=start.device)
    x = start
    for t in scheduler.timesteps:
        x = scheduler.step(network(x, t.expand(len(x))), t, x).prev_sample
    return x


@torch.no_grad()
def seconds(sides: dict[str, Callable[[], Tensor]], turns: int) -> dict[str, list[float]]:
    """What each side takes, in turn; the first time is for warming up and not counted."""
    times: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(turns + 1):
        for name in sorted(sides, reverse=bool(turn % 2)):
            _wait()
            began = time.perf_counter()
            sides[name]()
            _wait()
            if turn:
                times[name].append(time.perf_counter() - began)
    return times


def _wait() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def network_for(device: str) -> tuple[nn.Module, tuple[int, ...]]:
    """A U-Net of a size that suits the machine, with weights that do something, and the shape of its images."""
    torch.manual_seed(0)
    shape = (3, 32, 32) if device == "cuda" else (1, 8, 8)
    network = UNet(shape, 64) if device == "cuda" else UNet(shape, 16, multipliers=(1, 2), blocks=1, attention=())
    for parameter in network.parameters():
        if not bool(parameter.any()):
            nn.init.normal_(parameter, std=0.02)  # the last layer of a new network is zero
    return network.to(device).eval(), shape


def main() -> None:
    """Print the times a step and both ratios; exit code 1 when one misses its limit or the images differ."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=10, help="times each side draws and is timed")
    parser.add_argument("--steps", type=int, default=50, help="DDIM steps")
    parser.add_argument("--count", type=int, default=None, help="images at once; 64 on an accelerator, 16 without")
    given = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    network, shape = network_for(device)
    compiled = torch.compile(network)
    start = torch.randn(given.count or (64 if device == "cuda" else 16), *shape, device=device)
    with torch.no_grad(), torch.backends.cudnn.flags(allow_tf32=False):  # its rounding would hide what differs
        ours, theirs = our_images(network, start, given.steps), their_images(network, start, given.steps)
    off = float((ours - theirs).abs().max() / theirs.abs().max())
    times = seconds(
        {
            "diffusers": lambda: their_images(network, start, given.steps),
            "ours": lambda: our_images(network, start, given.steps),
            "compiled": lambda: our_images(compiled, start, given.steps),
        },
        given.turns,
    )
    milliseconds = {name: 1e3 * statistics.median(taken) / given.steps for name, taken in times.items()}
    eager, faster = (
        statistics.median(a / b for a, b in zip(times[first], times[second], strict=True))
        for first, second in (("ours", "diffusers"), ("diffusers", "compiled"))
    )
    print(
        f"on {device}, {len(start)} images: " + ", ".join(f"{n} {ms:.3f} ms a step" for n, ms in milliseconds.items())
    )
    print(f"largest difference of a pixel: {off:.1e} of the largest pixel (at most {SAME})")
    print(f"ours / diffusers, eager: {eager:.3f} (at most {EAGER} + {SPREAD})")
    print(f"diffusers / ours compiled: {faster:.2f} (at least {COMPILED})")
    sys.exit(1 if eager > EAGER + SPREAD or faster < COMPILED or off > SAME else 0)


if __name__ == "__main__":
    main()
