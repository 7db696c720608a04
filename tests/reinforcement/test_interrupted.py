"""A run of an agent that is interrupted in the middle of its episodes goes on as if nothing had happened."""

from pathlib import Path

import pytest

from parnassus.reinforcement.experiments import a2c, ppo, reinforce, trpo
from parnassus.runs import Interrupted, RunFolder
from parnassus.runs.metrics import read_metrics
from parnassus.train import Options, Run
from parnassus.train.checkpoint import load_weights
from parnassus.train.execute import Recipe, execute, start

QUIET = Options(quiet=True, device="cpu")


def finished(recipe: Recipe, folder: RunFolder, monkeypatch: pytest.MonkeyPatch, stop: int | None) -> RunFolder:
    """The run, stopped once after so many calls of `record` if asked for, then resumed."""
    if stop is not None:
        record, calls = Run.record, []

        def recorded(run: Run, step: int, **metrics: float) -> None:
            record(run, step, **metrics)
            calls.append(step)
            if len(calls) == stop:
                run.stop_soon()

        with monkeypatch.context() as patch:
            patch.setattr(Run, "record", recorded)
            with pytest.raises(Interrupted):
                execute(recipe, QUIET, folder)
    execute(recipe, QUIET, folder)
    return folder


def goes_on(recipe: Recipe, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Interrupted or not, the weights and what was recorded are the same."""
    whole, again = (
        finished(recipe, start(recipe, QUIET, folder / name), monkeypatch, stop)
        for name, stop in (("whole", None), ("again", 2))
    )
    first, second = (load_weights(run.path / "weights.safetensors") for run in (whole, again))
    assert all(first[name].equal(second[name]) for name in first)
    curves = [read_metrics(run.path / "metrics.csv") for run in (whole, again)]
    assert curves[0] == curves[1]


@pytest.mark.parametrize(
    "env",
    [
        {},
        {"env": "Pendulum-v1", "copies": 4, "horizon": 40, "batch": 64, "budget": 640},
        {"gym": True},
        {"gym": True, "workers": 2},
    ],
)
def test_ppo_goes_on_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, env: dict[str, object]) -> None:
    if env.get("gym"):
        pytest.importorskip("gymnasium")
    experiment = ppo.Experiment(learners=2, episodes=2, **{"budget": 1_024, **env})  # type: ignore[arg-type]  # of several kinds
    goes_on(Recipe("ppo", "PPO", experiment, {}), tmp_path, monkeypatch)


ACTORS: dict[str, a2c.Experiment | trpo.Experiment | reinforce.Experiment] = {
    "a2c": a2c.Experiment(learners=2, episodes=2, budget=400),
    "a2c, scaled": a2c.Experiment("Pendulum-v1", learners=2, episodes=2, budget=640),
    "trpo": trpo.Experiment(learners=2, episodes=2, budget=512, copies=4, horizon=32, epochs=2),
    "trpo, vectors": trpo.Experiment("Pendulum-v1", learners=2, episodes=2, budget=512, copies=4, horizon=32, epochs=2),
    "reinforce": reinforce.Experiment(learners=2, episodes=2, updates=4, copies=2),
}


@pytest.mark.parametrize("name", ACTORS)
def test_other_actors_too(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on(Recipe(name.partition(",")[0], name, ACTORS[name], {}), tmp_path, monkeypatch)
