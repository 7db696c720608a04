"""The computation of `parnassus explain`: predictor, rows, background and SHAP values."""

import warnings
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor

from parnassus.runs.errors import RunError
from parnassus.shapley.attributions.adaptive_kernel_shap import explain_to_tolerance
from parnassus.shapley.attributions.attribution import Attribution, average_repeats, explain
from parnassus.shapley.attributions.conditional_gaussian import ConditionalGaussianValue
from parnassus.shapley.attributions.interventional import InterventionalValue
from parnassus.shapley.attributions.model_adapters import Model, ModelError
from parnassus.shapley.attributions.value_functions import ValueFunction
from parnassus.shapley.closed_forms.tree_leaves import HasTree, HasTrees
from parnassus.shapley.closed_forms.tree_shap import tree_shap
from parnassus.shapley.commands.explanation import Explanation, format_count
from parnassus.shapley.commands.feature_table import FeatureTable, open_features, sample_rows
from parnassus.shapley.commands.predictors import Predictor, find_predictor
from parnassus.shapley.commands.settings import ExplainSettings
from parnassus.shapley.estimators.stopping import max_standard_error

DEFAULT_EVALS = 2**14
"""Default number of coalitions × rows: all coalitions of one row with 14 features."""
DEFAULT_ROWS = 50
"""Default number of random rows to explain."""
NUM_DRAWS, MIN_REPEATS, MAX_REPEATS = 32, 8, 64
"""For conditional values: samples of the unknown features per coalition, and independent repeats."""


@dataclass
class CountedOutput:
    """One output of a predictor, and the number of inputs evaluated; its exceptions become a RunError."""

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
            raise model_failure(self.predictor, x, error) from error


def compute_explanation(settings: ExplainSettings) -> Explanation:
    """The SHAP values of the requested rows."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "X does not have valid feature names")  # of an estimator fitted to a frame
        return _compute(settings)


def _compute(settings: ExplainSettings) -> Explanation:
    predictor = find_predictor(settings.model, settings.folder, settings.device)
    features = open_features(settings.data, predictor, settings.target)
    rows = features.select(settings.row) if settings.row else random_row_numbers(len(features), settings.seed)
    x = features.rows[torch.tensor(rows) - 1]
    background = load_background(settings, predictor, features)
    outputs, dtype = evaluate(predictor, x, background)
    names = output_names(predictor, features, outputs.shape[1])
    output = choose_output(settings.output, names, outputs)
    model = CountedOutput(predictor, output)
    is_conditional = settings.feature_perturbation == "conditional"
    if is_conditional and len(background) < 2:
        raise RunError(
            f"--feature-perturbation conditional needs a background of at least two rows; got {len(background)}"
        )
    if is_conditional and bool(x.isnan().any() or background.isnan().any()):
        raise RunError("--feature-perturbation conditional needs tables without missing cells")
    closed_form = None if is_conditional else explain_by_trees(predictor, x, background, outputs[:, output], output)
    x, background = x.to(dtype), background.to(dtype)
    if is_conditional:
        attribution = explain_conditionally(model, background, x, settings)
    else:
        attribution = closed_form or explain_by_coalitions(InterventionalValue(model, background), x, settings)
    return Explanation(
        predictor=predictor.name,
        features=features,
        rows=rows,
        output=format_output(output, outputs.shape[1], names, predictor),
        attribution=attribution,
        prediction=outputs[:, output],
        background=f"a Gaussian fitted to {format_count(len(background), 'row')}"
        if is_conditional
        else f"{format_count(len(background), 'row')} of the background",
        model_rows=model.rows,
        is_closed_form=closed_form is not None,
        is_conditional=is_conditional,
        tolerance=settings.tolerance,
    )


def explain_by_trees(
    predictor: Predictor,
    x: Float[Tensor, "rows features"],
    background: Float[Tensor, "others features"],
    prediction: Float[Tensor, " rows"],
    output: int,
) -> Attribution | None:
    """Exact attributions of one output in closed form, if the model is a sum of trees and returns that sum."""
    has_missing = bool(x.isnan().any() or background.isnan().any())  # where trees send them is not in the leaves
    if has_missing or not isinstance(predictor.wrapped, HasTree | HasTrees):
        return None
    try:
        found = tree_shap(predictor.wrapped, x, background)
    except (ValueError, TypeError, ModelError):
        return None  # an ensemble of other models, or not a sum: evaluated like any model
    column = slice(output, output + 1)
    single = Attribution(
        found.base_values[:, column], found.values[:, column], found.errors[:, column], found.evaluations
    )
    has_output = found.base_values.shape[1] > output
    is_same = has_output and torch.allclose(single.prediction[:, 0], prediction.double(), atol=1e-6)
    return single if is_same else None  # a boosted classifier sums log-odds and returns probabilities


def explain_by_coalitions(
    value: ValueFunction,
    x: Float[Tensor, "rows features"],
    settings: ExplainSettings,
    default_evals: int = DEFAULT_EVALS,
) -> Attribution:
    """Kernel SHAP of all rows, with the requested number of coalitions or to the requested tolerance."""
    rows, num_coalitions, budget = len(x), 2**value.players, settings.max_evals
    if budget is not None and budget < min(num_coalitions, 2 * value.players):
        raise RunError(
            f"--max-evals must be at least {2 * value.players}, twice the number of features, for standard errors; "
            f"got {budget}"
        )
    generator = torch.Generator().manual_seed(settings.seed)
    if settings.tolerance is not None:
        max_coalitions = budget or min(num_coalitions, 4 * default_evals)
        return explain_to_tolerance(value, x, settings.tolerance, max_coalitions=max_coalitions, generator=generator)
    if budget is None and num_coalitions * rows <= default_evals:
        budget = num_coalitions
    default_budget = max(8 * value.players, min(2 * value.players + 2048, default_evals // rows))
    return explain(value, x, budget or default_budget, generator=generator)


def explain_conditionally(
    model: Model,
    background: Float[Tensor, "others features"],
    x: Float[Tensor, "rows features"],
    settings: ExplainSettings,
) -> Attribution:
    """Kernel SHAP with unknown features sampled given the known ones, repeated until errors reach the tolerance.

    The errors of sampled worths remain when all coalitions are evaluated, so they are estimated from repeats.
    """
    repeats: list[Attribution] = []
    seeds = torch.randint(2**62, (MAX_REPEATS,), generator=torch.Generator().manual_seed(settings.seed)).tolist()
    while len(repeats) < MIN_REPEATS or (
        settings.tolerance is not None
        and len(repeats) < MAX_REPEATS
        and max_standard_error(average_repeats(repeats)) > settings.tolerance
    ):
        seed = seeds[len(repeats)]
        value = ConditionalGaussianValue(model, background, NUM_DRAWS, seed)
        once = replace(settings, tolerance=None, seed=seed)
        try:
            repeats.append(explain_by_coalitions(value, x, once, DEFAULT_EVALS // MIN_REPEATS))
        except ValueError as error:
            raise RunError(
                "--feature-perturbation conditional fails with "
                f"{format_count(len(background), 'row')} of the background: {error}; give "
                "more rows than features, without features that are constant or sums of others"
            ) from error
    return average_repeats(repeats)


def load_background(
    settings: ExplainSettings, predictor: Predictor, features: FeatureTable
) -> Float[Tensor, "others features"]:
    """Random rows of the data, or the rows of another file."""
    if settings.background.isdecimal():
        if len(features.candidates) == 1:
            raise RunError(
                f"{features.source} has one row, which cannot be its own background: give --background a file"
            )
        return sample_rows(features.candidates, int(settings.background), seed=settings.seed)
    background = open_features(settings.background, predictor, settings.target).rows
    if background.shape[1] != len(features.columns):
        raise RunError(
            f"{settings.background} and {settings.data} must have the same features; "
            f"got {background.shape[1]} and {len(features.columns)}"
        )
    return background


def evaluate(
    predictor: Predictor, x: Float[Tensor, "rows features"], background: Float[Tensor, "others features"]
) -> tuple[Float[Tensor, "rows outputs"], torch.dtype]:
    """The model's outputs for the rows, and the dtype of inputs that it accepts."""
    errors: list[Exception] = []
    for dtype in (torch.float64, torch.float32):  # a function around a network may accept only the second
        try:
            predictor.model(background[:1].to(dtype))
            return predictor.model(x.to(dtype)), dtype
        except ModelError:
            raise
        except Exception as error:
            errors.append(error)
    raise model_failure(predictor, x, errors[0])


def model_failure(predictor: Predictor, x: Float[Tensor, "rows features"], error: Exception) -> RunError:
    """The error of a model, as one sentence."""
    inputs = f"{format_count(len(x), 'row')} of {format_count(x.shape[1], 'feature')}"
    message = f"{type(error).__name__}: {' '.join(str(error).split())}"
    return RunError(f"{predictor.name} fails on {inputs}: {message}")


def output_names(predictor: Predictor, features: FeatureTable, count: int) -> tuple[str, ...]:
    """The classes of the model, or of the data, if there are as many as outputs."""
    for names in (predictor.outputs, features.classes):
        if len(names) == count > 1:
            return names
    return ()


def format_output(output: int, count: int, names: tuple[str, ...], predictor: Predictor) -> str:
    """An output's name; with its index if the name is the data's, whose order may differ from the model's."""
    if not names:
        return f"output {output}" if count > 1 else ""
    return names[output] if names == predictor.outputs else f"{names[output]} (output {output})"


def choose_output(requested: str | None, names: tuple[str, ...], outputs: Float[Tensor, "rows outputs"]) -> int:
    """The requested output, by default the one that is largest for most rows."""
    count = outputs.shape[1]
    if requested is None:
        return int(outputs.argmax(1).mode().values)
    if requested in names:
        return names.index(requested)
    if not names and requested.isdecimal() and int(requested) < count:
        return int(requested)
    known = ", ".join(names) if names else f"0 to {count - 1}" if count > 1 else "only 0"
    raise RunError(f"unknown output: {requested!r}; available: {known}")


def random_row_numbers(rows: int, seed: int) -> list[int]:
    """Up to DEFAULT_ROWS row numbers, from 1, in order."""
    order = torch.randperm(rows, generator=torch.Generator().manual_seed(seed + 1))
    return sorted((order[:DEFAULT_ROWS] + 1).tolist())
