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
        {"env": "Pendulum-v1", "n_envs": 4, "n_steps": 40, "batch_size": 64, "total_timesteps": 640},
        {"use_gymnasium": True},
        {"use_gymnasium": True, "num_workers": 2},
    ],
)
def test_ppo_goes_on_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, env: dict[str, object]) -> None:
    if env.get("use_gymnasium"):
        pytest.importorskip("gymnasium")
    experiment = ppo.Experiment(num_learners=2, eval_episodes=2, **{"total_timesteps": 1_024, **env})  # type: ignore[arg-type]  # of several kinds
    goes_on(Recipe("ppo", "PPO", experiment, {}), tmp_path, monkeypatch)


ACTORS: dict[str, a2c.Experiment | trpo.Experiment | reinforce.Experiment] = {
    "a2c": a2c.Experiment(num_learners=2, eval_episodes=2, total_timesteps=400),
    "a2c, scaled": a2c.Experiment("Pendulum-v1", num_learners=2, eval_episodes=2, total_timesteps=640),
    "trpo": trpo.Experiment(num_learners=2, eval_episodes=2, total_timesteps=512, n_envs=4, n_steps=32, n_epochs=2),
    "trpo, vectors": trpo.Experiment(
        "Pendulum-v1", num_learners=2, eval_episodes=2, total_timesteps=512, n_envs=4, n_steps=32, n_epochs=2
    ),
    "reinforce": reinforce.Experiment(num_learners=2, eval_episodes=2, num_updates=4, n_envs=2),
}


@pytest.mark.parametrize("name", ACTORS)
def test_other_actors_too(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on(Recipe(name.partition(",")[0], name, ACTORS[name], {}), tmp_path, monkeypatch)
