"""Latent variables: PCA, autoencoders and the maps they draw."""

from parnassus.latent.aggregate import (
    CodeInformation,
    active_units,
    code_information,
    log_aggregate,
    rate_by_unit,
    second_moments,
)
from parnassus.latent.ais import (
    Annealed,
    ReverseAnnealed,
    anneal,
    annealed_evidence,
    annealed_log_partition,
    geometric_path,
    reverse_anneal,
    reverse_annealed_evidence,
    sigmoid_times,
)
from parnassus.latent.autoencoder import Autoencoder, bottleneck, dense_decoder, dense_encoder
from parnassus.latent.code_priors import IndependentPrior, NeighbourPrior
from parnassus.latent.collapse import FreeBits, cyclic_warm_up, warm_up
from parnassus.latent.conditional_vae import ConditionalVAE
from parnassus.latent.convolutional import conv_decoder, conv_encoder, residual_block
from parnassus.latent.decoders import BernoulliDecoder, GaussianDecoder, GaussianHeadsDecoder, independent_normal
from parnassus.latent.deep_latent_gaussian import CholeskyDecoder, LinearGaussian
from parnassus.latent.denoising import DenoisingAutoencoder, gaussian_denoiser, ideal_denoiser, psnr
from parnassus.latent.dense import flat_decoder, flat_encoder
from parnassus.latent.energy import boltzmann, free_energy, gibbs, least_free_energy, log_partition, metropolis
from parnassus.latent.full_covariance import (
    FullCovarianceVAE,
    correlated_reparametrise,
    normal_from_numbers,
    numbers_of_normal,
)
from parnassus.latent.gradients import (
    Estimator,
    NormalParameters,
    bonnet_price,
    by_curvature,
    by_differences,
    held_fixed,
    reparametrised,
    score_function,
    score_function_with_baseline,
    with_analytic_kl,
)
from parnassus.latent.helmholtz import HelmholtzMachine, bernoulli_log_prob
from parnassus.latent.hmc import hmc_step, leapfrog
from parnassus.latent.incremental_pca import moments_of_batches, pca_of_batches, rows_from_disk
from parnassus.latent.info_vae import InfoVAE
from parnassus.latent.ladder_vae import LadderTerms, LadderVAE, precision_weighted, reading_alone
from parnassus.latent.latent_size import bic_by_size, free_parameters, likelihood_by_size
from parnassus.latent.likelihood import Weighing, importance_likelihood
from parnassus.latent.linear_autoencoder import LinearAutoencoder
from parnassus.latent.linear_vae import LinearVAE, train_exactly
from parnassus.latent.moments import Moments
from parnassus.latent.objectives import ImportanceWeighted, NegativeELBO, Objective
from parnassus.latent.pca import PCA
from parnassus.latent.penalties import contractive, kl_sparsity, l1, l2, on_code
from parnassus.latent.ppca import PPCA, em_round, em_rounds
from parnassus.latent.prediction_head import Goals, PredictingVAE, three_goals
from parnassus.latent.projection import principal_angles, projection, pseudo_inverse
from parnassus.latent.rbm import RBM, FromData, Persistent
from parnassus.latent.spectrum import Spectrum, spectrum_by_eigh, spectrum_by_sketch, spectrum_by_svd
from parnassus.latent.vae import VAE, Terms, reparametrise, standard_normal_kl
from parnassus.latent.vector_quantiser import Codebook, MovingCodebook, nearest_code, perplexity, straight_through
from parnassus.latent.vq_vae import VQVAE, raster_decoder, raster_encoder
from parnassus.latent.walks import great_circle, straight, traverse
from parnassus.latent.water_filling import WaterFilling, water_filling

__all__ = [
    "PCA",
    "PPCA",
    "RBM",
    "VAE",
    "VQVAE",
    "Annealed",
    "Autoencoder",
    "BernoulliDecoder",
    "CholeskyDecoder",
    "CodeInformation",
    "Codebook",
    "ConditionalVAE",
    "DenoisingAutoencoder",
    "Estimator",
    "FreeBits",
    "FromData",
    "FullCovarianceVAE",
    "GaussianDecoder",
    "GaussianHeadsDecoder",
    "Goals",
    "HelmholtzMachine",
    "ImportanceWeighted",
    "IndependentPrior",
    "InfoVAE",
    "LadderTerms",
    "LadderVAE",
    "LinearAutoencoder",
    "LinearGaussian",
    "LinearVAE",
    "Moments",
    "MovingCodebook",
    "NegativeELBO",
    "NeighbourPrior",
    "NormalParameters",
    "Objective",
    "Persistent",
    "PredictingVAE",
    "ReverseAnnealed",
    "Spectrum",
    "Terms",
    "WaterFilling",
    "Weighing",
    "active_units",
    "anneal",
    "annealed_evidence",
    "annealed_log_partition",
    "bernoulli_log_prob",
    "bic_by_size",
    "boltzmann",
    "bonnet_price",
    "bottleneck",
    "by_curvature",
    "by_differences",
    "code_information",
    "contractive",
    "conv_decoder",
    "conv_encoder",
    "correlated_reparametrise",
    "cyclic_warm_up",
    "dense_decoder",
    "dense_encoder",
    "em_round",
    "em_rounds",
    "flat_decoder",
    "flat_encoder",
    "free_energy",
    "free_parameters",
    "gaussian_denoiser",
    "geometric_path",
    "gibbs",
    "great_circle",
    "held_fixed",
    "hmc_step",
    "ideal_denoiser",
    "importance_likelihood",
    "independent_normal",
    "kl_sparsity",
    "l1",
    "l2",
    "leapfrog",
    "least_free_energy",
    "likelihood_by_size",
    "log_aggregate",
    "log_partition",
    "metropolis",
    "moments_of_batches",
    "nearest_code",
    "normal_from_numbers",
    "numbers_of_normal",
    "on_code",
    "pca_of_batches",
    "perplexity",
    "precision_weighted",
    "principal_angles",
    "projection",
    "pseudo_inverse",
    "psnr",
    "raster_decoder",
    "raster_encoder",
    "rate_by_unit",
    "reading_alone",
    "reparametrise",
    "reparametrised",
    "residual_block",
    "reverse_anneal",
    "reverse_annealed_evidence",
    "rows_from_disk",
    "score_function",
    "score_function_with_baseline",
    "second_moments",
    "sigmoid_times",
    "spectrum_by_eigh",
    "spectrum_by_sketch",
    "spectrum_by_svd",
    "standard_normal_kl",
    "straight",
    "straight_through",
    "three_goals",
    "train_exactly",
    "traverse",
    "warm_up",
    "water_filling",
    "with_analytic_kl",
]
