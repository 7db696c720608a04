"""Our PCA beside scikit-learn's on 60,000 rows of 784 numbers and on 4,000 of 8,000: not slower, exact and by a sketch.

Both sides fit the same rows in the same type in one process and take turns, so that a noisy machine slows both. Exact:
the eigenvectors of the covariance, which scikit-learn chooses by itself for the first shape. Sketch: 50 leading pairs;
on the first shape ours sees that the covariance costs less. Beside the times stand the errors of the leading
eigenvalues against an exact fit in float64.
Run it with: python benchmarks/pca.py
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

LATENT, TURNS, LIMIT = 50, 15, 1.0


def rows(count: int, features: int) -> Tensor:
    """Rows whose eigenvalues fall from 5 to 10⁻⁷ along 784 directions, as those of digits do, around a mean of 0.13."""
    source = torch.Generator().manual_seed(0)
    deviations = 10 ** torch.linspace(0.35, -3.5, 784, dtype=torch.float64)
    axes: Tensor = torch.linalg.qr(torch.randn(features, 784, generator=source, dtype=torch.float64))[0]
    return torch.randn(count, 784, generator=source, dtype=torch.float64) * deviations @ axes.mT + 0.13


def theirs(x: Tensor, solver: str) -> Tensor:
    """The leading eigenvalues by scikit-learn, which divides by one row less."""
    pca = decomposition.PCA(LATENT, svd_solver=solver, random_state=0).fit(x.numpy())
    return torch.from_numpy(pca.explained_variance_).double() * (len(x) - 1) / len(x)


def exact(x: Tensor) -> Tensor:
    return PCA.fit(x, LATENT).explained_variance.double()


def sketched(x: Tensor) -> Tensor:
    return PCA.fit(
        x, LATENT, solver=partial(spectrum_by_randomised_svd, num_components=LATENT)
    ).explained_variance.double()


Side = Callable[[Tensor], Tensor]
EXACT: tuple[Side, Side] = exact, partial(theirs, solver="covariance_eigh")
SKETCH: tuple[Side, Side] = sketched, partial(theirs, solver="randomized")


def compare(x: Tensor, truth: Tensor, mine: Side, other: Side) -> dict[str, float]:
    """The median over turns of our time by theirs, our seconds, and the largest relative error on each side."""
    times: list[list[float]] = [[], []]
    errors = [0.0, 0.0]
    for turn in range(-1, TURNS):
        for side in (0, 1) if turn % 2 else (1, 0):
            began = time.perf_counter()
            found = (mine, other)[side](x)
            if turn >= 0:  # the first warms up
                times[side].append(time.perf_counter() - began)
            errors[side] = float((found / truth - 1).abs().max())
    ratio = statistics.median(ours / their for ours, their in zip(*times, strict=True))
    return {"ratio": ratio, "seconds": statistics.median(times[0]), "error": errors[0], "their error": errors[1]}


def main() -> None:
    """Print a table of ratios; exit code 1 when one is over the limit."""
    over = False
    print(f"our PCA by scikit-learn's, {LATENT} components, at most {LIMIT}")
    print(f"{'':32}{'ratio':>8}{'seconds':>9}{'error':>10}{'theirs':>10}")
    for count, features, races in (
        (60_000, 784, {"exact": EXACT, "sketch": SKETCH}),
        (4_000, 8_000, {"sketch": SKETCH}),
    ):
        x = rows(count, features)
        centred = x - x.mean(0)
        gram = centred.mT @ centred if features < count else centred @ centred.mT
        truth = torch.linalg.eigvalsh(gram / count).flip(0)[:LATENT]
        for kind in (torch.float32, torch.float64):
            for name, sides in races.items():
                found = compare(x.to(kind), truth, *sides)
                over |= found["ratio"] > LIMIT
                label = f"{count:,} × {features:,}, {name}, {str(kind).removeprefix('torch.')}"
                errors = f"{found['error']:10.1e}{found['their error']:10.1e}"
                print(f"{label:32}{found['ratio']:8.3f}{found['seconds']:9.2f}{errors}", flush=True)
    sys.exit(1 if over else 0)


if __name__ == "__main__":
    main()
