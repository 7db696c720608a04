"""Examples a second in training a VAE, beside pythae's trainer: at least 1.5 times as many on an accelerator.

Both sides train pythae's own default network (784-512-latent-512-784, Bernoulli decoder, Adam) in batches of 100 on
the same images, a pass over them in turn, in one process. Ours goes through Run and descend, with progress, metrics and
checkpoints; pythae's through its trainer's own training step and loader. On an accelerator ours runs a second time with
--compile, as its gpu profile is meant to; pythae's trainer has no such thing.
Run it with: python benchmarks/vae_throughput.py (the bench environment has pythae)
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

os.environ["TQDM_DISABLE"] = "1"  # before pythae is imported: its bars would be timed and printed

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

LATENT, WIDTH, BATCH, RATE = 16, 512, 100, 1e-3
LIMIT = 1.5
SMALL = 1.0
"""On a CPU both sides wait for the same matrix products; there ours must only not be slower."""


def pythae_passes(x: Tensor, folder: Path, device: str) -> Generator[float]:
    """Yield the loss of each pass of pythae's trainer."""
    config = pythae.VAEConfig(input_dim=(1, 28, 28), latent_dim=LATENT, reconstruction_loss="bce")
    training = BaseTrainerConfig(
        output_dir=str(folder),
        learning_rate=RATE,
        per_device_train_batch_size=BATCH,
        no_cuda=device == "cpu",
        optimizer_cls="Adam",
    )
    data = BaseDataset(x, torch.zeros(len(x)))
    trainer = BaseTrainer(pythae.VAE(config), train_dataset=data, training_config=training)
    trainer.prepare_training()
    epoch = 0
    while True:
        epoch += 1
        yield float(trainer.train_step(epoch))


def our_passes(x: Tensor, folder: Path, device: str, *, compiled: bool) -> Generator[float]:
    """Yield the last loss of each of our passes."""
    encoder = nn.Sequential(nn.Flatten(), nn.Linear(784, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 2 * LATENT))
    decoder = nn.Sequential(nn.Linear(LATENT, WIDTH), nn.ReLU(), nn.Linear(WIDTH, 784), nn.Unflatten(1, (1, 28, 28)))
    run = Run(RunFolder.create(folder, "throughput", {}), Options(device=device, quiet=True, compile=compiled))
    model, optimizer = run.prepare(VAE(encoder, BernoulliDecoder(decoder), LATENT), partial(Adam, lr=RATE))
    batches = Split(x.to(run.device)).batches(BATCH, 10_000_000)
    with closing(descend(run, model, optimizer, batches)) as steps:
        for step, loss in steps:
            run.log(step, loss=loss)
            if (step + 1) % batches.steps_per_epoch == 0:
                yield float(loss)


def main() -> None:
    """Print examples a second of both and the median of their ratios; exit code 1 when it is below the limit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=10, help="passes of each side that are timed")
    parser.add_argument("--rows", type=int, default=10_000, help="images a pass")
    turns, rows = vars(parser.parse_args()).values()
    logging.disable(logging.INFO)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    images = open_data("mnist_mini").train.x
    x = torch.bernoulli(images.repeat(-(-rows // len(images)), 1, 1, 1)[:rows])
    with tempfile.TemporaryDirectory() as folder:
        sides = {
            "pythae": pythae_passes(x, Path(folder) / "pythae", device),
            "ours": our_passes(x, Path(folder) / "ours", device, compiled=False),
        }
        if device == "cuda":
            sides["compiled"] = our_passes(x, Path(folder) / "compiled", device, compiled=True)
        losses = {name: next(side) for name, side in sides.items()}  # warm up
        times: dict[str, list[float]] = {name: [] for name in sides}
        for turn in range(turns):
            for name in sorted(sides, reverse=bool(turn % 2)):
                began = time.perf_counter()
                losses[name] = next(sides[name])
                times[name].append(time.perf_counter() - began)
        for side in sides.values():
            side.close()
    rates = {name: rows / statistics.median(taken) for name, taken in times.items()}
    limit = LIMIT if device == "cuda" else SMALL
    print(f"on {device}, examples a second: " + ", ".join(f"{name} {rate:,.0f}" for name, rate in rates.items()))
    print(
        f"loss after {turns + 1} passes, in nats: " + ", ".join(f"{name} {loss:.1f}" for name, loss in losses.items())
    )
    for name in [name for name in sides if name != "pythae"]:
        ratio = statistics.median(theirs / own for theirs, own in zip(times["pythae"], times[name], strict=True))
        print(f"{name} / pythae = {ratio:.2f} (at least {limit})")
    sys.exit(1 if ratio < limit else 0)


if __name__ == "__main__":
    main()
