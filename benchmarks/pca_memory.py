"""PCA of a million rows of 784 numbers from disk: the fit takes at most 1 GiB of memory; in memory they are 3 GB.

The file is written first, by another process, and deleted at the end. Run it with: python benchmarks/pca_memory.py
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

ROWS, FEATURES, LATENT, PART, LIMIT = 1_000_000, 784, 50, 20_000, 1.0


def write(path: Path) -> None:
    """Rows in float32 around a mean of 5: the first ten coordinates have a deviation of 3, the others of 1."""
    file = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(ROWS, FEATURES))
    source = np.random.default_rng(0)
    for start in range(0, ROWS, PART):
        part = source.standard_normal((PART, FEATURES), dtype=np.float32)
        part[:, :10] *= 3
        file[start : start + PART] = part + 5
    file.flush()


def fit(path: Path) -> None:
    """Print seconds, the largest memory this process ever had in GiB, and two eigenvalues that should be 9 and 1."""
    before = _peak()
    began = time.perf_counter()
    pca = incremental_pca(read_npy_batches(path), LATENT)
    seconds = time.perf_counter() - began
    print(seconds, _peak(), before, float(pca.eigenvalues[9]), float(pca.eigenvalues[-1]))


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20  # Linux counts in KiB


def main() -> None:
    """Exit code 1 when the fit took more than the limit."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.npy"
        subprocess.run([sys.executable, __file__, "write", str(path)], check=True)
        answer = subprocess.run(
            [sys.executable, __file__, "fit", str(path)], check=True, capture_output=True, text=True
        )
    seconds, peak, before, tenth, last = map(float, answer.stdout.split())
    print(f"{ROWS:,} × {FEATURES} from disk in {seconds:.1f} s on {torch.get_num_threads()} threads")
    print(f"largest memory {peak:.2f} GiB ({before:.2f} with the libraries alone), at most {LIMIT}")
    print(f"λ_10 = {tenth:.3f} (9), λ_{FEATURES} = {last:.3f} (1)")
    sys.exit(1 if peak > LIMIT or abs(tenth - 9) > 0.1 or abs(last - 1) > 0.1 else 0)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        {"write": write, "fit": fit}[sys.argv[1]](Path(sys.argv[2]))
    else:
        main()
