"""Device, number of threads, and precision."""

from contextlib import AbstractContextManager, nullcontext
from typing import Literal

import torch
from torch import nn

from parnassus.runs.errors import RunError

Precision = Literal["float32", "tf32", "bf16"]

SMALL = 100_000
"""Models with fewer weights run on one thread, because a second one would slow them down."""


def choose_device(name: str, local_rank: int = 0) -> torch.device:
    """The device called `name`; "auto" selects an accelerator if one is available."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise RunError(f"device must be auto, cpu, cuda, cuda:N or mps; got {name!r}") from None
    if device.type == "cuda" and not torch.cuda.is_available():
        raise RunError(f"device {name!r} is not available: torch {torch.__version__} found no CUDA device")
    if device.type == "cuda" and device.index is None:
        device = torch.device("cuda", local_rank)
    if device.type == "cuda":
        torch.cuda.init()  # creates the CUDA generators
    return device


def set_threads(model: nn.Module, device: torch.device, threads: int | None, cores: int) -> None:
    """Use `threads` CPU threads; by default all `cores` for a large model on the CPU, otherwise one."""
    large = sum(parameter.numel() for parameter in model.parameters()) >= SMALL
    torch.set_num_threads(threads if threads is not None else cores if large and device.type == "cpu" else 1)


def autocast(device: torch.device, precision: Precision) -> AbstractContextManager[object]:
    """The context for computing losses: autocast to bfloat16 for "bf16", otherwise a null context."""
    if precision == "bf16":
        return torch.autocast(device.type, dtype=torch.bfloat16)
    return nullcontext()


def set_precision(precision: Precision) -> None:
    """Enable TF32 for float32 products and convolutions if `precision` is "tf32"; disable it otherwise.

    By default, torch enables TF32 for convolutions, which makes their results depend on the batch size.
    """
    torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
    torch.backends.cudnn.allow_tf32 = precision == "tf32"
