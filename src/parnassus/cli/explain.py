"""`parnassus explain`: what each feature contributed to a prediction, with its error, in a table and a picture."""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
import tyro
from jaxtyping import Float
from torch import Tensor

from parnassus.cli.explained import Explained, counted, say
from parnassus.cli.places import RUNS
from parnassus.cli.predictor import Predictor, find_predictor
from parnassus.cli.rows import Features, drawn, open_features
from parnassus.cli.seeds import demand_a_seed
from parnassus.runs.errors import RunError
from parnassus.shapley.attribution import Attribution, explain
from parnassus.shapley.convergence import explain_until
from parnassus.shapley.masking import ConditionalGaussian, Interventional, ValueFunction
from parnassus.shapley.model import Model, ModelError
from parnassus.shapley.trees import explain_trees

AT_ONCE = 2**14
"""Coalitions that are asked without being told to: all of one row with 14 features."""
SAMPLE = 50
"""Rows explained where none is named."""


@dataclass(frozen=True)
class Settings:
    """What each feature contributed to a prediction: Shapley values of a run's model, or of any model of yours.

    parnassus explain --model my_model.py:forest --data my.csv --row 17
    """

    model: str  # a trained run, or what predicts from many rows at once: my_model.py:name, package.module:name
    data: str  # a .csv file, whose first line may name the columns; or other data that --data takes: its test rows
    row: str | None = None  # 17, or 1,2,5-9, or all; the first row under the header is 1. Unless told, 50 rows by lot
    target: tuple[str, ...] = ()  # columns that are no features; unless told, the last, if the model does not take it
    output: str | None = None  # a class by its name, or an output by its number from 0; unless told, what is predicted
    background: str = "100"  # what stands in for unknown features: so many rows of the data, or those of another file
    value: Literal["interventional", "conditional"] = "interventional"  # the unknown comes as it is, or is guessed
    budget: int | None = None  # coalitions to ask about; unless told, some 2000, all for one row of up to 14 features
    error: float | None = None  # go on until every standard error is below this, or the budget is spent
    top: int = 12  # features to show; the others are summed
    out: Path | None = None  # where to write the picture, as .png and .svg; unless told, explanation-ROW here
    seed: int = 0  # of the background, the coalitions and the rows by lot
    device: str = "auto"  # where a network computes
    folder: Path = RUNS  # where the runs are
    json: bool = False  # print JSON and nothing else


@dataclass
class Counted:
    """One output of a model, and how many rows it has been asked about."""

    model: Model
    output: int
    rows: int = 0

    def __call__(self, x: Float[Tensor, "rows features"]) -> Float[Tensor, "rows 1"]:
        self.rows += len(x)
        return self.model(x)[:, self.output, None]


def explain_rows(arguments: list[str]) -> int:
    """Find the model and the rows, share the predictions out, print and draw."""
    settings = tyro.cli(Settings, prog="parnassus explain", args=arguments)
    demand_sense(settings)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")  # of an estimator fitted to a frame
        explained = explained_rows(settings)
    say(explained, top=settings.top, out=settings.out, as_json=settings.json)
    return 0


def explained_rows(settings: Settings) -> Explained:
    """Everything that is to be told."""
    predictor = find_predictor(settings.model, settings.folder, settings.device)
    features = open_features(settings.data, predictor, settings.target)
    numbers = features.chosen(settings.row) if settings.row else by_lot(len(features), settings.seed)
    x = features.rows[torch.tensor(numbers) - 1]
    others = background(settings, predictor, features)
    answers, kind = asked(predictor, x, others)
    names = output_names(predictor, features, answers.shape[1])
    output = chosen_output(settings.output, names, answers)
    model = Counted(predictor.model, output)
    plain = settings.value == "interventional"
    if not plain and len(others) < 2:
        raise RunError(f"--value conditional needs a background of at least two rows; got {len(others)}")
    of_trees = by_trees(predictor, x, others, answers[:, output], output) if plain else None
    unknown = Interventional if plain else ConditionalGaussian
    parts = of_trees or worked_out(unknown(model, others.to(kind)), x.to(kind), settings)
    return Explained(
        predictor=predictor.name,
        features=features,
        numbers=numbers,
        output=names[output] if names else f"output {output}" if answers.shape[1] > 1 else "",
        parts=parts,
        said=answers[:, output],
        base_is=f"{counted(len(others), 'row')} of the background"
        if plain
        else f"a Gaussian fitted to {counted(len(others), 'row')}",
        model_rows=model.rows,
        closed=of_trees is not None,
        wished=settings.error,
    )


def by_trees(
    predictor: Predictor,
    x: Float[Tensor, "rows features"],
    others: Float[Tensor, "others features"],
    said: Float[Tensor, " rows"],
    output: int,
) -> Attribution | None:
    """Exact parts of one output by the closed form, if the model is a sum of trees and says what they sum to."""
    if not any(hasattr(predictor.source, name) for name in ("tree_", "estimators_")):
        return None
    try:
        found = explain_trees(predictor.source, x, others)
    except (ValueError, TypeError):
        return None  # a vote or a stack of other models: these are asked as any model is
    only = slice(output, output + 1)
    one = Attribution(found.base[:, only], found.values[:, only], found.errors[:, only], found.coalitions)
    same = found.base.shape[1] > output and torch.allclose(one.prediction[:, 0], said.double(), atol=1e-6)
    return one if same else None  # a boosted classifier sums log-odds and says probabilities


def worked_out(value: ValueFunction, x: Float[Tensor, "rows features"], settings: Settings) -> Attribution:
    """Shapley values of all rows from the same coalitions: as many as told, or as the wished error needs."""
    rows, every = len(x), 2**value.players
    if settings.budget is not None and settings.budget < min(every, 2 * value.players):
        raise RunError(
            f"--budget must be at least {2 * value.players}, twice the features, for errors to be known; "
            f"got {settings.budget}"
        )
    generator = torch.Generator().manual_seed(settings.seed)
    affordable = settings.budget is None and every * rows <= AT_ONCE
    if settings.error is None:
        enough = max(8 * value.players, min(2 * value.players + 2048, AT_ONCE // rows))
        return explain(value, x, settings.budget or (every if affordable else enough), generator=generator)
    most = settings.budget or min(every, 4 * AT_ONCE)
    return explain_until(value, x, settings.error, most=most, generator=generator)


def background(settings: Settings, predictor: Predictor, features: Features) -> Float[Tensor, "others features"]:
    """So many rows of the data by lot, or the rows of another file."""
    if settings.background.isdecimal():
        return drawn(features.others, int(settings.background), seed=settings.seed)
    others = open_features(settings.background, predictor, settings.target).rows
    if others.shape[1] != len(features.columns):
        raise RunError(
            f"{settings.background} has {others.shape[1]} features, and {settings.data} {len(features.columns)}"
        )
    return others


def asked(
    predictor: Predictor, x: Float[Tensor, "rows features"], others: Float[Tensor, "others features"]
) -> tuple[Float[Tensor, "rows outputs"], torch.dtype]:
    """What the model says of the rows, and in which precision it can be asked; a model that fails is told plainly."""
    problem = ""
    for kind in (torch.float64, torch.float32):  # a function around a network may take only the second
        try:
            predictor.model(others[:1].to(kind))
            return predictor.model(x.to(kind)), kind
        except ModelError:
            raise
        except Exception as error:
            problem = problem or f"{type(error).__name__}: {' '.join(str(error).split())}"
    asked_about = f"{counted(len(x), 'row')} of {counted(x.shape[1], 'feature')}"
    raise RunError(f"{predictor.name} fails when it is asked about {asked_about}: {problem}")


def output_names(predictor: Predictor, features: Features, count: int) -> tuple[str, ...]:
    """The classes that the model names, or the data, where there are as many."""
    for names in (predictor.outputs, features.classes):
        if len(names) == count > 1:
            return names
    return ()


def chosen_output(wish: str | None, names: tuple[str, ...], answers: Float[Tensor, "rows outputs"]) -> int:
    """The output named; unless told, the one that is largest for most rows."""
    count = answers.shape[1]
    if wish is None:
        return int(answers.argmax(1).mode().values)
    if wish in names:
        return names.index(wish)
    if not names and wish.isdecimal() and int(wish) < count:
        return int(wish)
    known = ", ".join(names) if names else f"0 to {count - 1}" if count > 1 else "0 alone"
    raise RunError(f"the model has no output {wish!r}; there is {known}")


def by_lot(rows: int, seed: int) -> list[int]:
    """Numbers of up to SAMPLE rows, from 1, in order."""
    order = torch.randperm(rows, generator=torch.Generator().manual_seed(seed + 1))
    return sorted((order[:SAMPLE] + 1).tolist())


def demand_sense(settings: Settings) -> None:
    """Refuse flags that cannot work, before anything is loaded."""
    if settings.error is not None and not settings.error > 0:
        raise RunError(f"--error must be positive; got {settings.error}")
    if settings.top < 1:
        raise RunError(f"--top must be at least 1; got {settings.top}")
    demand_a_seed(settings.seed)
    if settings.out is not None and settings.out.suffix not in ("", ".png", ".svg"):
        raise RunError(f"the picture is written as .png and .svg; got --out {settings.out}")
