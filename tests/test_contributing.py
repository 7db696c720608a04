"""The examples of CONTRIBUTING.md work."""

import re
from importlib import util
from pathlib import Path
from types import ModuleType

import pytest
import torch

from parnassus.atlas.evidence import Correction, Evidence
from parnassus.atlas.reading import read_commands, read_experiment, read_marks, read_probes
from parnassus.atlas.rooms import Room, read_room
from parnassus.data import load_digits
from parnassus.latent import VAE, BernoulliDecoder, mlp_decoder, mlp_encoder
from parnassus.runs import RunFolder
from parnassus.train import Options, Run
from parnassus.train.sample_predict_evaluate import find_inputs
from parnassus.train.trained import TrainedRun
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
    assert set(EXAMPLES) == {
        *("method", "claim", "experiment", "schedule", "trained_run", "probe"),
        *("control", "control_view", "data_set", "figures", "commands"),
    }


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


def test_schedule_example_reaches_and_leaves_its_peak(tmp_path: Path) -> None:
    _, module = import_example("schedule", "experiments", tmp_path)
    run = Run(RunFolder.create(tmp_path, "run", {}), Options(device="cpu", quiet=True))
    module.train(run, VAE(mlp_encoder((1, 8, 8), 4), BernoulliDecoder(mlp_decoder(2, (1, 8, 8))), latent_dim=2), 20)
    rates = run.curve("learning_rate")[1]
    run.close()
    assert len(rates) == 20
    assert max(rates) == pytest.approx(1e-2, rel=0.02)
    assert rates[-1] < 1e-3


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_trained_run_examples_sample_predict_and_evaluate(tmp_path: Path) -> None:
    """Both examples in one file, as in an experiment."""
    EXAMPLES["both"] = EXAMPLES["experiment"] + EXAMPLES["trained_run"]
    path, module = import_example("both", "experiments", tmp_path)
    assert read_experiment(path).verbs == ("sample", "predict", "evaluate")
    folder = RunFolder.create(tmp_path, "run", {})
    run = Run(folder, Options(device="cpu", quiet=True))
    run.finish(module.Experiment(steps=300)(run))
    run.close()
    trained = TrainedRun(folder, module.Experiment())
    images = load_digits().test.x[:40].flatten(1)
    (tmp_path / "images.txt").write_text("\n".join(" ".join(map(str, row)) for row in images.tolist()))
    (single,) = inputs = find_inputs([str(tmp_path / "images.txt")], module.Predict.suffixes)
    rows = list(module.Predict()(trained, inputs))
    assert rows == [{"input": single.name, "digit": digit} for digit in trained.model(images).argmax(1).tolist()]
    (row,) = module.Evaluate()([trained])
    assert row["run"] == folder.path.name
    assert row["accuracy"] > 0.85
    vae = VAE(mlp_encoder((1, 8, 8), 4), BernoulliDecoder(mlp_decoder(2, (1, 8, 8))), latent_dim=2)
    assert module.Sample(num_samples=5)(vae).shape == (5, 1, 8, 8)


def test_probe_example_returns_curves(tmp_path: Path) -> None:
    path, module = import_example("probe", "probes", tmp_path)
    (probe,) = read_probes(path)
    function = getattr(module, probe.name)
    (result,) = evaluate_probe(function, None, read_controls(function, None), {"slope": 2.0})
    assert isinstance(result, Curves)
    (y,) = (values for _, values in result.lines.values())
    assert y[50] == pytest.approx(0.5)
    assert y[60] == pytest.approx(1 / (1 + 2.718281828**-2))


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_control_example_is_read_and_shown(tmp_path: Path) -> None:
    pytest.importorskip("nicegui")
    from nicegui import ui
    from nicegui.client import Client

    _, controls = import_example("control", "widgets", tmp_path)
    _, views = import_example("control_view", "lab", tmp_path)
    checkbox, changes = controls.Checkbox("centred"), list[bool]()
    assert checkbox.read(checkbox.initial_value(1)) is True
    with pytest.raises(ValueError, match="centred must be true or false; got 1"):
        checkbox.read(1)
    with Client(ui.page("/")) as client:
        assert views.CheckboxView.kind == checkbox.kind
        views.CheckboxView(checkbox.to_plain(initial=True), changes.append)
    (shown,) = (element for element in client.elements.values() if isinstance(element, ui.checkbox))
    assert shown.value is True
    shown.set_value(False)
    assert changes == [False]


def test_data_set_example_is_balanced(tmp_path: Path) -> None:
    _, module = import_example("data_set", "data", tmp_path)
    data = module.parity()
    assert (len(data.train), len(data.test), data.shape) == (819, 205, (10,))
    assert len(torch.cat([data.train.x, data.test.x]).unique(dim=0)) == 1_024
    assert torch.equal(data.test.y, data.test.x.sum(1).long() % 2)


def test_figure_example_shows_descending_eigenvalues(tmp_path: Path) -> None:
    _, module = import_example("figures", "methods", tmp_path)
    (ax,) = module.plot_spectrum(torch.tensor([1.0, 100.0, 10.0])).axes
    assert ax.lines[0].get_xydata().tolist() == [[1.0, 100.0], [2.0, 10.0], [3.0, 1.0]]


def test_command_example_prints_the_entropy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, module = import_example("commands", "commands", tmp_path)
    (command,) = read_commands(path)
    assert command.verb == "entropy"
    (tmp_path / "bytes").write_bytes(bytes(range(4)) * 10)
    assert getattr(module, command.verb)(["--file", str(tmp_path / "bytes")]) == 0
    assert capsys.readouterr().out == "2.000 bits per byte\n"


def test_room_example_is_valid(tmp_path: Path) -> None:
    (block,) = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
    (tmp_path / "recurrent").mkdir()
    path = tmp_path / "recurrent" / "room.toml"
    path.write_text(block, encoding="utf-8")
    assert isinstance(read_room(path), Room)
