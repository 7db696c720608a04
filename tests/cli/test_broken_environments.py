"""An environment that fails during a run: error message, intact checkpoint, and resuming."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from parnassus.cli.main import dispatch, main
from parnassus.train.checkpoint import load_tree, load_weights

gymnasium: Any = pytest.importorskip("gymnasium")


class FaultyEnv(gymnasium.Env):  # type: ignore[misc]  # gymnasium is an optional dependency without types
    """Raises or returns a NaN reward in its 300th step unless `is_repaired`."""

    observation_space = gymnasium.spaces.Box(-1, 1, (3,))
    action_space = gymnasium.spaces.Discrete(2)
    is_repaired: ClassVar[bool] = False

    def __init__(self, fault: str) -> None:
        self.fault, self.count, self.age = fault, 0, 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.age = 0
        return self.np_random.random(3).astype(np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.count, self.age = self.count + 1, self.age + 1
        reward = float(action)
        if self.count == 300 and not FaultyEnv.is_repaired:
            if self.fault == "crash":
                raise ZeroDivisionError("the wheel came off")
            reward = float("nan")
        return self.np_random.random(3).astype(np.float32), reward, self.age == 37, False, {}


@pytest.fixture
def faulty_env(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(FaultyEnv, "is_repaired", False)
    for fault in ("crash", "nan"):
        gymnasium.register(f"Sick-{fault}-v0", entry_point=FaultyEnv, kwargs={"fault": fault})
    yield
    for fault in ("crash", "nan"):
        del gymnasium.registry[f"Sick-{fault}-v0"]


def error_output(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> str:
    """Run a command that exits with code 2 and return its standard error."""
    capsys.readouterr()
    monkeypatch.setattr("sys.argv", ["parnassus", *arguments])
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")  # else main sets another variable and does not reset it
    with pytest.raises(SystemExit) as exit_info:
        main()
    assert exit_info.value.code == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    return captured.err


@pytest.mark.parametrize(
    ("fault", "expected"), [("crash", "failed in step 4 of an episode"), ("nan", "returned the reward nan in step 4")]
)
@pytest.mark.usefixtures("faulty_env")
def test_failed_run_reports_the_error_and_can_be_resumed(
    fault: str, expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """300 = 8 · 37 + 4 steps, in the tenth of sixteen updates; the checkpoint is from the eighth."""
    settings = ["--num-learners", "1", "--n-eval-episodes", "2", "--total-timesteps", "1024"]
    settings += ["--n-envs", "2", "--n-steps", "32"]
    settings += ["--batch-size", "32", "--n-epochs", "2"]
    machine = ["--device", "cpu", "--quiet", "--save-steps", "4", "--folder", str(tmp_path)]
    command = ["run", "ppo", "--env", f"Sick-{fault}-v0", *settings, *machine, "--name"]
    message = error_output(capsys, monkeypatch, *command, "ill")
    assert message.count("\n") == 1
    assert message.startswith(f"parnassus: Sick-{fault}-v0 {expected}")
    assert ("the wheel came off" in message) == (fault == "crash")
    checkpoint: Any = load_tree(tmp_path / "ill" / "checkpoint.safetensors")
    assert checkpoint["kept"]["collector"]["counts"][0] == 8 * 32 * 2

    message = error_output(capsys, monkeypatch, "evaluate", "ill", "--folder", str(tmp_path))
    assert "ill has no weights yet" in message
    assert "parnassus resume ill" in message

    FaultyEnv.is_repaired = True
    assert dispatch(["resume", "ill", "--folder", str(tmp_path)]) == 0
    assert dispatch([*command, "well"]) == 0
    resumed, uninterrupted = (load_weights(tmp_path / name / "weights.safetensors") for name in ("ill", "well"))
    assert all(resumed[name].equal(uninterrupted[name]) for name in uninterrupted)
    assert dispatch(["evaluate", "ill", "well", "--n-eval-episodes", "2", "--folder", str(tmp_path)]) == 0
    assert "cannot be rendered" in error_output(capsys, monkeypatch, "watch", "ill", "--folder", str(tmp_path))
