"""`parnassus evaluate`: the returns of trained agents in a table or as JSON, and a sentence for other runs."""

import json
from pathlib import Path
from typing import cast

import pytest
import torch

from parnassus.cli.main import dispatch
from parnassus.cli.playing import AT_ONCE, find_player
from parnassus.reinforcement.evaluation import interquartile_mean
from parnassus.runs.errors import RunError


def evaluated(capsys: pytest.CaptureFixture[str], root: Path, *arguments: str) -> list[dict[str, object]]:
    """What `parnassus evaluate … --json` prints."""
    capsys.readouterr()
    assert dispatch(["evaluate", *arguments, "--device", "cpu", "--folder", str(root), "--json"]) == 0
    return cast("list[dict[str, object]]", json.loads(capsys.readouterr().out))


def test_the_numbers_are_those_of_the_learners(agents: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (found,) = evaluated(capsys, agents, "two", "--episodes", "6")
    means = torch.tensor(cast("list[float]", found["means"]), dtype=torch.float64)
    assert len(means) == found["learners"] == 2
    assert found["mean"] == pytest.approx(float(means.mean()))
    assert found["spread"] == pytest.approx(float(means.std()))
    assert found["interquartile_mean"] == pytest.approx(float(interquartile_mean(means)))
    assert found["interval"] == pytest.approx([float(means.min()), float(means.max())])
    returns = find_player("two", agents, device="cpu").returns(6, seed=0)
    torch.testing.assert_close(returns.mean(1), means)
    assert 8 <= float(returns.min()) <= float(returns.max()) <= 500


def test_it_repeats_itself_and_seeds_and_drawing_count(agents: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ways = [[], [], ["--seed", "1"], ["--drawn"]]
    first, again, other, drawn = (
        evaluated(capsys, agents, "two", "--episodes", "20", *more)[0]["means"] for more in ways
    )
    assert first == again
    assert first != other
    assert first != drawn


def test_many_episodes_come_in_rounds(agents: Path) -> None:
    player = find_player("two", agents, device="cpu")
    assert player.returns(AT_ONCE // 2 + 1, seed=0).shape == (2, AT_ONCE // 2 + 1)


def test_several_runs_stand_in_one_table(agents: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert dispatch(["evaluate", "two", "one", "--episodes", "3", "--device", "cpu", "--folder", str(agents)]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["run", "learners", "mean", "spread", "IQM", "95", "%", "solved"]
    assert lines[0].split()[:2] == ["two", "2"]
    assert " to " in lines[0]
    assert lines[1].split() == ["CartPole-v1"]
    assert lines[2].split()[:2] == ["one", "1"]
    assert lines[2].split()[3] == "—"  # one learner has no spread
    assert "3 episodes a learner, the best action always" in " ".join(lines)


def test_runs_that_differ_in_their_seed_alone_are_also_taken_together(
    agents: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["--profile", "smoke", "--device", "cpu", "--quiet", "--folder", str(agents)]
    assert dispatch(["run", "ppo", *flags, "--seed", "1", "--name", "more"]) == 0
    first, _, other, again, together = evaluated(capsys, agents, "two", "one", "more", "two", "--episodes", "3")
    assert together["run"] == "two + more"  # each seed once
    assert together["means"] == [*cast("list[float]", first["means"]), *cast("list[float]", other["means"])]
    assert first == again
    assert together["learners"] == 4


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["two", "--episodes", "0"], "--episodes must be at least 1; got 0"),
        (["two", "--seed", "-1"], "seed must be a whole number from 0"),
        (["nobody"], "nobody"),
    ],
)
def test_what_cannot_be_played_is_told(agents: Path, arguments: list[str], sentence: str) -> None:
    with pytest.raises(RunError, match=sentence):
        dispatch(["evaluate", *arguments, "--folder", str(agents)])


def test_a_run_of_another_kind_gets_a_sentence(runs: Path) -> None:
    with pytest.raises(
        RunError, match="seed-0 is a run of classifier_on_digits, which trains no agent that could play"
    ):
        dispatch(["evaluate", "seed-0", "--folder", str(runs)])
