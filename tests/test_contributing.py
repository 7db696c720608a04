"""The examples of CONTRIBUTING.md work."""

import re
from importlib import util
from pathlib import Path
from types import ModuleType

import pytest
import torch

from parnassus.atlas.evidence import Correction, Evidence
from parnassus.atlas.reading import read_experiment, read_marks, read_probes
from parnassus.atlas.rooms import Room, read_room
from parnassus.runs import RunFolder
from parnassus.train import Options, Run
from parnassus.widgets import Curves, evaluate_probe, read_controls

TEXT = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
EXAMPLES = dict(re.findall(r"```python\n# (\w+)\n(.*?)```", TEXT, re.DOTALL))


def import_example(name: str, kind: str, folder: Path) -> tuple[Path, ModuleType]:
    """Write the example `name` to a room's folder of this kind and import it."""
    path = folder / "room" / kind / "example.py"
    path.parent.mkdir(parents=True)
    path.write_text(EXAMPLES[name], encoding="utf-8")
    spec = util.spec_from_file_location("example", path)
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return path, module


def test_examples_are_complete() -> None:
    assert list(EXAMPLES) == ["method", "claim", "experiment", "probe"]


def test_method_example_centers_columns(tmp_path: Path) -> None:
    _, module = import_example("method", "methods", tmp_path)
    x = torch.tensor([[1.0, 5.0], [3.0, 9.0]])
    assert module.center_columns(x).tolist() == [[-1.0, -2.0], [1.0, 2.0]]


def test_claim_examples_hold(tmp_path: Path) -> None:
    path, module = import_example("claim", "claims", tmp_path)
    marks = read_marks(path)
    assert [mark.kind for mark in marks] == ["claim", "erratum"]
    for mark in marks:
        outcome = getattr(module, mark.name)()
        assert isinstance(outcome, Evidence | Correction)
        assert outcome.holds


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_experiment_example_reaches_its_expected_result(tmp_path: Path) -> None:
    path, module = import_example("experiment", "experiments", tmp_path)
    entry = read_experiment(path)
    assert entry.expected == module.expected
    assert [setting.type.limits.low for setting in entry.settings] == [1, 0]
    run = Run(RunFolder.create(tmp_path, "run", {}), Options(device="cpu", quiet=True))
    results = run.finish(module.Experiment()(run))
    run.close()
    assert entry.expected["test_accuracy"].holds(results["test_accuracy"])


def test_probe_example_returns_curves(tmp_path: Path) -> None:
    path, module = import_example("probe", "probes", tmp_path)
    (probe,) = read_probes(path)
    function = getattr(module, probe.name)
    (result,) = evaluate_probe(function, None, read_controls(function, None), {"slope": 2.0})
    assert isinstance(result, Curves)
    (y,) = (values for _, values in result.lines.values())
    assert y[50] == pytest.approx(0.5)
    assert y[60] == pytest.approx(1 / (1 + 2.718281828**-2))


def test_room_example_is_valid(tmp_path: Path) -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    (tmp_path / "recurrent").mkdir()
    path = tmp_path / "recurrent" / "room.toml"
    path.write_text(block, encoding="utf-8")
    assert isinstance(read_room(path), Room)
