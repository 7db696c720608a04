"""Peak memory of computations with known temporary tensors."""

import torch

from parnassus.attention.fast.peak_memory import peak_memory


def test_peak_memory_of_simple_computations() -> None:
    x = torch.ones(1000)  # 4,000 bytes, allocated beforehand
    assert peak_memory(lambda: x) == 0
    assert peak_memory(lambda: x[:10].view(2, 5)) == 0  # views allocate no memory
    assert peak_memory(lambda: x + 1) == 4_000
    assert peak_memory(lambda: (x + 1) + 1) == 8_000
    assert peak_memory(lambda: ((x + 1) + 1) + 1) == 8_000  # the first temporary is freed
    assert peak_memory(lambda: [x + 1 for _ in range(5)]) == 20_000
    assert peak_memory(lambda: (x + 1)[:5].sum() + 1) == 4_004
    assert peak_memory(lambda: x.add_(1)) == 0


def test_tensors_saved_by_autograd_are_counted() -> None:
    x = torch.ones(1000, requires_grad=True)
    assert peak_memory(lambda: x.exp().exp().exp()) == 12_000
