"""Reward thresholds and bands in reports."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from parnassus.atlas.index import Atlas
from parnassus.cli.main import dispatch
from parnassus.lab.library import Library
from parnassus.lab.pages.run_details import judge_run
from parnassus.reinforcement.experiments import ppo
from parnassus.train.trained import TrainedRun

RESULTS = {"return_mean": 500.0, "return_iqm": 500.0, "return_worst": 500.0, "solved": 1.0, "steps_per_second": 1.0}
SHORT_RUN = {"n_envs": 1, "n_steps": 512, "batch_size": 64, "num_learners": 1}  # 1,024 steps: at least one episode ends
THRESHOLDS = {"CartPole-v1": ["475"], "Acrobot-v1": ["-100"], "Pendulum-v1": []}


@pytest.mark.parametrize("env", THRESHOLDS)
def test_report_shows_the_threshold_of_its_environment(env: str, trained_run: Callable[..., TrainedRun]) -> None:
    folder, thresholds = trained_run("ppo", env=env, **SHORT_RUN).folder.path, THRESHOLDS[env]
    threshold_caption = "".join(f" Dashed: Gymnasium's reward threshold, {threshold}." for threshold in thresholds)
    caption = json.loads((folder / "story.json").read_text())["figure return"]["caption"]
    assert caption == f"Training returns of 1 learner on {env}.{threshold_caption}"
    svg = (folder / "figures" / "return.svg").read_text()
    assert re.findall(r">(475|-[0-9.]+)</text>", svg) == thresholds  # tick labels use U+2212


def test_no_return_figure_without_finished_episodes(trained_run: Callable[..., TrainedRun]) -> None:
    folder = trained_run("ppo", env="Acrobot-v1", n_envs=16, n_steps=64, batch_size=64, num_learners=1).folder.path
    assert "figure return" not in json.loads((folder / "story.json").read_text())


@pytest.mark.parametrize("name", ["a2c", "dqn", "ppo", "reinforce", "trpo"])
def test_result_descriptions_are_independent_of_the_environment(name: str) -> None:
    descriptions = " ".join(band.about for band in Atlas().experiment(name).expected.values())
    assert "475" not in descriptions
    assert "CartPole" not in descriptions
    assert "100 episodes" not in descriptions


@pytest.mark.parametrize("env", ["CartPole-v1", "Acrobot-v1"])
def test_bands_apply_only_to_the_default_environment(
    env: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ppo.Experiment, "__call__", lambda *_: RESULTS)
    flags = ["--device", "cpu", "--quiet", "--folder", str(tmp_path), "--name", "mine"]
    assert dispatch(["run", "ppo", "--env", env, *flags]) == 0
    has_bands, report = env == "CartPole-v1", (tmp_path / "mine" / "report.html").read_text()
    assert ("✓" in capsys.readouterr().out) == has_bands
    assert ("No expected ranges are shown" in report) != has_bands
    library = Library(tmp_path)
    assert judge_run(library.atlas.experiment("ppo"), library.runs()[0]).applies == has_bands
    library.close()
