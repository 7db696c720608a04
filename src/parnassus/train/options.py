"""The options of every run, whatever the experiment: flags of the command line, fields of the form."""

from dataclasses import dataclass
from typing import TypeAlias

from parnassus.train.devices import Precision
from parnassus.train.parallel import Mode

Words: TypeAlias = str
"""Text that a person writes, as the kind of an experiment's setting: never the name of a file."""


@dataclass(frozen=True)
class Options:
    """How to run an experiment, whatever it is."""

    seed: int = 0  # everything random follows from it
    device: str = "auto"  # auto, cpu, cuda, cuda:N, mps
    precision: Precision = "float32"  # of products and convolutions: float32, tf32 or bf16 (autocast)
    threads: int | None = None  # CPU threads; unless told, one for a small model and all cores for a large one
    parallel: Mode = "ddp"  # under torchrun: copy the model (ddp) or shard it (fsdp)
    compile: bool = False  # compile the loss with torch.compile
    save_seconds: float = 30.0  # save a checkpoint after this many seconds
    save_steps: int = 0  # and after this many steps; 0: by the clock alone
    quiet: bool = False  # show no progress
