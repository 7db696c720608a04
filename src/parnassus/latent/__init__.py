"""Latent-variable models: PCA, autoencoders, variational autoencoders and energy-based models."""

from parnassus.latent.autoencoders.autoencoder import (
    Autoencoder,
    mean_reconstruction_error,
    shallow_autoencoder,
)
from parnassus.latent.autoencoders.convolutional_networks import (
    conv_decoder,
    conv_encoder,
    image_networks,
    residual_block,
)
from parnassus.latent.autoencoders.denoising_autoencoder import (
    DenoisingAutoencoder,
    exact_denoiser,
    linear_denoiser_matrix,
    psnr,
)
from parnassus.latent.autoencoders.dense_networks import dense_decoder, dense_encoder, mlp_decoder, mlp_encoder
from parnassus.latent.autoencoders.penalties import (
    code_l2_penalty,
    code_penalty,
    contractive_penalty,
    kl_sparsity_penalty,
    l1_penalty,
)
from parnassus.latent.energy_based.boltzmann_distribution import (
    boltzmann_distribution,
    free_energy,
    log_partition,
    min_free_energy,
)
from parnassus.latent.energy_based.hamiltonian_monte_carlo import hmc_step, leapfrog
from parnassus.latent.energy_based.helmholtz_machine import HelmholtzMachine, bernoulli_log_prob
from parnassus.latent.energy_based.markov_chain_monte_carlo import ChainState, gibbs_sampling, metropolis_sampling
from parnassus.latent.energy_based.restricted_boltzmann_machine import (
    RBM,
    ContrastiveDivergence,
    PersistentContrastiveDivergence,
)
from parnassus.latent.latent_space.interpolation import (
    latent_traversal,
    linear_interpolation,
    spherical_interpolation,
)
from parnassus.latent.likelihood_estimation.annealed_importance_sampling import (
    AISEstimate,
    ReverseAISEstimate,
    ais_log_evidence,
    ais_log_partition,
    anneal,
    geometric_path,
    reverse_ais_log_evidence,
    reverse_anneal,
    sigmoid_inverse_temperatures,
)
from parnassus.latent.likelihood_estimation.importance_sampling import LatentVariableModel, importance_likelihood
from parnassus.latent.linear.covariance_spectrum import (
    Spectrum,
    spectrum_by_eigh,
    spectrum_by_randomised_svd,
    spectrum_by_svd,
)
from parnassus.latent.linear.incremental_pca import covariance_of_batches, incremental_pca, read_npy_batches
from parnassus.latent.linear.linear_autoencoder import LinearAutoencoder
from parnassus.latent.linear.linear_vae import LinearVAE, fit_by_lbfgs
from parnassus.latent.linear.number_of_components import bic_by_size, log_likelihood_by_size, num_free_parameters
from parnassus.latent.linear.pca import PCA
from parnassus.latent.linear.probabilistic_pca import PPCA, ppca_em_iterates, ppca_em_step
from parnassus.latent.linear.projection import principal_angles, projection_matrix, pseudo_inverse
from parnassus.latent.linear.running_covariance import RunningCovariance
from parnassus.latent.linear.water_filling import WaterFilling, water_filling
from parnassus.latent.variational.aggregated_posterior import (
    CodeInformation,
    active_units,
    code_information,
    log_aggregated_posterior,
    model_rate_per_unit,
    rate_per_unit,
    second_moments,
)
from parnassus.latent.variational.conditional_vae import ConditionalVAE
from parnassus.latent.variational.decoders import BernoulliDecoder, GaussianDecoder, HeteroscedasticGaussianDecoder
from parnassus.latent.variational.deep_latent_gaussian import FullCovarianceDecoder, LinearGaussian
from parnassus.latent.variational.elbo import NegativeELBO, Objective, VAETerms, mean_rate_and_distortion
from parnassus.latent.variational.full_covariance_vae import (
    FullCovarianceVAE,
    gaussian_from_parameters,
    num_gaussian_parameters,
    reparametrise_full_covariance,
)
from parnassus.latent.variational.gradient_estimators import (
    GradientEstimator,
    analytic_kl_gradient,
    bonnet_price_derivatives,
    bonnet_price_gradient,
    finite_difference_gradient,
    fixed_sample_gradient,
    reparametrisation_gradient,
    score_function_gradient,
    score_function_gradient_with_baseline,
)
from parnassus.latent.variational.info_vae import InfoVAE
from parnassus.latent.variational.iwae import ImportanceWeightedELBO
from parnassus.latent.variational.ladder_vae import (
    LadderVAE,
    LadderVAETerms,
    encoder_only_posterior,
    precision_weighted_posterior,
)
from parnassus.latent.variational.posterior_collapse import FreeBits, cyclical_kl_annealing, linear_kl_annealing
from parnassus.latent.variational.predictive_vae import CodeMetrics, PredictiveVAE, evaluate_code
from parnassus.latent.variational.reparametrisation import (
    GaussianParameters,
    independent_normal,
    reparametrise,
    standard_normal_kl,
)
from parnassus.latent.variational.vae import VAE
from parnassus.latent.vector_quantised.code_priors import IndependentPrior, NeighbourPrior
from parnassus.latent.vector_quantised.codebook import (
    Codebook,
    EMACodebook,
    codebook_perplexity,
    nearest_code_indices,
    straight_through,
)
from parnassus.latent.vector_quantised.vq_vae import VQVAE, code_grid_decoder, code_grid_encoder

__all__ = [
    "PCA",
    "PPCA",
    "RBM",
    "VAE",
    "VQVAE",
    "AISEstimate",
    "Autoencoder",
    "BernoulliDecoder",
    "ChainState",
    "CodeInformation",
    "CodeMetrics",
    "Codebook",
    "ConditionalVAE",
    "ContrastiveDivergence",
    "DenoisingAutoencoder",
    "EMACodebook",
    "FreeBits",
    "FullCovarianceDecoder",
    "FullCovarianceVAE",
    "GaussianDecoder",
    "GaussianParameters",
    "GradientEstimator",
    "HelmholtzMachine",
    "HeteroscedasticGaussianDecoder",
    "ImportanceWeightedELBO",
    "IndependentPrior",
    "InfoVAE",
    "LadderVAE",
    "LadderVAETerms",
    "LatentVariableModel",
    "LinearAutoencoder",
    "LinearGaussian",
    "LinearVAE",
    "NegativeELBO",
    "NeighbourPrior",
    "Objective",
    "PersistentContrastiveDivergence",
    "PredictiveVAE",
    "ReverseAISEstimate",
    "RunningCovariance",
    "Spectrum",
    "VAETerms",
    "WaterFilling",
    "active_units",
    "ais_log_evidence",
    "ais_log_partition",
    "analytic_kl_gradient",
    "anneal",
    "bernoulli_log_prob",
    "bic_by_size",
    "boltzmann_distribution",
    "bonnet_price_derivatives",
    "bonnet_price_gradient",
    "code_grid_decoder",
    "code_grid_encoder",
    "code_information",
    "code_l2_penalty",
    "code_penalty",
    "codebook_perplexity",
    "contractive_penalty",
    "conv_decoder",
    "conv_encoder",
    "covariance_of_batches",
    "cyclical_kl_annealing",
    "dense_decoder",
    "dense_encoder",
    "encoder_only_posterior",
    "evaluate_code",
    "exact_denoiser",
    "finite_difference_gradient",
    "fit_by_lbfgs",
    "fixed_sample_gradient",
    "free_energy",
    "gaussian_from_parameters",
    "geometric_path",
    "gibbs_sampling",
    "hmc_step",
    "image_networks",
    "importance_likelihood",
    "incremental_pca",
    "independent_normal",
    "kl_sparsity_penalty",
    "l1_penalty",
    "latent_traversal",
    "leapfrog",
    "linear_denoiser_matrix",
    "linear_interpolation",
    "linear_kl_annealing",
    "log_aggregated_posterior",
    "log_likelihood_by_size",
    "log_partition",
    "mean_rate_and_distortion",
    "mean_reconstruction_error",
    "metropolis_sampling",
    "min_free_energy",
    "mlp_decoder",
    "mlp_encoder",
    "model_rate_per_unit",
    "nearest_code_indices",
    "num_free_parameters",
    "num_gaussian_parameters",
    "ppca_em_iterates",
    "ppca_em_step",
    "precision_weighted_posterior",
    "principal_angles",
    "projection_matrix",
    "pseudo_inverse",
    "psnr",
    "rate_per_unit",
    "read_npy_batches",
    "reparametrisation_gradient",
    "reparametrise",
    "reparametrise_full_covariance",
    "residual_block",
    "reverse_ais_log_evidence",
    "reverse_anneal",
    "score_function_gradient",
    "score_function_gradient_with_baseline",
    "second_moments",
    "shallow_autoencoder",
    "sigmoid_inverse_temperatures",
    "spectrum_by_eigh",
    "spectrum_by_randomised_svd",
    "spectrum_by_svd",
    "spherical_interpolation",
    "standard_normal_kl",
    "straight_through",
    "water_filling",
]
