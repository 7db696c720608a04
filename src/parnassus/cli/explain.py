"""`parnassus explain`: what each feature contributed to a prediction, with its error, in a table and a picture."""

import warnings
from dataclasses import dataclass, replace
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
from parnassus.shapley.attribution import Attribution, explain, of_repeats
from parnassus.shapley.convergence import explain_until
from parnassus.shapley.masking import ConditionalGaussian, Interventional, ValueFunction
from parnassus.shapley.model import Model, ModelError
from parnassus.shapley.stopping import largest_error
from parnassus.shapley.trees import explain_trees

AT_ONCE = 2**14
"""Coalitions that are asked without being told to: all of one row with 14 features."""
SAMPLE = 50
"""Rows explained where none is named."""
GUESSES, REPEATS, AT_MOST = 32, 8, 64
"""Of what is not known, for each coalition; and how often all is done anew, at least and for a wished error."""


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
    value: Literal["interventional", "conditional"] = "interventional"  # the unknown is another row's, or guessed
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
    """One output of a model, and how many rows it has been asked about; if it fails on the way, that is told."""

    predictor: Predictor
    output: int
    rows: int = 0

    def __call__(self, x: Float[Tensor, "rows features"]) -> Float[Tensor, "rows 1"]:
        self.rows += len(x)
        try:
            return self.predictor.model(x)[:, self.output, None]
        except ModelError:
            raise
        except Exception as error:
            raise failed(self.predictor, x, error) from error


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
    model = Counted(predictor, output)
    plain = settings.value == "interventional"
    if not plain and len(others) < 2:
        raise RunError(f"--value conditional needs a background of at least two rows; got {len(others)}")
    of_trees = by_trees(predictor, x, others, answers[:, output], output) if plain else None
    x, others = x.to(kind), others.to(kind)
    if plain:
        parts = of_trees or worked_out(Interventional(model, others), x, settings)
    else:
        parts = guessed(model, others, x, settings)
    return Explained(
        predictor=predictor.name,
        features=features,
        numbers=numbers,
        output=told_output(output, answers.shape[1], names, predictor),
        parts=parts,
        said=answers[:, output],
        base_is=f"{counted(len(others), 'row')} of the background"
        if plain
        else f"a Gaussian fitted to {counted(len(others), 'row')}",
        model_rows=model.rows,
        closed=of_trees is not None,
        guessed=not plain,
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


def worked_out(
    value: ValueFunction, x: Float[Tensor, "rows features"], settings: Settings, at_once: int = AT_ONCE
) -> Attribution:
    """Shapley values of all rows from the same coalitions: as many as told, or as the wished error needs."""
    rows, every = len(x), 2**value.players
    if settings.budget is not None and settings.budget < min(every, 2 * value.players):
        raise RunError(
            f"--budget must be at least {2 * value.players}, twice the features, for errors to be known; "
            f"got {settings.budget}"
        )
    generator = torch.Generator().manual_seed(settings.seed)
    affordable = settings.budget is None and every * rows <= at_once
    if settings.error is None:
        enough = max(8 * value.players, min(2 * value.players + 2048, at_once // rows))
        return explain(value, x, settings.budget or (every if affordable else enough), generator=generator)
    most = settings.budget or min(every, 4 * at_once)
    return explain_until(value, x, settings.error, most=most, generator=generator)


def guessed(
    model: Model, others: Float[Tensor, "others features"], x: Float[Tensor, "rows features"], settings: Settings
) -> Attribution:
    """The same where what is not known is guessed: all is done anew until its spread shows errors as small as wished.

    All coalitions may have been asked, and guesses of what they are worth still differ.
    """
    found: list[Attribution] = []
    seeds = torch.randint(2**62, (AT_MOST,), generator=torch.Generator().manual_seed(settings.seed)).tolist()
    while len(found) < REPEATS or (
        settings.error is not None and len(found) < AT_MOST and largest_error(of_repeats(found)) > settings.error
    ):
        seed = seeds[len(found)]
        value = ConditionalGaussian(model, others, GUESSES, seed)
        try:
            found.append(worked_out(value, x, replace(settings, error=None, seed=seed), AT_ONCE // REPEATS))
        except ValueError as error:
            raise RunError(
                f"--value conditional cannot guess from {counted(len(others), 'row')} of the background: {error}; give "
                "more rows than features, without features that are constant or sums of others"
            ) from error
    return of_repeats(found)


def background(settings: Settings, predictor: Predictor, features: Features) -> Float[Tensor, "others features"]:
    """So many rows of the data by lot, or the rows of another file."""
    if settings.background.isdecimal():
        if len(features.others) == 1:
            raise RunError(f"{features.about} has one row, which cannot stand in for itself: give --background a file")
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
    problems: list[Exception] = []
    for kind in (torch.float64, torch.float32):  # a function around a network may take only the second
        try:
            predictor.model(others[:1].to(kind))
            return predictor.model(x.to(kind)), kind
        except ModelError:
            raise
        except Exception as error:
            problems.append(error)
    raise failed(predictor, x, problems[0])


def failed(predictor: Predictor, x: Float[Tensor, "rows features"], error: Exception) -> RunError:
    """What a model said when it could not answer."""
    asked_about = f"{counted(len(x), 'row')} of {counted(x.shape[1], 'feature')}"
    said = f"{type(error).__name__}: {' '.join(str(error).split())}"
    return RunError(f"{predictor.name} fails when it is asked about {asked_about}: {said}")


def output_names(predictor: Predictor, features: Features, count: int) -> tuple[str, ...]:
    """The classes that the model names, or the data, where there are as many."""
    for names in (predictor.outputs, features.classes):
        if len(names) == count > 1:
            return names
    return ()


def told_output(output: int, count: int, names: tuple[str, ...], predictor: Predictor) -> str:
    """An output by its name; by its number too where the name is the data's, whose order the model may not share."""
    if not names:
        return f"output {output}" if count > 1 else ""
    return names[output] if names == predictor.outputs else f"{names[output]} (output {output})"


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
