"""Benchmark of the memory of an incremental PCA that reads 1,000,000 × 784 float32 values from disk.

In memory the data would take 3 GB. A separate process writes the file, which is deleted at the end; another one fits,
and reports the peak of its memory including the libraries. Two eigenvalues are compared with their true values.
Limits: peak memory at most 1 GiB; eigenvalues within 0.1 of the true ones.
Run: python benchmarks/pca_memory.py
"""

import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

from parnassus.latent import incremental_pca, read_npy_batches

ROWS, FEATURES, NUM_COMPONENTS, CHUNK_ROWS, LIMIT = 1_000_000, 784, 50, 20_000, 1.0


def write(path: Path) -> None:
    """Write float32 rows of mean 5; the standard deviation is 3 for the first ten features and 1 for the others."""
    file = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(ROWS, FEATURES))
    rng = np.random.default_rng(0)
    for start in range(0, ROWS, CHUNK_ROWS):
        chunk = rng.standard_normal((CHUNK_ROWS, FEATURES), dtype=np.float32)
        chunk[:, :10] *= 3
        file[start : start + CHUNK_ROWS] = chunk + 5
    file.flush()


def fit(path: Path) -> None:
    """Print seconds, peak memory in GiB after and before the fit, and two eigenvalues (true values 9 and 1)."""
    before = _peak()
    start_time = time.perf_counter()
    pca = incremental_pca(read_npy_batches(path), NUM_COMPONENTS)
    seconds = time.perf_counter() - start_time
    print(seconds, _peak(), before, float(pca.eigenvalues[9]), float(pca.eigenvalues[-1]))


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # KiB on Linux


def main() -> None:
    """Write the file, fit in another process and print the results; exit with 1 if a limit is missed."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        subprocess.run([sys.executable, __file__, "write", str(path)], check=True)
        process = subprocess.run(
            [sys.executable, __file__, "fit", str(path)], check=True, capture_output=True, text=True
        )
    seconds, peak, before, tenth, last = map(float, process.stdout.split())
    print(f"{ROWS:,} × {FEATURES} from disk in {seconds:.1f} s on {torch.get_num_threads()} threads")
    print(f"peak memory {peak:.2f} GiB, of which libraries {before:.2f} GiB (limit: at most {LIMIT} GiB)")
    print(f"λ_10 = {tenth:.3f} (true value 9), λ_{FEATURES} = {last:.3f} (true value 1)")
    sys.exit(1 if peak > LIMIT or abs(tenth - 9) > 0.1 or abs(last - 1) > 0.1 else 0)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        {"write": write, "fit": fit}[sys.argv[1]](Path(sys.argv[2]))
    else:
        main()
