"""What a report says of a goal is true of its environment, and CartPole's bands judge CartPole alone."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from parnassus.atlas.index import Atlas
from parnassus.cli.main import dispatch
from parnassus.lab.library import Library
from parnassus.lab.pages.result_cards import has_defaults
from parnassus.reinforcement.experiments import ppo
from parnassus.train.trained import Trained

REACHED = {"return_mean": 500.0, "return_iqm": 500.0, "return_worst": 500.0, "solved": 1.0, "steps_per_second": 1.0}
SHORT = {"n_envs": 1, "n_steps": 512, "batch_size": 64, "num_learners": 1}  # 1,024 steps: at least one episode ends
GOALS = {"CartPole-v1": ["475"], "Acrobot-v1": ["-100"], "Pendulum-v1": []}


@pytest.mark.parametrize("env", GOALS)
def test_a_report_tells_the_goal_of_its_own_environment(env: str, trained_run: Callable[..., Trained]) -> None:
    folder, goal = trained_run("ppo", env=env, **SHORT).folder.path, GOALS[env]
    told = "".join(f" Dashed: gymnasium's reward threshold, {each}." for each in goal)
    caption = json.loads((folder / "story.json").read_text())["figure return"]["caption"]
    assert caption == f"Training returns of 1 learner on {env}.{told}"
    drawn = (folder / "figures" / "return.svg").read_text()
    assert re.findall(r">(475|-[0-9.]+)</text>", drawn) == goal  # numbers at the axes have a true minus


def test_no_curve_is_drawn_where_no_episode_has_ended(trained_run: Callable[..., Trained]) -> None:
    folder = trained_run("ppo", env="Acrobot-v1", n_envs=16, n_steps=64, batch_size=64, num_learners=1).folder.path
    assert "figure return" not in json.loads((folder / "story.json").read_text())


@pytest.mark.parametrize("name", ["a2c", "dqn", "ppo", "reinforce", "trpo"])
def test_what_a_number_is_holds_in_every_environment(name: str) -> None:
    told = " ".join(band.about for band in Atlas().experiment(name).expected.values())
    assert "475" not in told
    assert "CartPole" not in told
    assert "100 episodes" not in told


@pytest.mark.parametrize("env", ["CartPole-v1", "Acrobot-v1"])
def test_bands_judge_the_environment_they_were_measured_in(
    env: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(ppo.Experiment, "__call__", lambda *_: REACHED)
    flags = ["--device", "cpu", "--quiet", "--folder", str(tmp_path), "--name", "mine"]
    assert dispatch(["run", "ppo", "--env", env, *flags]) == 0
    judged, report = env == "CartPole-v1", (tmp_path / "mine" / "report.html").read_text()
    assert ("✓" in capsys.readouterr().out) == judged
    assert ("so none is shown for this run" in report) != judged
    library = Library(tmp_path)
    assert has_defaults(library.atlas.experiment("ppo"), library.runs()[0]) == judged
    library.close()
