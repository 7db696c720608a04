"""What a baseline leaves of the variance of the gradient, also where there is none."""

from dataclasses import dataclass
from math import isnan
from pathlib import Path

import pytest
import torch
from jaxtyping import Float, Int
from torch import Tensor

from parnassus.reinforcement.actor_critic import ActorCritic
from parnassus.reinforcement.environments import Discrete
from parnassus.reinforcement.environments.by_name import SIMULATED
from parnassus.reinforcement.environments.simulated import Move
from parnassus.reinforcement.experiments.reinforce import Experiment, expected
from parnassus.reinforcement.whole_episodes import Episodes, reinforce_weights, slope_variance
from parnassus.runs.metrics import read_metrics
from parnassus.train import Options
from parnassus.train.execute import Recipe, execute, start


@dataclass(frozen=True)
class OnlyOneWay:
    """One state and `ways` actions, of which each pays its number; over after three steps."""

    ways: int = 1
    longest: int = 3
    features = 1

    @property
    def actions(self) -> Discrete:
        return Discrete(self.ways)

    def start(self, copies: int, device: torch.device) -> Float[Tensor, "copies 1"]:
        return torch.ones(copies, 1, dtype=torch.float64, device=device)

    def observe(self, state: Float[Tensor, "copies 1"]) -> Float[Tensor, "copies 1"]:
        return state

    def move(self, state: Float[Tensor, "copies 1"], action: Int[Tensor, " copies"]) -> Move:
        return Move(state, action.double(), torch.zeros(len(state), dtype=torch.bool))


def episodes(actions: list[list[int]]) -> tuple[ActorCritic, Episodes]:
    """Two learners in two copies of one step, where action 1 pays 1; `actions` are those of each learner."""
    torch.manual_seed(0)
    model, chosen = ActorCritic(1, Discrete(2), hidden=(3,), learners=2), torch.tensor([actions])
    live = torch.ones(1, 2, 2, dtype=torch.bool)
    return model, Episodes(torch.ones(1, 2, 2, 1), chosen, chosen.float(), live)


def test_a_share_is_of_the_variance_without() -> None:
    model, seen = episodes([[0, 1], [0, 1]])
    values = torch.full((1, 2, 2), 0.5)
    found = Experiment(learners=2).shares(model, seen, values)
    left, whole = (slope_variance(model, seen, reinforce_weights(seen, own, discount=0.99)) for own in (values, 0.0))
    torch.testing.assert_close(found, left / whole)
    assert bool((found < 1).all())


def test_there_is_no_share_where_episodes_are_all_alike() -> None:
    model, seen = episodes([[1, 1], [0, 1]])
    alike, apart = Experiment(learners=2).shares(model, seen, torch.full((1, 2, 2), 0.5)).tolist()
    assert isnan(alike)
    assert 0 <= apart < 1


@pytest.mark.parametrize("ways", [1, 2])
def test_a_run_goes_on_where_nothing_can_be_measured(
    ways: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SIMULATED, "OnlyOneWay", OnlyOneWay(ways))
    experiment = Experiment(env="OnlyOneWay", learners=2, episodes=2, updates=7, critic_steps=1)
    recipe = Recipe("reinforce", "An agent", experiment, expected)
    folder = start(recipe, Options(), tmp_path)
    numbers = execute(recipe, Options(quiet=True, device="cpu"), folder)
    recorded = [name for name in read_metrics(folder.path / "metrics.csv") if name.startswith("share/")]
    assert recorded == ([] if ways == 1 else ["share/1", "share/2"])
    assert (numbers["variance_share"] == 1) == (ways == 1)
    assert (folder.path / "figures" / "share.svg").exists() == (ways == 2)
