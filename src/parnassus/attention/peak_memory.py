"""How much memory a computation needs at once, beyond what is there when it begins."""

import weakref
from collections.abc import Callable, Mapping, Sequence

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_iter


def peak_memory(compute: Callable[[], object], device: torch.device | None = None) -> int:
    """The most bytes of new tensors that lived at one moment of `compute()`, its result included.

    On a GPU its allocator says so. Elsewhere every tensor an operation returns is watched until it dies: what a kernel
    uses within itself is not seen.
    """
    if device is not None and device.type == "cuda":
        torch.cuda.synchronize(device)
        before = torch.cuda.memory_allocated(device)
        torch.cuda.reset_peak_memory_stats(device)
        compute()
        torch.cuda.synchronize(device)
        return int(torch.cuda.max_memory_allocated(device) - before)
    watch = _Watch()
    with watch:
        compute()
    return watch.peak


class _Watch(TorchDispatchMode):
    """Counts the bytes of living storages that were made while it watched."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]  # torch has no type for it
        self.peak, self._alive = 0, 0
        self._known: dict[int, int] = {}  # tensors that share a storage, by its address

    def __torch_dispatch__(
        self,
        func: Callable[..., object],
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: Mapping[str, object] | None = None,
    ) -> object:
        given = {_address(x) for x in tree_iter((args, kwargs)) if isinstance(x, Tensor)} - set(self._known)
        result = func(*args, **(kwargs or {}))
        for tensor in tree_iter(result):
            if isinstance(tensor, Tensor) and _address(tensor) not in given:
                self._follow(tensor)
        return result

    def _follow(self, tensor: Tensor) -> None:
        address, size = _address(tensor), tensor.untyped_storage().nbytes()
        if address not in self._known:
            self._alive += size
            self.peak = max(self.peak, self._alive)
        self._known[address] = self._known.get(address, 0) + 1
        weakref.finalize(tensor, self._forget, address, size).atexit = False

    def _forget(self, address: int, size: int) -> None:
        self._known[address] -= 1
        if not self._known[address]:
            del self._known[address]
            self._alive -= size


def _address(tensor: Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
