"""Lost processes under torchrun: a failed collective call becomes one sentence on every remaining process.

Errors of gloo are plain RuntimeErrors, so their cause is found by asking the other processes through the store of
torchrun: each process publishes its id when it joins, and its error when it fails.
"""

import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import timedelta
from socket import gethostname
from typing import TYPE_CHECKING

import torch.distributed as dist

from parnassus.runs.errors import RunError
from parnassus.runs.folder import RunFolder
from parnassus.runs.lookup import command_for

if TYPE_CHECKING:
    from torch.distributed.distributed_c10d import PrefixStore

PATIENCE = 5.0
"""Seconds to wait for the errors of the other processes."""


def publish_process() -> None:
    """Publish the host and the id of this process."""
    _connect().set(f"process/{dist.get_rank()}", f"{gethostname()} {os.getpid()}")


@contextmanager
def explain_lost_processes(folder: RunFolder) -> Iterator[None]:
    """Raise a RunError instead of a RuntimeError if another process failed first or was lost.

    An error that began on this process is raised unchanged, up to `PATIENCE` seconds later.
    """
    try:
        yield
    except RuntimeError as error:
        if not dist.is_initialized():
            raise
        before = signal.signal(signal.SIGTERM, signal.SIG_IGN)  # torchrun ends the others; this one says why first
        reason = _find_reason(error)
        if reason is None:
            signal.signal(signal.SIGTERM, before)
            raise
        raise RunError(f"{reason}; continue from the last checkpoint: {command_for(folder, 'resume')}") from None
    except Exception as error:
        if dist.is_initialized():
            with suppress(dist.DistError):  # torchrun has ended
                _publish_error(error)
        raise


def _find_reason(error: RuntimeError) -> str | None:
    """What happened on another process before this error; None if the error began on this one."""
    size, me = dist.get_world_size(), dist.get_rank()
    others = [rank for rank in range(size) if rank != me]
    try:
        _publish_error(error)
        store, deadline = _connect(), time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            silent = [rank for rank in others if not store.check([f"error/{rank}"])]
            lost = [rank for rank in silent if _is_gone(store.get(f"process/{rank}").decode())]
            if lost:
                return f"process {lost[0]} of {size} was lost"
            if not silent:
                break
            time.sleep(0.05)
        first = int(store.get("first"))
        if first == me:
            return None if not isinstance(error, dist.DistError) else "the connection to the other processes was lost"
        return f"process {first} of {size} failed: {store.get(f'error/{first}').decode()}"
    except (dist.DistError, KeyboardInterrupt):  # torchrun has ended, or ends this process too
        return f"the connection of process {me} of {size} to the others was lost"


def _publish_error(error: Exception) -> None:
    store = _connect()
    text = str(error).strip().splitlines()
    store.set(f"error/{dist.get_rank()}", text[0] if text else type(error).__name__)
    store.compare_set("first", "", str(dist.get_rank()))


def _connect() -> "PrefixStore":
    """The store that torchrun keeps for its processes, with a prefix for this attempt."""
    from torch.distributed import PrefixStore, TCPStore  # type: ignore[attr-defined]  # documented, not in __all__

    address, port = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    store = TCPStore(address, port, is_master=False, timeout=timedelta(seconds=PATIENCE))
    return PrefixStore(f"parnassus {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}", store)


def _is_gone(process: str) -> bool:
    """Whether a process of this host has ended; False for other hosts."""
    host, number = process.split()
    if host != gethostname():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    return False
