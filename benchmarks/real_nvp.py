"""Benchmark of training and sampling with Real NVP against zuko and normflows.

All three implementations have the same number of coupling layers, with networks of the same width, depth and
nonlinearity, and process the same batch. They are timed alternately in one process, so that background load affects
all; on the CPU, CPU time is measured instead of wall-clock time. Training comprises the loss of a batch and its
gradients, without the optimizer, which would be identical. If a GPU is available, both are also timed there.
Limit: zuko and normflows take at least 1.2 times as long as Parnassus.
Run: python benchmarks/real_nvp.py
"""

import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import normflows
import torch
import zuko
from torch import Tensor, nn

from parnassus.flows import Flow, GaussianBase, real_nvp

TURNS, STEPS, LIMIT = 40, 4, 1.2
LAYERS, WIDTH, DEPTH, BATCH = 8, 64, 2, 256
Implementation = tuple[nn.Module, Callable[[Tensor], Tensor], Callable[[int], object]]


def make_parnassus(features: int) -> Implementation:
    flow = Flow(real_nvp(features, num_layers=LAYERS, width=WIDTH, num_hidden_layers=DEPTH), GaussianBase((features,)))
    return flow, flow.loss, flow.sample


def make_zuko(features: int) -> Implementation:
    flow: Any = zuko.flows.RealNVP(
        features, transforms=LAYERS, hidden_features=[WIDTH] * DEPTH, activation=torch.nn.SiLU
    )

    @torch.no_grad()
    def sample(count: int) -> Tensor:
        samples: Tensor = flow().sample((count,))
        return samples

    return flow, lambda x: -flow().log_prob(x).mean(), sample


def make_normflows(features: int) -> Implementation:
    half = features // 2
    layers: list[nn.Module] = []
    for _ in range(LAYERS):
        hidden: list[nn.Module] = [nn.Linear(half, WIDTH), nn.SiLU()]
        for _ in range(DEPTH - 1):
            hidden += [nn.Linear(WIDTH, WIDTH), nn.SiLU()]
        network = nn.Sequential(*hidden, nn.Linear(WIDTH, features))
        layers += [normflows.flows.AffineCouplingBlock(network), normflows.flows.Permute(features, mode="swap")]
    flow: Any = normflows.NormalizingFlow(normflows.distributions.DiagGaussian(features, trainable=False), layers)

    @torch.no_grad()
    def sample(count: int) -> Tensor:
        samples: Tensor = flow.sample(count)[0]
        return samples

    return flow, flow.forward_kld, sample


IMPLEMENTATIONS: dict[str, Callable[[int], Implementation]] = {
    "parnassus": make_parnassus,
    "zuko": make_zuko,
    "normflows": make_normflows,
}


def seconds(call: Callable[[], object], device: str) -> float:
    """Return the seconds of `STEPS` calls."""
    clock = time.perf_counter if device == "cuda" else time.process_time
    start_time = clock()
    for _ in range(STEPS):
        call()
    if device == "cuda":
        torch.cuda.synchronize()
    return clock() - start_time


def training(implementation: Implementation, x: Tensor) -> Callable[[], object]:
    """Return a function that computes the loss of the batch `x` and its gradients."""
    module, loss_of, _ = implementation

    def call() -> None:
        module.zero_grad(set_to_none=True)
        loss_of(x).backward()

    return call


def compare(features: int, device: str) -> dict[str, dict[str, float]]:
    """Return, for training and sampling, the median time ratios baseline / Parnassus and our microseconds per call."""
    torch.manual_seed(0)
    x = torch.randn(BATCH, features, device=device)
    implementations = {name: make(features) for name, make in IMPLEMENTATIONS.items()}
    for module, _, _ in implementations.values():
        module.to(device)
    tasks: dict[str, dict[str, Callable[[], object]]] = {
        "training": {name: training(implementation, x) for name, implementation in implementations.items()},
        "sampling": {name: partial(implementation[2], BATCH) for name, implementation in implementations.items()},
    }
    results: dict[str, dict[str, float]] = {}
    for task, calls in tasks.items():
        times: dict[str, list[float]] = {name: [] for name in calls}
        for turn in range(-3, TURNS):
            for name in sorted(calls, reverse=bool(turn % 2)):
                elapsed = seconds(calls[name], device)
                if turn >= 0:  # the first three turns are a warm-up
                    times[name].append(elapsed)
        results[task] = {
            name: statistics.median(
                baseline / own for baseline, own in zip(times[name], times["parnassus"], strict=True)
            )
            for name in ("zuko", "normflows")
        }
        results[task]["microseconds"] = 1e6 * statistics.median(times["parnassus"]) / STEPS
    return results


def main() -> None:
    """Print a table of ratios; exit with 1 if a ratio is below the limit."""
    torch.set_num_threads(1)
    failed = False
    print(f"{LAYERS} coupling layers, {DEPTH} hidden layers of width {WIDTH}, batch size {BATCH}")
    for device in ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",):
        print(f"{device}: time ratio baseline / Parnassus (limit: at least {LIMIT})")
        print(f"{'':30}{'zuko':>8}{'normflows':>11}{'µs':>9}")
        for features in (2, 16):
            for task, row in compare(features, device).items():
                failed |= min(row["zuko"], row["normflows"]) < LIMIT
                label = f"{task}, {features} features"
                print(f"{label:30}{row['zuko']:8.2f}{row['normflows']:11.2f}{row['microseconds']:9.0f}")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
