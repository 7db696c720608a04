"""Vector quantisation: nearest codes, straight-through gradients and EMA updates."""

import pytest
import torch

from parnassus.latent.vector_quantised.codebook import (
    Codebook,
    EMACodebook,
    codebook_perplexity,
    nearest_code_indices,
    straight_through,
)


def test_nearest_code_indices_match_cdist() -> None:
    torch.manual_seed(0)
    z, codes = torch.randn(3, 5, 4), torch.randn(7, 4)
    torch.testing.assert_close(nearest_code_indices(z, codes), torch.cdist(z, codes).argmin(-1))


def test_straight_through_value_and_gradient() -> None:
    z, e = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([5.0, -1.0], requires_grad=True)
    out = straight_through(z, e)
    torch.testing.assert_close(out, e)
    (out * torch.tensor([3.0, 4.0])).sum().backward()
    assert z.grad is not None
    assert z.grad.tolist() == [3.0, 4.0]
    assert e.grad is None


def test_perplexity_counts_codes_in_use() -> None:
    assert float(codebook_perplexity(torch.tensor([2, 2, 2]), 4)) == pytest.approx(1)
    assert float(codebook_perplexity(torch.arange(8) % 4, 4)) == pytest.approx(4)
    assert float(codebook_perplexity(torch.tensor([0, 0, 1, 1]), 9)) == pytest.approx(2)


def test_codebook_loss_and_gradients_match_hand_computation() -> None:
    codebook = Codebook(1, 2, commitment=0.25)
    with torch.no_grad():
        codebook.codes.copy_(torch.tensor([[1.0, 1.0]]))
    z = torch.tensor([[0.0, 3.0]], requires_grad=True)
    loss = codebook.loss(z, codebook(z))
    assert float(loss.detach()) == pytest.approx(1.25 * 2.5)
    loss.backward()
    assert z.grad is not None
    assert codebook.codes.grad is not None
    torch.testing.assert_close(codebook.codes.grad, torch.tensor([[1.0, -2.0]]))
    torch.testing.assert_close(z.grad, 0.25 * torch.tensor([[-1.0, 2.0]]))


def test_ema_codes_converge_to_cluster_means() -> None:
    torch.manual_seed(0)
    codebook = EMACodebook(2, 1, decay=0.5, restart_threshold=0.0)
    codebook.codes.copy_(torch.tensor([[-1.0], [1.0]]))
    z = torch.tensor([[-4.0], [-2.0], [5.0], [7.0], [9.0]])
    for _ in range(60):
        codebook.update(z, codebook(z))
    torch.testing.assert_close(codebook.codes, torch.tensor([[-3.0], [7.0]]))


def test_unused_codes_restart_below_the_threshold() -> None:
    torch.manual_seed(0)
    z = torch.randn(100, 2)
    for threshold, is_restarted in ((0.0, False), (0.1, True)):
        codebook = EMACodebook(3, 2, decay=0.5, restart_threshold=threshold)
        codebook.codes.copy_(torch.tensor([[0.0, 0.0], [0.5, 0.5], [50.0, 50.0]]))
        codebook.sums.copy_(codebook.codes)
        for _ in range(30):
            codebook.update(z, codebook(z))
        assert (float(codebook.codes[2].norm()) < 10) == is_restarted
        assert bool(codebook.codes.isfinite().all())


def test_invalid_sizes_raise() -> None:
    with pytest.raises(ValueError, match="commitment not negative; got count=0"):
        Codebook(0, 2)
    with pytest.raises(ValueError, match=r"must lie in \[0, 1\); got decay=1"):
        EMACodebook(2, 2, decay=1.0)
