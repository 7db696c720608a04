"""What a Real NVP of ours costs beside zuko's and normflows': they take at least 1.2 times as long.

All three have the same couplings: as many, with networks of the same width, depth and nonlinearity, on the same batch.
They take turns in one process, so that a noisy machine slows all, and on the CPU its time is counted, not that of
the clock. Training is the loss of a batch and its gradients; the optimiser would be the same for all. On a machine with
a GPU both are timed there too.
Run it with: python benchmarks/real_nvp.py
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
Side = tuple[nn.Module, Callable[[Tensor], Tensor], Callable[[int], object]]


def ours(features: int) -> Side:
    flow = Flow(real_nvp(features, num_layers=LAYERS, width=WIDTH, num_hidden_layers=DEPTH), GaussianBase((features,)))
    return flow, flow.loss, flow.sample


def by_zuko(features: int) -> Side:
    flow: Any = zuko.flows.RealNVP(
        features, transforms=LAYERS, hidden_features=[WIDTH] * DEPTH, activation=torch.nn.SiLU
    )

    @torch.no_grad()
    def sample(count: int) -> Tensor:
        drawn: Tensor = flow().sample((count,))
        return drawn

    return flow, lambda x: -flow().log_prob(x).mean(), sample


def by_normflows(features: int) -> Side:
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
        drawn: Tensor = flow.sample(count)[0]
        return drawn

    return flow, flow.forward_kld, sample


SIDES: dict[str, Callable[[int], Side]] = {"ours": ours, "zuko": by_zuko, "normflows": by_normflows}


def seconds(work: Callable[[], object], device: str) -> float:
    """The time of `STEPS` calls."""
    clock = time.perf_counter if device == "cuda" else time.process_time
    began = clock()
    for _ in range(STEPS):
        work()
    if device == "cuda":
        torch.cuda.synchronize()
    return clock() - began


def training(side: Side, x: Tensor) -> Callable[[], object]:
    """The loss of a batch and its gradients."""
    module, loss_of, _ = side

    def work() -> None:
        module.zero_grad(set_to_none=True)
        loss_of(x).backward()

    return work


def compare(features: int, device: str) -> dict[str, dict[str, float]]:
    """For training and sampling, the median over turns of their time by ours, and our microseconds."""
    torch.manual_seed(0)
    x = torch.randn(BATCH, features, device=device)
    sides = {name: make(features) for name, make in SIDES.items()}
    for module, _, _ in sides.values():
        module.to(device)
    works: dict[str, dict[str, Callable[[], object]]] = {
        "training": {name: training(side, x) for name, side in sides.items()},
        "sampling": {name: partial(side[2], BATCH) for name, side in sides.items()},
    }
    found: dict[str, dict[str, float]] = {}
    for what, work in works.items():
        times: dict[str, list[float]] = {name: [] for name in work}
        for turn in range(-3, TURNS):
            for name in sorted(work, reverse=bool(turn % 2)):
                taken = seconds(work[name], device)
                if turn >= 0:  # the first ones warm up
                    times[name].append(taken)
        found[what] = {
            name: statistics.median(theirs / mine for theirs, mine in zip(times[name], times["ours"], strict=True))
            for name in ("zuko", "normflows")
        }
        found[what]["microseconds"] = 1e6 * statistics.median(times["ours"]) / STEPS
    return found


def main() -> None:
    """Print a table of ratios; exit code 1 when one is under the limit."""
    torch.set_num_threads(1)
    under = False
    print(f"{LAYERS} couplings, {DEPTH} hidden layers of {WIDTH}, batches of {BATCH}")
    for device in ("cpu", "cuda") if torch.cuda.is_available() else ("cpu",):
        print(f"{device}: their time by ours, at least {LIMIT}")
        print(f"{'':30}{'zuko':>8}{'normflows':>11}{'our µs':>9}")
        for features in (2, 16):
            for what, row in compare(features, device).items():
                under |= min(row["zuko"], row["normflows"]) < LIMIT
                name = f"{what}, {features} features"
                print(f"{name:30}{row['zuko']:8.2f}{row['normflows']:11.2f}{row['microseconds']:9.0f}")
    sys.exit(1 if under else 0)


if __name__ == "__main__":
    main()
