"""Options shared by all experiments: flags of the command line and fields of the lab's form."""

from dataclasses import dataclass
from typing import Literal

from parnassus.setting_types import DeviceName, NonNegative, Positive


@dataclass(frozen=True)
class Options:
    """Options of a run that are shared by all experiments.

    >>> Options(seed=1, device="cpu").precision
    'float32'
    """

    seed: NonNegative[int] = 0  # seed of all random numbers
    device: DeviceName = "auto"  # device to use; cuda:1: second GPU
    precision: Literal["float32", "tf32", "bf16"] = "float32"  # of matrix products and convolutions; bf16: autocast
    threads: Positive[int] | None = None  # CPU threads; by default one for small models, all cores for large ones
    parallel: Literal["ddp", "fsdp"] = "ddp"  # under torchrun: replicate the model (ddp) or shard it (fsdp)
    compile: bool = False  # compile the loss with torch.compile
    save_seconds: NonNegative[float] = 30.0  # seconds between checkpoints
    save_steps: NonNegative[int] = 0  # steps between checkpoints, in addition; 0 disables this
    quiet: bool = False  # do not show progress
