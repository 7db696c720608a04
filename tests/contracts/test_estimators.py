"""The contract of estimators: every public class with `fit`, tokenisers apart."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from parnassus import attention, kernels, latent, layers, metrics, probability, text

from .checks import (
    Offences,
    check_cast_or_refused,
    check_equal,
    other_default_device,
    seeded,
    tensors_of,
    unchanged,
    unchanged_globals,
    without_shape_checks,
)
from .public_members import check_factories, has_any, public_classes

Arrays = tuple[Any, ...]


def numbers(*shape: int) -> Tensor:
    return 0.1 + torch.rand(shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def labels(count: int = 8, classes: int = 2) -> Tensor:
    return torch.arange(count) % classes


def points() -> Arrays:
    return (numbers(8, 3),)


def labelled() -> Arrays:
    return numbers(8, 3), labels()


def images() -> Tensor:
    return numbers(8, 1, 8, 8)


@dataclass(frozen=True)
class Estimator:
    """How to fit an estimator to arrays, and the methods to call afterwards, with their arrays."""

    fit: Callable[..., Any]
    arrays: Callable[[], Arrays] = points
    uses: dict[str, Callable[[], Arrays]] = field(default_factory=dict)


ESTIMATORS: dict[str, Estimator] = {
    "attention.FeatureRidge": Estimator(
        partial(attention.FeatureRidge.fit, penalty=0.1), lambda: (numbers(8, 3), numbers(8, 2)), {"predict": points}
    ),
    "attention.KernelRidge": Estimator(
        partial(attention.KernelRidge.fit, penalty=0.1),
        lambda: (numbers(8, 8).diag().diag(), numbers(8, 2)),
        {"predict": lambda: (numbers(5, 8),)},
    ),
    "attention.NadarayaWatson": Estimator(
        attention.NadarayaWatson.fit, lambda: (numbers(8, 3), numbers(8, 2)), {"predict": points}
    ),
    "kernels.BlockedRegression": Estimator(
        partial(kernels.BlockedRegression.fit, kernels.RBFKernel(), ratio=0.1),
        lambda: (numbers(8, 3), numbers(8, 2)),
        {"predict": points},
    ),
    "kernels.GPRegression": Estimator(
        partial(kernels.GPRegression.fit, kernels.RBFKernel(), noise_variance=0.1),
        lambda: (numbers(8, 3), numbers(8)),
        {"predict": points},
    ),
    "kernels.InfiniteEnsemble": Estimator(
        partial(kernels.InfiniteEnsemble.fit, kernels.fully_connected(1, kernels.ReLU())),
        lambda: (numbers(8, 3), numbers(8)),
        {"distribution": lambda: (numbers(5, 3), 1.0)},
    ),
    "latent.IndependentPrior": Estimator(
        lambda indices: latent.IndependentPrior.fit(indices, 2), lambda: (labels(8)[:, None].repeat(1, 3),)
    ),
    "latent.PCA": Estimator(partial(latent.PCA.fit, num_components=2), uses={"transform": points}),
    "latent.PPCA": Estimator(partial(latent.PPCA.fit, latent_dim=2), uses={"transform": points, "log_prob": points}),
    "layers.ImageAlignment": Estimator(
        layers.ImageAlignment.fit, lambda: (images(),), {"transform": lambda: (images(),)}
    ),
    "layers.LinearRegression": Estimator(
        layers.LinearRegression.fit, lambda: (numbers(8, 3), numbers(8)), {"predict": points}
    ),
    "layers.SoftmaxRegression": Estimator(
        partial(layers.SoftmaxRegression.fit, classes=2, penalty=0.1), labelled, {"predict": points}
    ),
    "layers.Standardiser": Estimator(layers.Standardiser.fit, uses={"transform": points}),
    "metrics.FeatureNetwork": Estimator(
        partial(metrics.FeatureNetwork.fit, name="digits", steps=4, batch_size=4, width=2),
        lambda: (images().float(), labels()),
    ),
    "probability.GaussianMixture": Estimator(
        partial(probability.GaussianMixture.fit, components=2), uses={"log_prob": points}
    ),
    "probability.GenerativeClassifier": Estimator(
        partial(probability.GenerativeClassifier.fit, classes=2, model=probability.fit_gaussian_naive_bayes),
        labelled,
        {"predict": points, "log_prob": points},
    ),
    "probability.MarkovChain": Estimator(
        partial(probability.MarkovChain.fit, states=2), lambda: (labels(8).view(2, 4),)
    ),
    "text.NGramModel": Estimator(partial(text.NGramModel.fit, order=2, vocabulary=2), lambda: (labels(),)),
}


def test_every_estimator_has_a_factory() -> None:
    fitted = {name: each for name, each in public_classes().items() if has_any(each, "fit")}
    check_factories([name for name, each in fitted.items() if not has_any(each, "decode", "encode")], ESTIMATORS)


@pytest.fixture
def offences() -> Offences:
    return Offences()


def cast(arrays: Arrays, dtype: torch.dtype) -> Arrays:
    return tuple(each.to(dtype) if isinstance(each, Tensor) and each.is_floating_point() else each for each in arrays)


def inputs(case: Estimator, dtype: torch.dtype = torch.float64) -> dict[str, Arrays]:
    """The arrays of each method."""
    return {method: cast(arrays(), dtype) for method, arrays in case.uses.items()}


def used(model: Any, uses: dict[str, Arrays]) -> list[Any]:
    return [getattr(model, method)(*arrays) for method, arrays in uses.items()]


def test_predictions_have_the_dtype_of_the_data(offences: Offences) -> None:
    for name, case in ESTIMATORS.items():
        for dtype in (torch.float32, torch.float64):
            with offences.record(name, str(dtype)):
                model = seeded(partial(case.fit, *cast(case.arrays(), dtype)))
                results = tensors_of(used(model, inputs(case, dtype)))
                others = {each.dtype for each in results if each.is_floating_point()} - {dtype}
                assert not others, f"results of {', '.join(map(str, others))}"
    offences.check()


def test_fits_follow_the_device_of_the_data_and_change_nothing_else(offences: Offences) -> None:
    for name, case in ESTIMATORS.items():
        arrays, uses = case.arrays(), inputs(case)
        with offences.record(name, "device"), other_default_device():
            model = case.fit(*arrays)
            results = tensors_of([*vars(model).values(), *used(model, uses)])
            assert all(each.device.type == "cpu" for each in results), "not the device of the data"
        guard = unchanged_globals(torch_generator=True)
        with offences.record(name, "side effects"), without_shape_checks(), unchanged(*arrays), guard:
            check_equal(*([vars(model), used(model, uses)] for model in (case.fit(*arrays), case.fit(*arrays))))
    offences.check()


def test_numpy_and_integer_arrays_are_cast_or_refused(offences: Offences) -> None:
    for name, case in ESTIMATORS.items():
        with without_shape_checks():
            with offences.record(name, "fit"):
                check_cast_or_refused(case.fit, case.arrays())
            model = case.fit(*case.arrays())
            for method, arrays in inputs(case).items():
                with offences.record(name, method):
                    check_cast_or_refused(getattr(model, method), arrays)
    offences.check()
