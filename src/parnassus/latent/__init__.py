"""Latent variables: PCA, autoencoders and the maps they draw."""

from parnassus.latent.autoencoder import Autoencoder, bottleneck, dense_decoder, dense_encoder
from parnassus.latent.denoising import DenoisingAutoencoder, gaussian_denoiser, ideal_denoiser, psnr
from parnassus.latent.linear_autoencoder import LinearAutoencoder
from parnassus.latent.pca import PCA
from parnassus.latent.penalties import contractive, kl_sparsity, l1, l2, on_code
from parnassus.latent.projection import principal_angles, projection, pseudo_inverse

__all__ = [
    "PCA",
    "Autoencoder",
    "DenoisingAutoencoder",
    "LinearAutoencoder",
    "bottleneck",
    "contractive",
    "dense_decoder",
    "dense_encoder",
    "gaussian_denoiser",
    "ideal_denoiser",
    "kl_sparsity",
    "l1",
    "l2",
    "on_code",
    "principal_angles",
    "projection",
    "pseudo_inverse",
    "psnr",
]
