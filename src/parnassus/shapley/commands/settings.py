"""The flags of `parnassus explain`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import tyro

from parnassus.atlas.reading import settings_of
from parnassus.atlas.settings import check_limits
from parnassus.runs.errors import RunError
from parnassus.runs.folder import RUNS
from parnassus.setting_types import DeviceName, NonNegative, Positive, Text
from parnassus.train.seeding import check_seed

Perturbation: TypeAlias = Literal["interventional", "conditional"]
"""Where unknown features come from: background rows, or a Gaussian conditioned on the known features."""


@dataclass(frozen=True)
class ExplainSettings:
    """Attribute a model's predictions to their features: SHAP values with standard errors, a table and a figure.

    The model is a trained run, or any predictor in your own file. One row gives a waterfall plot, several a beeswarm.

    parnassus explain --model my_model.py:forest --data my.csv --row 17
    """

    model: str  # a trained run, or a predictor as my_model.py:name or package.module:name
    data: str  # a .csv file, or other data that `parnassus run --data` accepts (its test rows)
    row: Text | None = None  # rows to explain, from 1: 17, or 1,2,5-9, or all; by default 50 random rows
    target: tuple[str, ...] = ()  # columns that are not features; by default the last, if the model does not use it
    output: str | None = None  # class name, or output index from 0; by default the output predicted for most rows
    background: str = "100"  # background data: a number of random rows of the data, or a file
    feature_perturbation: Perturbation = "interventional"  # unknown features: background rows, or conditional on known
    max_evals: Positive[int] | None = None  # coalitions evaluated; by default 2,000, all for one row of ≤ 14 features
    tolerance: Positive[float] | None = None  # add coalitions, up to --max-evals, until all standard errors are smaller
    max_display: Positive[int] = 12  # features shown; the others are summed
    out: Path | None = None  # figure, written as .png and .svg; by default explanation-ROW in the current folder
    seed: NonNegative[int] = 0  # seed of the background, the coalitions and the random rows
    device: DeviceName = "auto"  # device of a network
    folder: Path = RUNS  # folder of the runs
    json: bool = False  # print JSON only


def parse_settings(arguments: list[str]) -> ExplainSettings:
    """The parsed flags. Invalid values raise an error before anything is loaded."""
    settings = tyro.cli(ExplainSettings, prog="parnassus explain", args=arguments)
    check_limits(settings_of(ExplainSettings), settings)
    check_seed(settings.seed)
    if settings.out is not None and settings.out.suffix not in ("", ".png", ".svg"):
        raise RunError(f"--out must end in .png or .svg, or have no suffix; got {settings.out}")
    return settings
