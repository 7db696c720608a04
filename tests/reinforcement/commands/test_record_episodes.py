"""`parnassus watch`: an animation of a trained agent at the speed of its environment, and its returns."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from parnassus.cli.main import dispatch
from parnassus.reinforcement.commands import record_episodes
from parnassus.reinforcement.commands.trained_agents import find_agents
from parnassus.reinforcement.figures.classic_control import HEIGHT, WIDTH
from parnassus.runs.errors import RunError


def watched(capsys: pytest.CaptureFixture[str], root: Path, *arguments: str) -> str:
    capsys.readouterr()
    assert dispatch(["watch", *arguments, "--folder", str(root)]) == 0
    return capsys.readouterr().out


def durations(path: Path) -> list[int]:
    with Image.open(path) as film:
        assert film.format == "GIF"
        found = []
        for index in range(getattr(film, "n_frames", 1)):
            film.seek(index)
            found.append(int(film.info["duration"]))
    return found


def test_a_film_of_several_episodes_and_what_they_returned(agents: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = watched(capsys, agents, "two", "--episodes", "3")
    returns = [float(found) for found in re.findall(r"return (\d+) in", said)]
    assert said.startswith("two, CartPole-v1: learner ")
    assert len(returns) == 3
    assert [float(found) for found in re.findall(r"in (\d+) steps", said)] == returns  # a pole pays 1 a step
    assert f"mean return: {sum(returns) / 3:.6g}" in said
    assert said.splitlines()[-1] == f"animation: {agents / 'two' / 'animations' / 'seed-0.gif'}"
    shown = durations(agents / "two" / "animations" / "seed-0.gif")
    assert shown.count(record_episodes.PAUSE) == 3
    assert set(shown) == {40, record_episodes.PAUSE}  # every other of fifty steps a second
    with Image.open(agents / "two" / "animations" / "seed-0.gif") as film:
        assert film.size == (WIDTH, HEIGHT + 22)


def test_it_repeats_itself_and_learners_differ(
    agents: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ways = {
        "a": ["--learner", "1"],
        "b": ["--learner", "1"],
        "c": ["--learner", "1", "--sample-actions", "--seed", "1"],
    }
    for name, flags in ways.items():
        said = watched(capsys, agents, "two", *flags, "--out", str(tmp_path / "new" / f"{name}.gif"))
        assert "learner 1 of 2" in said
    films = {name: (tmp_path / "new" / f"{name}.gif").read_bytes() for name in ways}
    assert films["a"] == films["b"]
    assert films["a"] != films["c"]


def test_the_best_learner_is_the_one_whose_episodes_return_most(
    agents: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    player = find_agents("two", agents, device="cpu")
    best = int(player.returns(record_episodes.SELECTION_EPISODES, seed=3).mean(1).argmax())
    assert record_episodes.best_learner(player, 3) == best
    assert f"learner {best + 1} of 2" in watched(capsys, agents, "two", "--seed", "3")


def test_the_last_scene_shows_how_it_ended(agents: Path) -> None:
    """Not the first moment of the next episode, which has begun by then."""
    player = find_agents("two", agents, device="cpu")
    stage = record_episodes.tensor_renderer(player)
    torch.manual_seed(0)
    *_, before, last = record_episodes.play_episodes(player, stage, 0, 1)
    torch.manual_seed(0)
    upright = record_episodes.tensor_renderer(player).render(torch.zeros(4), None)
    assert last.is_last
    near, far = (np.abs(last.frame.astype(int) - other.astype(int)).mean() for other in (before.frame, upright))
    assert near < far


def test_gymnasium_draws_its_own_worlds(agents: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("gymnasium")
    pytest.importorskip("pygame")
    flags = ["--profile", "smoke", "--device", "cpu", "--quiet", "--folder", str(agents)]
    assert dispatch(["run", "ppo", *flags, "--use-gymnasium", "--num-learners", "1", "--name", "theirs"]) == 0
    said = watched(capsys, agents, "theirs", "--episodes", "2", "--out", str(tmp_path / "theirs"))
    shown = durations(tmp_path / "theirs.gif")
    steps = [int(found) for found in re.findall(r"in (\d+) steps", said)]
    assert shown.count(record_episodes.PAUSE) == 2
    assert len(shown) == 1 + sum(-(-own // 2) for own in steps)
    with Image.open(tmp_path / "theirs.gif") as film:
        film.seek(len(shown) - 1)
        assert len(np.unique(np.asarray(film.convert("RGB")).reshape(-1, 3), axis=0)) > 3


def test_a_pendulum_is_watched_too(agents: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "in 200 steps" in watched(capsys, agents, "one", "--out", str(tmp_path / "swing"))
    assert len(durations(tmp_path / "swing.gif")) > 100


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["two", "--episodes", "11"], "--episodes must be between 1 and 10"),
        (["two", "--learner", "3"], "--learner must be between 1 and 2 for two; got 3"),
        (["one", "--learner", "0"], "--learner must be between 1 and 1 for one; got 0"),
        (["two", "--seed", "-1"], "--seed must be between 0 and"),
    ],
)
def test_what_cannot_be_watched_is_told(agents: Path, arguments: list[str], sentence: str) -> None:
    with pytest.raises(RunError, match=sentence):
        dispatch(["watch", *arguments, "--folder", str(agents)])


def test_a_run_of_another_kind_gets_a_sentence(runs: Path) -> None:
    with pytest.raises(RunError, match="is a run of classifier_on_digits, which trains no agent"):
        dispatch(["watch", "seed-0", "--folder", str(runs)])
