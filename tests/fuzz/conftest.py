"""A sandbox with finished runs, and no network and no browser for the commands of the fuzz tests."""

import socket
import webbrowser
from pathlib import Path

import pytest

from fuzz.driver import Sandbox
from parnassus.cli.main import dispatch

FINISHED = {
    "classifier": ["classifier_on_digits", "--epochs", "1"],
    "text": ["gpt", "--steps", "2"],
    "points": ["gan_on_ring", "--steps", "2"],
    "table": ["shap_breast_cancer", "--steps", "2"],
    "agent": ["ppo", "--total-timesteps", "512"],
}
"""Names of the runs in the folder `runs` of the sandbox, with their experiments and settings."""


@pytest.fixture(scope="session")
def fuzz_sandbox(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """A sandbox whose working directory has a folder `runs` with finished runs, and files for predictions."""
    sandbox = Sandbox(tmp_path_factory.mktemp("fuzz")).create()
    root = sandbox.work / "runs"
    for name, experiment in FINISHED.items():
        flags = ["--profile", "smoke", "--device", "cpu", "--quiet", "--folder", str(root), "--name", name]
        assert dispatch(["run", *experiment, *flags]) == 0
    _write_inputs(sandbox.work)
    return sandbox


def _write_inputs(work: Path) -> None:
    import numpy as np
    from PIL import Image
    from sklearn.datasets import load_breast_cancer, load_digits

    Image.fromarray((load_digits().images[0] * 15.9).astype(np.uint8)).save(work / "digit.png")
    cancer = load_breast_cancer()
    rows = [",".join(cancer.feature_names), *(",".join(map(str, row)) for row in cancer.data[:3])]
    (work / "rows.csv").write_text("\n".join(rows) + "\n")
    (work / "empty.txt").touch()


@pytest.fixture(autouse=True)
def isolated_commands(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No connections, no browser, an empty data directory, and no changes of the environment by commands."""
    monkeypatch.setenv("PARNASSUS_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("OMP_WAIT_POLICY", "passive")  # else main sets another variable and does not reset it
    monkeypatch.delenv("PARNASSUS_DEBUG", raising=False)
    monkeypatch.setattr(webbrowser, "open", lambda url: True)
    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(socket.socket, name, _refuse)
    for name in ("create_connection", "getaddrinfo"):
        monkeypatch.setattr(socket, name, _refuse)


def _refuse(*_: object, **__: object) -> None:
    raise OSError("no network in tests")
