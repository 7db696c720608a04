"""Draws follow their laws."""

import torch

from parnassus.reinforcement.tabular.categorical_sampling import sample_categorical


def test_each_row_has_its_own_law_and_zeros_are_never_drawn() -> None:
    laws = torch.tensor([[0.0, 0.3, 0.0, 0.7, 0.0], [0.5, 0.0, 0.25, 0.0, 0.25]], dtype=torch.float64)
    drawn = sample_categorical(laws.repeat_interleave(50_000, 0), torch.Generator().manual_seed(0)).view(2, -1)
    shares = torch.stack([torch.bincount(row, minlength=5) / 50_000 for row in drawn]).double()
    assert bool((shares[laws == 0] == 0).all())
    torch.testing.assert_close(shares, laws, atol=0.01, rtol=0)


def test_weights_need_not_sum_to_one() -> None:
    drawn = sample_categorical(torch.tensor([[2.0, 6.0]]).expand(40_000, 2), torch.Generator().manual_seed(0))
    assert abs(float(drawn.double().mean()) - 0.75) < 0.01
