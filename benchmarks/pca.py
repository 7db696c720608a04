"""Benchmark of PCA against scikit-learn, on matrices of 60,000 × 784 and 4,000 × 8,000, exact and randomised.

Both implementations fit the same rows in the same dtype and are timed alternately in one process, so that background
load affects both. The exact method computes the eigenvectors of the covariance, which scikit-learn also selects
automatically for the first shape. The randomised method computes the 50 leading eigenpairs; for the first shape
Parnassus uses the covariance instead, because it is cheaper. The errors of the leading eigenvalues relative to an exact
fit in float64 are printed as well.
Limit: at most the time of scikit-learn.
Run: python benchmarks/pca.py
"""

import statistics
import sys
import time
from collections.abc import Callable
from functools import partial

import torch
from sklearn import decomposition
from torch import Tensor

from parnassus.latent import PCA, spectrum_by_randomised_svd

NUM_COMPONENTS, TURNS, LIMIT = 50, 15, 1.0


def rows(count: int, features: int) -> Tensor:
    """Generate rows of mean 0.13 whose 784 nonzero eigenvalues decay from 5 to 10⁻⁷, similar to those of digits."""
    generator = torch.Generator().manual_seed(0)
    deviations = 10 ** torch.linspace(0.35, -3.5, 784, dtype=torch.float64)
    axes: Tensor = torch.linalg.qr(torch.randn(features, 784, generator=generator, dtype=torch.float64))[0]
    return torch.randn(count, 784, generator=generator, dtype=torch.float64) * deviations @ axes.mT + 0.13


def fit_sklearn(x: Tensor, solver: str) -> Tensor:
    """Return the leading eigenvalues of scikit-learn, rescaled because it divides by n − 1."""
    pca = decomposition.PCA(NUM_COMPONENTS, svd_solver=solver, random_state=0).fit(x.numpy())
    return torch.from_numpy(pca.explained_variance_).double() * (len(x) - 1) / len(x)


def fit_exact(x: Tensor) -> Tensor:
    return PCA.fit(x, NUM_COMPONENTS).explained_variance.double()


def fit_randomised(x: Tensor) -> Tensor:
    return PCA.fit(
        x, NUM_COMPONENTS, solver=partial(spectrum_by_randomised_svd, num_components=NUM_COMPONENTS)
    ).explained_variance.double()


Fit = Callable[[Tensor], Tensor]
EXACT: tuple[Fit, Fit] = fit_exact, partial(fit_sklearn, solver="covariance_eigh")
RANDOMISED: tuple[Fit, Fit] = fit_randomised, partial(fit_sklearn, solver="randomized")


def compare(x: Tensor, reference: Tensor, own: Fit, baseline: Fit) -> dict[str, float]:
    """Return the median time ratio, our median seconds, and the largest relative error of each implementation."""
    times: list[list[float]] = [[], []]
    errors = [0.0, 0.0]
    for turn in range(-1, TURNS):
        for index in (0, 1) if turn % 2 else (1, 0):
            start_time = time.perf_counter()
            eigenvalues = (own, baseline)[index](x)
            if turn >= 0:  # the first turn is a warm-up
                times[index].append(time.perf_counter() - start_time)
            errors[index] = float((eigenvalues / reference - 1).abs().max())
    ratio = statistics.median(fit / baseline_fit for fit, baseline_fit in zip(*times, strict=True))
    return {"ratio": ratio, "seconds": statistics.median(times[0]), "error": errors[0], "baseline_error": errors[1]}


def main() -> None:
    """Print a table of ratios; exit with 1 if a ratio exceeds the limit."""
    failed = False
    print(f"time ratio Parnassus / scikit-learn, {NUM_COMPONENTS} components (limit: at most {LIMIT})")
    print(f"{'':36}{'ratio':>8}{'seconds':>9}{'error':>10}{'baseline':>10}")
    for count, features, methods in (
        (60_000, 784, {"exact": EXACT, "randomised": RANDOMISED}),
        (4_000, 8_000, {"randomised": RANDOMISED}),
    ):
        x = rows(count, features)
        centered = x - x.mean(0)
        gram = centered.mT @ centered if features < count else centered @ centered.mT
        reference = torch.linalg.eigvalsh(gram / count).flip(0)[:NUM_COMPONENTS]
        for dtype in (torch.float32, torch.float64):
            for name, pair in methods.items():
                result = compare(x.to(dtype), reference, *pair)
                failed |= result["ratio"] > LIMIT
                label = f"{count:,} × {features:,}, {name}, {str(dtype).removeprefix('torch.')}"
                errors = f"{result['error']:10.1e}{result['baseline_error']:10.1e}"
                print(f"{label:36}{result['ratio']:8.3f}{result['seconds']:9.2f}{errors}", flush=True)
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
