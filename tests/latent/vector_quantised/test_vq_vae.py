"""The VQ-VAE: encoding, decoding and straight-through gradients."""

import pytest
import torch

from parnassus.latent.vector_quantised.code_priors import IndependentPrior
from parnassus.latent.vector_quantised.codebook import Codebook, EMACodebook
from parnassus.latent.vector_quantised.vq_vae import VQVAE, code_grid_decoder, code_grid_encoder


def make_model(codebook: Codebook | EMACodebook) -> VQVAE:
    torch.manual_seed(0)
    prior = IndependentPrior(len(codebook.codes), 4)
    return VQVAE(code_grid_encoder(1, 3, width=4), code_grid_decoder(3, 1, width=4), codebook, prior, grid_shape=(2, 2))


def test_encode_decode_and_sample_shapes() -> None:
    vq, x = make_model(Codebook(5, 3)), torch.rand(6, 1, 8, 8)
    indices = vq.encode(x)
    assert indices.shape == (6, 2, 2)
    torch.testing.assert_close(vq.decode(indices), vq(x))
    assert vq.sample(7).shape == (7, 1, 8, 8)


def test_reconstruction_depends_only_on_the_codes() -> None:
    vq, x = make_model(Codebook(5, 3)), torch.rand(6, 1, 8, 8)
    equal_pairs = [(a, b) for a in range(6) for b in range(a) if torch.equal(vq.encode(x)[a], vq.encode(x)[b])]
    assert all(torch.allclose(vq(x)[a], vq(x)[b]) for a, b in equal_pairs)


def test_distortion_has_gradients_for_the_encoder_only() -> None:
    """With commitment 0 the encoder's gradient is straight-through; an EMA codebook has no parameters."""
    vq = make_model(EMACodebook(5, 3, commitment=0.0))
    vq.loss(torch.rand(6, 1, 8, 8)).backward()
    assert all(parameter.grad is not None and bool(parameter.grad.any()) for parameter in vq.encoder.parameters())
    assert all(not name.startswith("codebook") for name, _ in vq.named_parameters())


def test_ema_codebook_is_updated_only_in_training() -> None:
    vq, x = make_model(EMACodebook(5, 3)), torch.rand(6, 1, 8, 8)
    before = vq.codebook.codes.clone()
    vq.eval()
    vq.loss(x)
    torch.testing.assert_close(vq.codebook.codes, before)
    vq.train()
    vq.loss(x)
    assert not torch.equal(vq.codebook.codes, before)


def test_untrained_prior_is_uniform() -> None:
    vq = make_model(Codebook(8, 3))
    torch.testing.assert_close(vq.bits(vq.encode(torch.rand(6, 1, 8, 8))), torch.full((6,), 4 * 3.0))


def test_prior_of_another_grid_raises_value_error() -> None:
    with pytest.raises(ValueError, match=r"one position per code; got positions=4, grid_shape=\(7, 7\)"):
        VQVAE(
            code_grid_encoder(1, 3), code_grid_decoder(3, 1), Codebook(5, 3), IndependentPrior(5, 4), grid_shape=(7, 7)
        )
