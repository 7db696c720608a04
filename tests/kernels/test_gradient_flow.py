"""Gradient flow with a fixed kernel, against the matrix exponential, real steps and solved systems."""

from math import inf

import pytest
import torch

from parnassus.kernels import GradientFlow

DOUBLE = torch.float64
ROOT = torch.randn(5, 7, generator=torch.Generator().manual_seed(0), dtype=DOUBLE)
KERNEL = ROOT @ ROOT.mT
START = torch.randn(5, 2, generator=torch.Generator().manual_seed(1), dtype=DOUBLE)
TARGET = torch.randn(5, 2, generator=torch.Generator().manual_seed(2), dtype=DOUBLE)


@pytest.mark.parametrize("time", [0.0, 0.03, 1.0])
def test_it_is_the_matrix_exponential(time: float) -> None:
    flow = GradientFlow.of(KERNEL)
    exact = TARGET + torch.linalg.matrix_exp(-time * KERNEL) @ (START - TARGET)
    torch.testing.assert_close(flow.outputs(START, TARGET, flow.at(time)), exact)
    torch.testing.assert_close(flow.outputs(START[:, 0], TARGET[:, 0], flow.at(time)), exact[:, 0])


def test_steps_are_steps() -> None:
    flow, u, f = GradientFlow.of(KERNEL), START, torch.zeros(3, 2, dtype=DOUBLE)
    cross = torch.randn(3, 7, generator=torch.Generator().manual_seed(3), dtype=DOUBLE) @ ROOT.mT
    for _ in range(6):
        f, u = f - 0.03 * cross @ (u - TARGET), u - 0.03 * KERNEL @ (u - TARGET)
    progress = flow.after(6, rate=0.03)
    torch.testing.assert_close(flow.outputs(START, TARGET, progress), u)
    torch.testing.assert_close(flow.predict(cross, START, TARGET, progress), f)


def test_the_end_solves_the_system() -> None:
    flow = GradientFlow.of(KERNEL)
    cross = torch.randn(3, 5, dtype=DOUBLE, generator=torch.Generator().manual_seed(3))
    exact = cross @ torch.linalg.solve(KERNEL, TARGET - START)
    torch.testing.assert_close(flow.predict(cross, START, TARGET, flow.at(inf)), exact)
    torch.testing.assert_close(flow.outputs(START, TARGET, flow.at(inf)), TARGET)
    torch.testing.assert_close(flow.matrix(flow.at(inf).gain), torch.linalg.inv(KERNEL))


def test_what_the_kernel_does_not_see_stays() -> None:
    thin = ROOT[:, :3]
    flow = GradientFlow.of(thin @ thin.mT)
    stays = flow.never_learned(START, TARGET)
    torch.testing.assert_close(flow.outputs(START, TARGET, flow.at(inf)), TARGET + stays)
    torch.testing.assert_close(thin.mT @ stays, torch.zeros(3, 2, dtype=DOUBLE))
    cross = ROOT[:2, :3] @ thin.mT
    least = cross @ torch.linalg.pinv(thin @ thin.mT, hermitian=True, rtol=1e-10) @ (TARGET - START)
    torch.testing.assert_close(flow.predict(cross, START, TARGET, flow.at(inf)), least)


def test_the_largest_stable_rate_parts_arriving_from_leaving() -> None:
    flow = GradientFlow.of(KERNEL)
    near, far = (flow.after(500, rate=share * flow.largest_stable_rate).left.abs().max() for share in (0.9, 1.1))
    assert float(near) < 1 < float(far)


def test_what_cannot_work_gets_a_sentence() -> None:
    with pytest.raises(ValueError, match="symmetric and positive semi-definite"):
        GradientFlow.of(-KERNEL)
    with pytest.raises(ValueError, match="symmetric and positive semi-definite; entries differ by"):
        GradientFlow.of(ROOT[:, :5])
    with pytest.raises(ValueError, match=r"time must not be negative; got time=-1\.0"):
        GradientFlow.of(KERNEL).at(-1.0)
    with pytest.raises(ValueError, match="need steps ≥ 0 and rate > 0"):
        GradientFlow.of(KERNEL).after(3, rate=0.0)
