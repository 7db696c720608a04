"""Benchmark of the training throughput of a VAE against the trainer of pythae, in examples per second.

Both implementations train the default network of pythae (784-512-latent-512-784, Bernoulli decoder, Adam) in batches of
100 on the same images, one epoch at a time alternately in one process. Parnassus trains through Run and descend, with
progress, metrics and checkpoints; pythae uses the training step and data loader of its trainer. On a GPU Parnassus is
also run with --compile, as in its gpu profile; the trainer of pythae has no equivalent.
Limits: at least 1.5 times the throughput of pythae on a GPU (compiled); on a CPU, at least the same throughput.
Run: python benchmarks/vae_throughput.py (requires pythae, part of the bench environment)
"""

import argparse
import logging
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Generator
from contextlib import closing
from functools import partial
from pathlib import Path

os.environ["TQDM_DISABLE"] = "1"  # before the import of pythae: progress bars would be timed and printed

import torch
from pythae import models as pythae
from pythae.data.datasets import BaseDataset
from pythae.trainers import BaseTrainer, BaseTrainerConfig
from torch import Tensor, nn

from parnassus.data import Split, open_data
from parnassus.latent import VAE, BernoulliDecoder
from parnassus.optim import Adam
from parnassus.runs import RunFolder
from parnassus.train import Options, Run, descend

LATENT, WIDTH, BATCH, LEARNING_RATE = 16, 512, 100, 1e-3
LIMIT = 1.5
CPU_LIMIT = 1.0
"""The limit on a CPU, where both implementations are dominated by the same matrix products."""


def pythae_epochs(x: Tensor, folder: Path, device: str) -> Generator[float]:
    """Yield the loss of each epoch of the pythae trainer."""
    config = pythae.VAEConfig(input_dim=(1, 28, 28), latent_dim=LATENT, reconstruction_loss="bce")
    training_config = BaseTrainerConfig(
        output_dir=str(folder),
        learning_rate=LEARNING_RATE,
        per_device_train_batch_size=BATCH,
        no_cuda=device == "cpu",
        optimizer_cls="Adam",
    )
    data = BaseDataset(x, torch.zeros(len(x)))
    trainer = BaseTrainer(pythae.VAE(config), train_dataset=data, training_config=training_config)
    trainer.prepare_training()
    epoch = 0
    while True:
        epoch += 1
        yield float(trainer.train_step(epoch))


def parnassus_epochs(x: Tensor, folder: Path, device: str, *, compiled: bool) -> Generator[float]:
    """Yield the last loss of each epoch of Parnassus."""
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(784, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 2 * LATENT))
    decoder = nn.Sequential(nn.Linear(LATENT, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 784), nn.Unflatten(1, (1, 28, 28)))
    run = Run(RunFolder.create(folder, "throughput", {}), Options(device=device, quiet=True, compile=compiled))
    model, optimizer = run.prepare(VAE(encoder, BernoulliDecoder(decoder), LATENT), partial(Adam, lr=LEARNING_RATE))
    batches = Split(x.to(run.device)).batches(BATCH, 10_000_000)
    with closing(descend(run, model, optimizer, batches)) as steps:
        for step, loss in steps:
            run.log(step, loss=loss)
            if (step + 1) % batches.steps_per_epoch == 0:
                yield float(loss)


def main() -> None:
    """Print the examples per second of both and the median ratios; exit with 1 if the last is below the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=10, help="number of timed epochs per implementation")
    parser.add_argument("--rows", type=int, default=10_000, help="images per epoch")
    turns, rows = vars(parser.parse_args()).values()
    logging.disable(logging.INFO)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    images = open_data("mnist_mini").train.x
    x = torch.bernoulli(images.repeat(-(-rows // len(images)), 1, 1, 1)[:rows])
    with tempfile.TemporaryDirectory() as folder:
        implementations = {
            "pythae": pythae_epochs(x, Path(folder) / "pythae", device),
            "parnassus": parnassus_epochs(x, Path(folder) / "parnassus", device, compiled=False),
        }
        if device == "cuda":
            implementations["compiled"] = parnassus_epochs(x, Path(folder) / "compiled", device, compiled=True)
        losses = {name: next(implementation) for name, implementation in implementations.items()}  # warm-up
        times: dict[str, list[float]] = {name: [] for name in implementations}
        for turn in range(turns):
            for name in sorted(implementations, reverse=bool(turn % 2)):
                start_time = time.perf_counter()
                losses[name] = next(implementations[name])
                times[name].append(time.perf_counter() - start_time)
        for implementation in implementations.values():
            implementation.close()
    rates = {name: rows / statistics.median(elapsed) for name, elapsed in times.items()}
    limit = LIMIT if device == "cuda" else CPU_LIMIT
    print(f"on {device}, examples per second: " + ", ".join(f"{name} {rate:,.0f}" for name, rate in rates.items()))
    print(f"loss in nats after {turns + 1} epochs: " + ", ".join(f"{name} {loss:.1f}" for name, loss in losses.items()))
    for name in [name for name in implementations if name != "pythae"]:
        ratio = statistics.median(baseline / own for baseline, own in zip(times["pythae"], times[name], strict=True))
        print(f"{name} / pythae = {ratio:.2f} (limit: at least {limit})")
    sys.exit(1 if ratio < limit else 0)


if __name__ == "__main__":
    main()
