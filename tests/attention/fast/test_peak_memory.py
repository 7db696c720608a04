"""Peak memory against sums by hand."""

import torch

from parnassus.attention.fast.peak_memory import peak_memory


def test_bytes_by_hand() -> None:
    x = torch.ones(1000)  # 4,000 bytes, there before
    assert peak_memory(lambda: x) == 0
    assert peak_memory(lambda: x[:10].view(2, 5)) == 0  # views hold nothing of their own
    assert peak_memory(lambda: x + 1) == 4_000
    assert peak_memory(lambda: (x + 1) + 1) == 8_000
    assert peak_memory(lambda: ((x + 1) + 1) + 1) == 8_000  # the first is gone when the third comes
    assert peak_memory(lambda: [x + 1 for _ in range(5)]) == 20_000
    assert peak_memory(lambda: (x + 1)[:5].sum() + 1) == 4_004
    assert peak_memory(lambda: x.add_(1)) == 0


def test_tensors_saved_by_autograd_are_counted() -> None:
    x = torch.ones(1000, requires_grad=True)
    assert peak_memory(lambda: x.exp().exp().exp()) == 12_000
