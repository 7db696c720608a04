"""Selection recovers the noise ratio that generated the data."""

import pytest
import torch

from parnassus.kernels import RBFKernel, SelectionCriterion, select_by_evidence, select_by_validation

RATIOS = [1e-4, 1e-3, 1e-2, 1e-1, 1.0]
EYE = torch.eye(200, dtype=torch.float64)


def sample_targets(ratio: float) -> tuple[torch.Tensor, torch.Tensor]:
    """A kernel on 200 points, and 20 draws with amplitude 3 and this ratio of noise."""
    torch.manual_seed(0)
    matrix = RBFKernel(0.3)(torch.rand(200, 2, dtype=torch.float64)).detach()
    root = torch.linalg.cholesky(3 * (matrix + ratio * EYE))
    return matrix, root @ torch.randn(200, 20, dtype=torch.float64)


@pytest.mark.parametrize("criterion", [select_by_evidence, select_by_validation])
@pytest.mark.parametrize("ratio", [1e-3, 1e-1])
def test_true_noise_ratio_is_selected(criterion: SelectionCriterion, ratio: float) -> None:
    matrix, t = sample_targets(ratio)
    assert criterion(matrix, t, RATIOS).ratio == pytest.approx(ratio)


@pytest.mark.parametrize("criterion", [select_by_evidence, select_by_validation])
def test_the_true_kernel_scores_best(criterion: SelectionCriterion) -> None:
    torch.manual_seed(0)
    x = torch.rand(200, 2, dtype=torch.float64)
    lengths = [0.1, 0.3, 1.0]
    _, t = sample_targets(1e-2)  # of the same points, with length 0.3
    scores = [criterion(RBFKernel(length)(x).detach(), t, RATIOS).score for length in lengths]
    assert max(scores) == scores[1]


def test_validation_holds_out_a_quarter() -> None:
    matrix, t = sample_targets(1e-2)
    choice = select_by_validation(matrix, t, [1e-2])
    error = matrix[150:, :150] @ torch.linalg.solve((matrix + 1e-2 * EYE)[:150, :150], t[:150]) - t[150:]
    assert choice.score == pytest.approx(-float(error.square().mean()))


def test_invalid_input_raises() -> None:
    matrix, t = sample_targets(1e-2)
    with pytest.raises(ValueError, match=r"noise_levels=\[0.0\]"):
        select_by_evidence(matrix, t, [0.0])
    with pytest.raises(ValueError, match="needs at least four; got 3"):
        select_by_validation(matrix[:3, :3], t[:3], RATIOS)
