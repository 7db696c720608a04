"""Sampling from categorical distributions."""

import torch

from parnassus.reinforcement.tabular.categorical_sampling import sample_categorical


def test_sample_frequencies_match_row_probabilities() -> None:
    probabilities = torch.tensor([[0.0, 0.3, 0.0, 0.7, 0.0], [0.5, 0.0, 0.25, 0.0, 0.25]], dtype=torch.float64)
    samples = sample_categorical(probabilities.repeat_interleave(50_000, 0), torch.Generator().manual_seed(0)).view(
        2, -1
    )
    frequencies = torch.stack([torch.bincount(row, minlength=5) / 50_000 for row in samples]).double()
    assert bool((frequencies[probabilities == 0] == 0).all())
    torch.testing.assert_close(frequencies, probabilities, atol=0.01, rtol=0)


def test_unnormalised_weights() -> None:
    samples = sample_categorical(torch.tensor([[2.0, 6.0]]).expand(40_000, 2), torch.Generator().manual_seed(0))
    assert abs(float(samples.double().mean()) - 0.75) < 0.01
