"""The model of `parnassus explain`: a trained run, or a predictor in your own module or file."""

import importlib
import importlib.util
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path
from typing import Protocol, runtime_checkable

from torch import Tensor, nn

from parnassus.data.preparation.table_preparation import TablePreparation
from parnassus.runs.errors import RunError
from parnassus.runs.folder import RunFolder
from parnassus.runs.lookup import UnknownRunError, find_run
from parnassus.shapley.attributions.model_adapters import Model, as_model
from parnassus.train.devices import choose_device, set_precision
from parnassus.train.trained import TrainedRun

PICKLE_SUFFIXES = (".pkl", ".pickle", ".joblib")


@runtime_checkable
class PredictingExperiment(Protocol):
    """An experiment whose model predicts from rows of its data, including any scaling."""

    def predict(self, model: nn.Module, x: Tensor) -> Tensor: ...


@dataclass(frozen=True)
class Predictor:
    """A function of many rows, with the number and names of its features and the names of its outputs."""

    name: str
    model: Model
    features: int | None = None
    columns: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ()
    wrapped: object = None
    """The wrapped object, which may have a closed form."""
    table: TablePreparation | None = None
    """How the cells of a table become features, for a run on a CSV file."""


def find_predictor(spec: str, root: Path, device: str = "auto") -> Predictor:
    """The predictor that `spec` names: a run in `root`, `package.module:name` or `file.py:name`."""
    set_precision("float32")  # attributions must sum to the output for a row alone
    if spec.lower().endswith(PICKLE_SUFFIXES):
        raise RunError(
            f"{spec} is not loaded, since a pickle can execute code; load it in your own file, "
            f"such as my_model.py with model = joblib.load({Path(spec).name!r}), and give --model my_model.py:model"
        )
    module, colon, name = spec.rpartition(":")
    if colon and module and not (Path(spec) / "run.json").is_file():
        return from_module(module, name, device)
    try:
        folder = find_run(root, spec)
    except UnknownRunError as error:
        file = spec if spec.endswith(".py") else "my_model.py"
        raise RunError(f"{error}; for a model in your own file use --model {file}:name") from None
    return from_run(folder, device)


def from_run(folder: RunFolder, device: str) -> Predictor:
    """The trained model of a run, as a function of rows of its data."""
    trained = TrainedRun.open(folder)
    if not isinstance(trained.experiment, PredictingExperiment):
        kind = folder.experiment
        raise RunError(f"{folder.path.name} is a run of {kind}, whose model does not predict from rows of a table")
    model, facts = trained.model.to(choose_device(device)), folder.read_json("model.json")
    columns, classes, shape = facts.get("columns"), facts.get("classes"), facts.get("shape")
    names = tuple(map(str, columns)) if isinstance(columns, list) else ()
    return Predictor(
        folder.path.name,
        as_model(_PredictingModule(model, partial(trained.experiment.predict, model))),
        len(names) or (prod(map(int, shape)) if isinstance(shape, list) else None),
        names,
        tuple(map(str, classes)) if isinstance(classes, list) else (),
        table=read_preparation(folder),
    )


def read_preparation(folder: RunFolder) -> TablePreparation | None:
    """The preparation of the table on which a run was trained; None if its data were not a CSV file."""
    plain = folder.read_json("table.json")
    try:
        return TablePreparation.from_plain(plain) if plain else None
    except ValueError as error:
        raise RunError(f"{folder.path / 'table.json'} is damaged: {error}") from None


def from_module(source: str, name: str, device: str) -> Predictor:
    """An object of a Python module or file: a torch module, an estimator, a function of many rows."""
    found = _import(source)
    for part in name.split("."):
        if not hasattr(found, part):
            raise RunError(f"{source} has no {name!r}{_list_predictors(found)}")
        found = getattr(found, part)
    if isinstance(found, type):
        raise RunError(f"{source}:{name} is a class; give a fitted object, a module or a function of many rows")
    if isinstance(found, nn.Module):
        found = found.to(choose_device(device))
    try:
        model = as_model(found)
    except TypeError as error:
        raise RunError(f"{source}:{name} cannot be explained: {error}") from None
    features = getattr(found, "n_features_in_", None)
    return Predictor(
        f"{Path(source).name}:{name}",
        model,
        features if isinstance(features, int) else None,
        _strings(getattr(found, "feature_names_in_", ())),
        _strings(getattr(found, "classes_", ())) if hasattr(found, "predict_proba") else (),
        found,
    )


class _PredictingModule(nn.Module):
    """An experiment's predictions as a module, which runs on the device of its weights."""

    def __init__(self, model: nn.Module, predict: Model) -> None:
        super().__init__()
        self.model, self.predict = model, predict

    def forward(self, x: Tensor) -> Tensor:
        return self.predict(x)


def _import(source: str) -> object:
    """A Python module by its name, relative to the current folder, or a file."""
    path = Path(source).expanduser()
    if path.suffix == ".py" and not path.is_file():
        raise RunError(f"there is no file {source}")
    folder = str((path.parent if path.suffix == ".py" else Path()).resolve())
    if folder not in sys.path:
        sys.path.insert(0, folder)  # as `python FILE` and `python -m MODULE` do
    try:
        if path.suffix == ".py":
            name = f"explained_{path.stem}"  # so that a json.py does not hide json
            spec = importlib.util.spec_from_file_location(name, path)
            assert spec is not None
            assert spec.loader is not None
            module = importlib.util.module_from_spec(spec)
            sys.modules[module.__name__] = module
            spec.loader.exec_module(module)
            return module
        return importlib.import_module(source)
    except ModuleNotFoundError as error:
        raise RunError(f"{source} cannot be imported: {error}") from error
    except Exception as error:
        raise RunError(f"{source} fails when it is imported: {type(error).__name__}: {error}") from error


def _list_predictors(module: object) -> str:
    """For an error message, the names in a module that may be predictors: estimators, torch modules, own functions."""
    here = getattr(module, "__name__", None)
    names = [
        name
        for name, value in vars(module).items()
        if not name.startswith("_")
        and not isinstance(value, type)
        and (hasattr(value, "predict") or isinstance(value, nn.Module) or getattr(value, "__module__", "") == here)
    ]
    return f"; available: {', '.join(names)}" if names else ""


def _strings(names: Iterable[object]) -> tuple[str, ...]:
    return tuple(str(name) for name in names)
