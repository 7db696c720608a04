"""Resuming interrupted runs of agents."""

from pathlib import Path

import pytest

from parnassus.reinforcement.experiments import a2c, ppo, reinforce, trpo
from parnassus.runs import RunFolder, RunInterrupted
from parnassus.runs.metrics import read_metrics
from parnassus.train import Options, Run
from parnassus.train.checkpoint import load_weights
from parnassus.train.execute import Recipe, execute, start

OPTIONS = Options(quiet=True, device="cpu")


def run_to_end(recipe: Recipe, folder: RunFolder, monkeypatch: pytest.MonkeyPatch, stop: int | None) -> RunFolder:
    """Execute the run, interrupted once after `stop` calls of `record` unless it is None."""
    if stop is not None:
        record, calls = Run.record, []

        def stopping_record(run: Run, step: int, **metrics: float) -> None:
            record(run, step, **metrics)
            calls.append(step)
            if len(calls) == stop:
                run.stop_soon()

        with monkeypatch.context() as patch:
            patch.setattr(Run, "record", stopping_record)
            with pytest.raises(RunInterrupted):
                execute(recipe, OPTIONS, folder)
    execute(recipe, OPTIONS, folder)
    return folder


def check_resume(recipe: Recipe, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights and metrics do not depend on an interruption."""
    uninterrupted, resumed = (
        run_to_end(recipe, start(recipe, OPTIONS, folder / name), monkeypatch, stop)
        for name, stop in (("uninterrupted", None), ("resumed", 2))
    )
    first, second = (load_weights(run.path / "weights.safetensors") for run in (uninterrupted, resumed))
    assert all(first[name].equal(second[name]) for name in first)
    metrics = [read_metrics(run.path / "metrics.csv") for run in (uninterrupted, resumed)]
    assert metrics[0] == metrics[1]


@pytest.mark.parametrize(
    "overrides",
    [
        {},
        {"env": "Pendulum-v1", "n_envs": 4, "n_steps": 40, "batch_size": 64, "total_timesteps": 640},
        {"use_gymnasium": True},
        {"use_gymnasium": True, "num_workers": 2},
    ],
)
def test_ppo_resume_is_bit_identical(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, overrides: dict[str, object]
) -> None:
    if overrides.get("use_gymnasium"):
        pytest.importorskip("gymnasium")
    experiment = ppo.Experiment(num_learners=2, n_eval_episodes=2, **{"total_timesteps": 1_024, **overrides})  # type: ignore[arg-type]  # values of several types
    check_resume(Recipe("ppo", "PPO", experiment, {}), tmp_path, monkeypatch)


EXPERIMENTS: dict[str, a2c.Experiment | trpo.Experiment | reinforce.Experiment] = {
    "a2c": a2c.Experiment(num_learners=2, n_eval_episodes=2, total_timesteps=400),
    "a2c, scaled": a2c.Experiment("Pendulum-v1", num_learners=2, n_eval_episodes=2, total_timesteps=640),
    "trpo": trpo.Experiment(num_learners=2, n_eval_episodes=2, total_timesteps=512, n_envs=4, n_steps=32, n_epochs=2),
    "trpo, vectors": trpo.Experiment(
        "Pendulum-v1", num_learners=2, n_eval_episodes=2, total_timesteps=512, n_envs=4, n_steps=32, n_epochs=2
    ),
    "reinforce": reinforce.Experiment(num_learners=2, n_eval_episodes=2, num_updates=4, n_envs=2),
}


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_resume_is_bit_identical(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_resume(Recipe(name.partition(",")[0], name, EXPERIMENTS[name], {}), tmp_path, monkeypatch)
