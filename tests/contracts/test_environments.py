"""The contract of environments: those implemented in tensors, by their registry."""

import torch
from torch import Tensor

from parnassus.reinforcement import Environments, make_environments
from parnassus.reinforcement.environments.interface import Continuous
from parnassus.reinforcement.environments.make import TENSOR_ENVIRONMENTS

from .checks import Offences, check_equal, other_default_device, unchanged, unchanged_globals, without_shape_checks

COUNT = 5


def make(name: str) -> Environments:
    return make_environments(name, COUNT)


def actions(environments: Environments, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    if isinstance(environments.actions, Continuous):
        return 2 * torch.rand(COUNT, environments.actions.count, generator=generator) - 1
    return torch.randint(environments.actions.count, (COUNT,), generator=generator)


def trajectory(environments: Environments, seeds: range) -> list[object]:
    return [tuple(environments.step(actions(environments, seed))) for seed in seeds]


def test_observations_and_rewards_have_the_declared_shapes_and_the_device_of_the_environments() -> None:
    offences = Offences()
    for name in TENSOR_ENVIRONMENTS:
        environments = make(name)
        with offences.record(name, "protocol"):
            assert isinstance(environments, Environments), "lacks a method of Environments"
        with offences.record(name, "shapes"):
            action = actions(environments, 0)
            with other_default_device(), unchanged(action):
                first, step = environments.reset(), environments.step(action)
            expected = (COUNT, environments.features)
            assert first.shape == step.observation.shape == step.next_observations.shape == expected, "observations"
            assert step.reward.shape == step.terminated.shape == step.truncated.shape == (COUNT,), "rewards and ends"
            assert first.dtype == step.observation.dtype == step.reward.dtype == torch.float32, f"{step.reward.dtype}"
            assert step.terminated.dtype == step.truncated.dtype == torch.bool, f"{step.terminated.dtype}"
            assert all(each.device.type == "cpu" for each in (first, *step)), "not the requested device"
    offences.check()


def test_seeds_and_states_determine_the_trajectory() -> None:
    offences = Offences()
    for name in TENSOR_ENVIRONMENTS:
        with offences.record(name, "seed"), without_shape_checks(), unchanged_globals(torch_generator=False):
            paths = []
            for _ in range(2):
                torch.manual_seed(0)
                environments = make(name)
                paths.append([environments.reset(), *trajectory(environments, range(300))])
            check_equal(*paths)
        with offences.record(name, "state_dict"), without_shape_checks():
            environments, restored = make(name), make(name)
            environments.reset()
            trajectory(environments, range(150))
            state = {
                key: each.clone() if isinstance(each, Tensor) else each
                for key, each in environments.state_dict().items()
            }
            restored.load_state_dict(state)
            torch.manual_seed(1)
            expected = trajectory(environments, range(150, 400))
            torch.manual_seed(1)
            check_equal(trajectory(restored, range(150, 400)), expected)
    offences.check()
