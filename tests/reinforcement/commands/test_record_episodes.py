"""`parnassus watch`: an animation of a trained agent and its returns."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from parnassus.cli.main import dispatch
from parnassus.errors import UserError
from parnassus.reinforcement.commands import record_episodes
from parnassus.reinforcement.commands.trained_agents import find_agents
from parnassus.reinforcement.figures.classic_control import HEIGHT, WIDTH
from parnassus.runs.errors import RunError


def run_watch(capsys: pytest.CaptureFixture[str], root: Path, *arguments: str) -> str:
    capsys.readouterr()
    assert dispatch(["watch", *arguments, "--folder", str(root)]) == 0
    return capsys.readouterr().out


def frame_durations(path: Path) -> list[int]:
    with Image.open(path) as image:
        assert image.format == "GIF"
        durations = []
        for index in range(getattr(image, "n_frames", 1)):
            image.seek(index)
            durations.append(int(image.info["duration"]))
    return durations


def test_animation_of_several_episodes_and_their_returns(agents: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = run_watch(capsys, agents, "two", "--episodes", "3")
    returns = [float(value) for value in re.findall(r"return (\d+) in", output)]
    assert output.startswith("two, CartPole-v1: learner ")
    assert len(returns) == 3
    assert [float(value) for value in re.findall(r"in (\d+) steps", output)] == returns  # CartPole rewards 1 per step
    assert f"mean return: {sum(returns) / 3:.6g}" in output
    assert output.splitlines()[-1] == f"animation: {agents / 'two' / 'animations' / 'seed-0.gif'}"
    durations = frame_durations(agents / "two" / "animations" / "seed-0.gif")
    assert durations.count(record_episodes.PAUSE) == 3
    assert set(durations) == {40, record_episodes.PAUSE}  # every second step at 50 steps per second
    with Image.open(agents / "two" / "animations" / "seed-0.gif") as image:
        assert image.size == (WIDTH, HEIGHT + 22)


def test_animation_is_reproducible_and_depends_on_seed(
    agents: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flag_sets = {
        "a": ["--learner", "1"],
        "b": ["--learner", "1"],
        "c": ["--learner", "1", "--stochastic", "--seed", "1"],
    }
    for name, flags in flag_sets.items():
        output = run_watch(capsys, agents, "two", *flags, "--out", str(tmp_path / "new" / f"{name}.gif"))
        assert "learner 1 of 2" in output
    animations = {name: (tmp_path / "new" / f"{name}.gif").read_bytes() for name in flag_sets}
    assert animations["a"] == animations["b"]
    assert animations["a"] != animations["c"]


def test_best_learner_has_the_highest_mean_return(agents: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trained = find_agents("two", agents, device="cpu")
    best = int(trained.returns(record_episodes.SELECTION_EPISODES, seed=3).mean(1).argmax())
    assert record_episodes.best_learner(trained, 3) == best
    assert f"learner {best + 1} of 2" in run_watch(capsys, agents, "two", "--seed", "3")


def test_last_frame_shows_the_terminal_state(agents: Path) -> None:
    """It does not show the first state of the next episode."""
    trained = find_agents("two", agents, device="cpu")
    renderer = record_episodes.tensor_renderer(trained)
    torch.manual_seed(0)
    *_, before, last = record_episodes.play_episodes(trained, renderer, 0, 1)
    torch.manual_seed(0)
    initial = record_episodes.tensor_renderer(trained).render(torch.zeros(4), None)
    assert last.is_last
    distance_to_previous, distance_to_initial = (
        np.abs(last.frame.astype(int) - other.astype(int)).mean() for other in (before.frame, initial)
    )
    assert distance_to_previous < distance_to_initial


def test_gymnasium_environments_are_rendered_by_gymnasium(
    agents: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("gymnasium")
    pytest.importorskip("pygame")
    flags = ["--profile", "smoke", "--device", "cpu", "--quiet", "--folder", str(agents)]
    assert dispatch(["run", "ppo", *flags, "--use-gymnasium", "--num-learners", "1", "--name", "rendered"]) == 0
    output = run_watch(capsys, agents, "rendered", "--episodes", "2", "--out", str(tmp_path / "rendered"))
    durations = frame_durations(tmp_path / "rendered.gif")
    steps = [int(value) for value in re.findall(r"in (\d+) steps", output)]
    assert durations.count(record_episodes.PAUSE) == 2
    assert len(durations) == 1 + sum(-(-count // 2) for count in steps)
    with Image.open(tmp_path / "rendered.gif") as image:
        image.seek(len(durations) - 1)
        assert len(np.unique(np.asarray(image.convert("RGB")).reshape(-1, 3), axis=0)) > 3


def test_pendulum_is_animated(agents: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "in 200 steps" in run_watch(capsys, agents, "one", "--out", str(tmp_path / "pendulum"))
    assert len(frame_durations(tmp_path / "pendulum.gif")) > 100


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["two", "--episodes", "11"], "--episodes must be between 1 and 10"),
        (["two", "--learner", "3"], "--learner must be between 1 and 2 for two; got 3"),
        (["one", "--learner", "0"], "--learner must be at least 1; got 0"),
        (["two", "--seed", "-1"], "--seed must be at least 0; got -1"),
    ],
)
def test_invalid_arguments_raise_user_error(agents: Path, arguments: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        dispatch(["watch", *arguments, "--folder", str(agents)])


def test_run_without_agents_raises_run_error(runs: Path) -> None:
    with pytest.raises(RunError, match="is a run of classifier_on_digits, which trains no agent"):
        dispatch(["watch", "seed-0", "--folder", str(runs)])
