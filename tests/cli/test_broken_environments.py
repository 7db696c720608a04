"""An environment that breaks in the middle of a run: a sentence, a checkpoint that is whole, and a run that goes on."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from parnassus.cli.main import dispatch, main
from parnassus.train.checkpoint import load_tree, load_weights

gymnasium: Any = pytest.importorskip("gymnasium")


class Sick(gymnasium.Env):  # type: ignore[misc]  # an extra, not there for the type checker
    """In its 300th step it breaks, or pays NaN, until it is healed."""

    observation_space = gymnasium.spaces.Box(-1, 1, (3,))
    action_space = gymnasium.spaces.Discrete(2)
    healed: ClassVar[bool] = False

    def __init__(self, how: str) -> None:
        self.how, self.count, self.age = how, 0, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.age = 0
        return self.np_random.random(3).astype(np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.count, self.age = self.count + 1, self.age + 1
        reward = float(action)
        if self.count == 300 and not Sick.healed:
            if self.how == "crash":
                raise ZeroDivisionError("the wheel came off")
            reward = float("nan")
        return self.np_random.random(3).astype(np.float32), reward, self.age == 37, False, {}


@pytest.fixture
def sick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(Sick, "healed", False)
    for how in ("crash", "nan"):
        gymnasium.register(f"Sick-{how}-v0", entry_point=Sick, kwargs={"how": how})
    yield
    for how in ("crash", "nan"):
        del gymnasium.registry[f"Sick-{how}-v0"]


def told(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    """What a person reads where a command cannot be carried out, once its exit code is 2."""
    capsys.readouterr()
    monkeypatch.setattr("sys.argv", ["parnassus", *arguments])
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")  # main would set another variable, and leave it
    with pytest.raises(SystemExit) as stopped:
        main()
    assert stopped.value.code == 2
    said = capsys.readouterr()
    assert said.out == ""
    return said.err


@pytest.mark.parametrize(
    ("how", "sentence"), [("crash", "failed in step 4 of an episode"), ("nan", "returned the reward nan in step 4")]
)
@pytest.mark.usefixtures("sick")
def test_a_run_that_breaks_says_why_and_goes_on(
    how: str, sentence: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """300 = 8 · 37 + 4 steps, in the tenth of sixteen updates; saved was after the eighth."""
    settings = ["--num-learners", "1", "--eval-episodes", "2", "--total-timesteps", "1024"]
    settings += ["--n-envs", "2", "--n-steps", "32"]
    settings += ["--batch-size", "32", "--n-epochs", "2"]
    machine = ["--device", "cpu", "--quiet", "--save-steps", "4", "--folder", str(tmp_path)]
    command = ["run", "ppo", "--env", f"Sick-{how}-v0", *settings, *machine, "--name"]
    said = told(capsys, monkeypatch, *command, "ill")
    assert said.count("\n") == 1
    assert said.startswith(f"parnassus: Sick-{how}-v0 {sentence}")
    assert ("the wheel came off" in said) == (how == "crash")
    checkpoint: Any = load_tree(tmp_path / "ill" / "checkpoint.safetensors")
    assert checkpoint["kept"]["collector"]["counts"][0] == 8 * 32 * 2

    said = told(capsys, monkeypatch, "evaluate", "ill", "--folder", str(tmp_path))
    assert "ill has no weights yet" in said
    assert "parnassus resume ill" in said

    Sick.healed = True
    assert dispatch(["resume", "ill", "--folder", str(tmp_path)]) == 0
    assert dispatch([*command, "well"]) == 0
    ill, well = (load_weights(tmp_path / name / "weights.safetensors") for name in ("ill", "well"))
    assert all(ill[name].equal(well[name]) for name in well)
    assert dispatch(["evaluate", "ill", "well", "--episodes", "2", "--folder", str(tmp_path)]) == 0
    assert "cannot be rendered" in told(capsys, monkeypatch, "watch", "ill", "--folder", str(tmp_path))
