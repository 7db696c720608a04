"""Distributed training with DDP or FSDP2 under `torchrun`; on a single device none of it is used.

Both intercept only `forward`, so the other methods of a model are routed through it.
"""

import os
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, cast, runtime_checkable

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.optim import Optimizer

from parnassus.train.peers import publish_process

Mode = Literal["ddp", "fsdp"]
METHODS = ("loss", "log_prob", "sample")
"""Methods of models that are called under FSDP, besides `forward`."""
Value = TypeVar("Value")


class World(NamedTuple):
    """This process among its peers."""

    rank: int
    size: int
    local_rank: int


@runtime_checkable
class Stateful(Protocol):
    """An object whose state can be saved and restored."""

    def state_dict(self) -> dict[str, object]: ...

    def load_state_dict(self, state: dict[str, object], /) -> object: ...


def world_from_environment() -> World:
    """The rank, world size and local rank set by torchrun; without torchrun, those of a single process."""
    rank, size, local_rank = (int(os.environ.get(name, default)) for name, default in _VARIABLES)
    return World(rank, size, local_rank)


def is_under_torchrun() -> bool:
    """Whether torchrun started this process."""
    return "RANK" in os.environ


_VARIABLES = (("RANK", 0), ("WORLD_SIZE", 1), ("LOCAL_RANK", 0))


def join(device: torch.device) -> None:
    """Join the process group that torchrun's environment describes."""
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if not dist.is_initialized():
        dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
        publish_process()


def barrier() -> None:
    """Wait for all processes.

    The last collective call must not involve a tensor: gloo's threads release their tensors shortly after the call
    returns, and a release during the shutdown of Python aborts the process.
    """
    dist.barrier()


def leave() -> None:
    if dist.is_initialized():
        dist.destroy_process_group()


class ForwardDispatcher(nn.Module):
    """Call any method of a module through `forward`, the only method that DDP intercepts."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, method: str, *arguments: object) -> object:
        return getattr(self.inner, method)(*arguments)


class Replica(nn.Module):
    """A module under DDP that keeps its methods; checkpoints contain the inner module."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner
        self.ddp = [nn.parallel.DistributedDataParallel(ForwardDispatcher(inner))]  # no submodule

    def forward(self, *arguments: object) -> object:
        return self.ddp[0]("forward", *arguments)

    def loss(self, *arguments: object) -> object:
        return self.ddp[0]("loss", *arguments)

    def __getattr__(self, name: str) -> Tensor | nn.Module:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return cast("Tensor", getattr(super().__getattr__("inner"), name))


def distribute(model: nn.Module, mode: Mode) -> nn.Module:
    """Wrap a model that is on its device for distributed training."""
    if mode == "ddp":
        return Replica(model)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method  # 0.5 s of imports

    device = next(model.parameters()).device  # passed explicitly: FSDP defaults to a GPU
    mesh = init_device_mesh(device.type, (dist.get_world_size(),))
    for child in model.children():
        if sum(parameter.numel() for parameter in child.parameters()) > 0 and not isinstance(child, nn.ModuleList):
            fully_shard(child, mesh=mesh)
    fully_shard(model, mesh=mesh)
    for method in METHODS:
        if hasattr(model, method):
            register_fsdp_forward_method(model, method)
    return model


def model_state(model: nn.Module, mode: Mode | None) -> dict[str, object]:
    """The full state of the model; a collective call under FSDP."""
    if mode == "fsdp":
        from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict

        return dict(get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True)))
    return dict(unwrap(model).state_dict())


def load_model_state(model: nn.Module, state: dict[str, object], mode: Mode | None) -> None:
    if mode == "fsdp":
        from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict

        set_model_state_dict(model, cast("dict[str, Any]", state), options=StateDictOptions(full_state_dict=True))
    else:
        unwrap(model).load_state_dict(state)


def optimizer_state(model: nn.Module, optimizer: Optimizer, mode: Mode | None) -> dict[str, object]:
    """The full state in the format of `Optimizer.state_dict`, which does not depend on `mode`; collective under FSDP.

    FSDP names the parameters; its state is complete on the first process only, and empty on the others.
    """
    if mode != "fsdp":
        return optimizer.state_dict()
    from torch.distributed.checkpoint.state_dict import StateDictOptions, get_optimizer_state_dict

    options = StateDictOptions(full_state_dict=True, cpu_offload=True)
    state = get_optimizer_state_dict(model, optimizer, options=options)
    return _rename_parameters(state, {name: index for index, name in enumerate(_names(model, optimizer))})


def load_optimizer_state(model: nn.Module, optimizer: Optimizer, state: dict[str, object], mode: Mode | None) -> None:
    if mode != "fsdp":
        optimizer.load_state_dict(state)
        return
    from torch.distributed.checkpoint.state_dict import StateDictOptions, set_optimizer_state_dict

    named = _rename_parameters(state, dict(enumerate(_names(model, optimizer))))
    set_optimizer_state_dict(model, optimizer, named, options=StateDictOptions(full_state_dict=True))


def _names(model: nn.Module, optimizer: Optimizer) -> list[str]:
    """The names of the parameters in the order of the optimiser, which numbers them in its state."""
    names = {parameter: name for name, parameter in model.named_parameters()}
    return [names[parameter] for group in optimizer.param_groups for parameter in group["params"]]


def _rename_parameters(state: Mapping[str, Any], new: Mapping[Any, str | int]) -> dict[str, Any]:
    if not state:
        return {}
    return {
        "state": {new[key]: value for key, value in state["state"].items()},
        "param_groups": [{**group, "params": [new[key] for key in group["params"]]} for group in state["param_groups"]],
    }


def unwrap(model: nn.Module) -> nn.Module:
    """The module without its wrapper."""
    return model.inner if isinstance(model, Replica) else model


def mean_over_ranks(values: Tensor) -> Tensor:
    """The mean of the values over all processes."""
    dist.all_reduce(values)
    return values / dist.get_world_size()


def any_rank(flag: bool, device: torch.device) -> bool:  # noqa: FBT001 - the flag is the datum
    """Whether `flag` is set on any process; all processes must save at the same step."""
    vote = torch.tensor(float(flag), device=device)
    dist.all_reduce(vote, op=dist.ReduceOp.MAX)
    return bool(vote.item())


def broadcast_from_first(value: Value) -> Value:
    """The value of the first process, on every process."""
    box = [value]
    dist.broadcast_object_list(box, src=0)
    return box[0]
