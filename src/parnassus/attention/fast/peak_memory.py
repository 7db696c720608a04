"""Peak memory of a computation, beyond what is allocated when it starts.

On a CPU only a `TorchDispatchMode` sees the tensors inside composite operations; torch defines it in a module with a
private name, hence its place in `fast/`. (torch.profiler records memory too, but writes to standard error and takes
seconds to start; `torch.overrides.TorchFunctionMode` sees only the results of composite operations.)
"""

import weakref
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter


def peak_memory(compute: Callable[[], object], device: torch.device | None = None) -> int:
    """The maximum number of bytes in new tensors alive at one time during `compute()`, its result included.

    On a GPU this is the statistic of the caching allocator. On other devices every tensor returned by an operation is
    tracked until it is freed; temporary buffers inside kernels are not counted.
    """
    if device is not None and device.type == "cuda":
        torch.cuda.synchronize(device)
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        compute()
        torch.cuda.synchronize(device)
        return int(torch.cuda.max_memory_allocated(device) - before)
    tracker = _StorageTracker()
    with tracker:
        compute()
    return tracker.peak


class _StorageTracker(TorchDispatchMode):
    """Counts the bytes of live storages that were allocated within the context."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # untyped in torch
        self.peak, self._alive = 0, 0
        self._known: dict[int, int] = {}  # number of tensors per storage address

    def __torch_dispatch__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        inputs = {_address(x) for x in tree_iter((args, kwargs)) if isinstance(x, Tensor)} - set(self._known)
        result = func(*args, **(kwargs or {}))
        for tensor in tree_iter(result):
            if isinstance(tensor, Tensor) and _address(tensor) not in inputs:
                self._track(tensor)
        return result

    def _track(self, tensor: Tensor) -> None:
        address, size = _address(tensor), tensor.untyped_storage().nbytes()
        if address not in self._known:
            self._alive += size
            self.peak = max(self.peak, self._alive)
        self._known[address] = self._known.get(address, 0) + 1
        weakref.finalize(tensor, self._release, address, size).atexit = False

    def _release(self, address: int, size: int) -> None:
        self._known[address] -= 1
        if not self._known[address]:
            del self._known[address]
            self._alive -= size


def _address(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
