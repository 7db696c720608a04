"""Exported programs reproduce their models to 1e-5, without this package.

Programs are traced in subprocesses, since the runtime type checks of the tests cannot be traced.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from itertools import chain
from pathlib import Path
from typing import cast

import pytest
import torch

from parnassus.atlas.index import Atlas
from parnassus.attention.models.text_generator import TextGenerator
from parnassus.runs.errors import RunError
from parnassus.text import greedy
from parnassus.train.export import Program, programs_of
from parnassus.train.export_files import TOLERANCE, compare
from parnassus.train.trained import TrainedRun

USED = [entry.name for entry in Atlas().experiments.values() if entry.verbs]
KINDS = ["classifier_on_digits", "vae", "gpt", "diffusion_on_moons", "ppo", "shap_rent"]
"""A run of each kind: classifier, latent-variable model, language model, diffusion model, agent, table."""
EXPORT = """
import sys
from parnassus.cli.main import dispatch
for run, folder in zip(sys.argv[2::2], sys.argv[3::2], strict=True):
    assert dispatch(["export", run, "--format", sys.argv[1], "--out", folder]) == 0
"""
USE_TORCH = """
import sys, torch
from pathlib import Path
for folder in map(Path, sys.argv[1:]):
    for name, (inputs, expected) in torch.load(folder / "inputs.pt").items():
        found = torch.export.load(folder / f"{name}.pt2").module()(*inputs.values())
        for each, right in zip(found, expected, strict=True):
            torch.testing.assert_close(each, right, rtol=1e-5, atol=1e-5)
assert not any(name.startswith("parnassus") for name in sys.modules)
"""
USE_ONNX = """
import sys, torch, onnxruntime
from pathlib import Path
for folder in map(Path, sys.argv[1:]):
    for name, (inputs, expected) in torch.load(folder / "inputs.pt").items():
        session = onnxruntime.InferenceSession(folder / f"{name}.onnx")
        named = {key: value.numpy() for key, value in inputs.items()}
        for each, right in zip(session.run(None, named), expected, strict=True):
            torch.testing.assert_close(torch.from_numpy(each), right, rtol=1e-5, atol=1e-5)
assert not any(name.startswith("parnassus") for name in sys.modules)
"""


def python(code: str, *arguments: str) -> str:
    """Run code in another process, and return its output."""
    completed = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=900, check=False
    )
    assert completed.returncode == 0, completed.stderr
    return completed.stdout


def export_and_use(runs: Sequence[TrainedRun], form: str, root: Path) -> list[Path]:
    """Export runs and use their files without parnassus; returns the folders."""
    folders = [root / trained.folder.path.name for trained in runs]
    pairs = [(str(trained.folder.path), str(folder)) for trained, folder in zip(runs, folders, strict=True)]
    python(EXPORT, form, *chain(*pairs))
    for trained, folder in zip(runs, folders, strict=True):
        programs = programs_of(trained.model, trained)
        assert programs
        inputs = {name: program.other_inputs() for name, program in programs.items()}
        torch.save(
            {name: (inputs[name], programs[name].compute(inputs[name])) for name in programs}, folder / "inputs.pt"
        )
    python(USE_TORCH if form == "torch" else USE_ONNX, *map(str, folders))
    return folders


def test_programs_run_in_plain_torch(trained_run: Callable[..., TrainedRun], tmp_path: Path) -> None:
    runs = [trained_run(name) for name in KINDS]
    folders = export_and_use(runs, "torch", tmp_path)
    for name, trained, folder in zip(KINDS, runs, folders, strict=True):
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        assert config["experiment"] == name
        assert config["model"] == trained.folder.read_json("model.json")
    check_text_of_plain_torch(folders[KINDS.index("gpt")], runs[KINDS.index("gpt")])


def check_text_of_plain_torch(folder: Path, trained: TrainedRun) -> None:
    """Check that docs/plain_gpt.py generates the text of `parnassus sample`."""
    code = (Path(__file__).parents[2] / "docs" / "plain_gpt.py").read_text(encoding="utf-8")
    assert len([line for line in code.splitlines() if line.strip()]) <= 20
    assert "import parnassus" not in code
    assert "from parnassus" not in code
    generator = cast("TextGenerator", trained.model)
    ours = "the cat" + "".join(generator.generate("the cat", greedy, 25))
    assert python(code, str(folder), "the cat", "25").removesuffix("\n") == ours


def test_programs_run_in_onnxruntime(trained_run: Callable[..., TrainedRun], tmp_path: Path) -> None:
    export_and_use([trained_run(name) for name in ("classifier_on_digits", "vae")], "onnx", tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["torch", "onnx"])
@pytest.mark.parametrize("name", USED)
def test_every_trained_model_can_be_exported(
    name: str, form: str, trained_run: Callable[..., TrainedRun], tmp_path: Path
) -> None:
    export_and_use([trained_run(name)], form, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", USED)
def test_every_trained_model_declares_programs(name: str, trained_run: Callable[..., TrainedRun]) -> None:
    trained = trained_run(name)
    for program in programs_of(trained.model, trained).values():
        assert program.about
        outputs = program.compute(program.inputs)
        assert len(outputs) == len(program.outputs)
        assert all(len(each) == 2 for each in (*program.inputs.values(), *outputs))


def test_difference_from_the_model_is_measured_on_other_inputs() -> None:
    program = Program(lambda x: 2 * x, {"x": torch.ones(2, 3)}, ("y",), "twice the input")
    assert compare(program, lambda inputs: (2 * inputs["x"],)) == 0
    assert compare(program, lambda inputs: (2 * inputs["x"] + 1e-3,)) > TOLERANCE
    assert program.other_inputs()["x"].shape == (3, 3)
    with pytest.raises(RunError, match="must keep shapes"):
        compare(program, lambda inputs: (torch.ones(2, 3),))


def test_model_without_programs_is_reported(untrained_run: Callable[..., TrainedRun]) -> None:
    trained = untrained_run("vae", {"shape": [1, 8, 8]})
    with pytest.raises(RunError, match="no programs are declared for models of the class Linear"):
        programs_of(torch.nn.Linear(2, 2), trained)
