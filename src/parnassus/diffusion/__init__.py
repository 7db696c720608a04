"""Diffusion models: noise schedules, objectives, scores, networks, samplers, guidance."""

from parnassus.diffusion.chain.elbo import DiffusionElboTerms, elbo_terms
from parnassus.diffusion.chain.forward_process import diffuse
from parnassus.diffusion.chain.gaussian_posterior import posterior_mean, posterior_variance
from parnassus.diffusion.chain.learned_variance import hybrid_objective, learned_variance_ddpm, optimal_variance
from parnassus.diffusion.chain.predictions import DATA, NOISE, SCORE, VELOCITY, NoisePredictor, PredictionType
from parnassus.diffusion.chain.schedules import (
    LearnableSchedule,
    Schedule,
    constant_schedule,
    cosine_schedule,
    linear_schedule,
    sigmoid_schedule,
)
from parnassus.diffusion.chain.surrogate_loss import score_surrogate_loss, surrogate_loss
from parnassus.diffusion.continuous.brownian_motion import (
    ito_sum,
    quadratic_variation,
    refine_path,
    stratonovich_sum,
    wiener_process,
)
from parnassus.diffusion.continuous.euler_maruyama import euler_maruyama, euler_maruyama_path
from parnassus.diffusion.continuous.fokker_planck import (
    fokker_planck,
    fokker_planck_path,
    heat_kernel,
    stationary_density,
)
from parnassus.diffusion.continuous.ornstein_uhlenbeck import OrnsteinUhlenbeck
from parnassus.diffusion.continuous.probability_flow import (
    probability_flow_field,
    probability_flow_log_prob,
    solve_probability_flow,
)
from parnassus.diffusion.continuous.reverse_sde import denoise, reverse_sde, reverse_sde_path
from parnassus.diffusion.continuous.sde import (
    NoisingSDE,
    sde_from_schedule,
    sub_variance_preserving,
    time_at_noise_ratio,
    variance_exploding,
    variance_preserving,
)
from parnassus.diffusion.continuous.time_grids import reverse_times
from parnassus.diffusion.guidance import (
    batched_classifier_free_guidance,
    classifier_free_guidance,
    classifier_guidance,
    clip_x0,
)
from parnassus.diffusion.models.ddpm import DDPM
from parnassus.diffusion.models.score_model import ScoreModel
from parnassus.diffusion.models.score_sde import ScoreSDE, continuous_score_matching
from parnassus.diffusion.models.variational_diffusion import MonotoneCurve, VariationalDiffusion
from parnassus.diffusion.networks.conditioning import (
    Concatenation,
    ConditionedMLP,
    CrossAttention,
    FiLM,
    Multiplication,
    SpatialSelfAttention,
)
from parnassus.diffusion.networks.diffusion_transformer import DiffusionTransformer
from parnassus.diffusion.networks.mlp_denoisers import ResidualMLP, TimeMLP
from parnassus.diffusion.networks.noisy_classifier import NoisyClassifier
from parnassus.diffusion.networks.timestep_embedding import sinusoidal_embedding
from parnassus.diffusion.networks.unet import UNet
from parnassus.diffusion.samplers.annealed_langevin import annealed_langevin, annealed_langevin_path
from parnassus.diffusion.samplers.ddim import ddim, ddim_path
from parnassus.diffusion.samplers.ddim_inversion import ddim_inversion, ddim_inversion_path, ddim_reconstruction
from parnassus.diffusion.samplers.ddpm import ddpm, ddpm_path
from parnassus.diffusion.samplers.dpm_solver import dpm_solver, dpm_solver_path
from parnassus.diffusion.samplers.heun import heun_path, heun_sampler
from parnassus.diffusion.samplers.langevin import adjusted_langevin, langevin, langevin_path
from parnassus.diffusion.samplers.time_steps import evenly_spaced_steps
from parnassus.diffusion.scores.energy_based_score import EnergyBasedScore
from parnassus.diffusion.scores.noise_levels import geometric_levels
from parnassus.diffusion.scores.score_matching import (
    denoising_score_matching,
    explicit_score_matching,
    implicit_score_matching,
    multiscale_score_matching,
    sliced_score_matching,
)
from parnassus.diffusion.scores.tweedie import tweedie_covariance, tweedie_mean
from parnassus.probability.distributions.slerp import slerp

__all__ = [
    "DATA",
    "DDPM",
    "NOISE",
    "SCORE",
    "VELOCITY",
    "Concatenation",
    "ConditionedMLP",
    "CrossAttention",
    "DiffusionElboTerms",
    "DiffusionTransformer",
    "EnergyBasedScore",
    "FiLM",
    "LearnableSchedule",
    "MonotoneCurve",
    "Multiplication",
    "NoisePredictor",
    "NoisingSDE",
    "NoisyClassifier",
    "OrnsteinUhlenbeck",
    "PredictionType",
    "ResidualMLP",
    "Schedule",
    "ScoreModel",
    "ScoreSDE",
    "SpatialSelfAttention",
    "TimeMLP",
    "UNet",
    "VariationalDiffusion",
    "adjusted_langevin",
    "annealed_langevin",
    "annealed_langevin_path",
    "batched_classifier_free_guidance",
    "classifier_free_guidance",
    "classifier_guidance",
    "clip_x0",
    "constant_schedule",
    "continuous_score_matching",
    "cosine_schedule",
    "ddim",
    "ddim_inversion",
    "ddim_inversion_path",
    "ddim_path",
    "ddim_reconstruction",
    "ddpm",
    "ddpm_path",
    "denoise",
    "denoising_score_matching",
    "diffuse",
    "dpm_solver",
    "dpm_solver_path",
    "elbo_terms",
    "euler_maruyama",
    "euler_maruyama_path",
    "evenly_spaced_steps",
    "explicit_score_matching",
    "fokker_planck",
    "fokker_planck_path",
    "geometric_levels",
    "heat_kernel",
    "heun_path",
    "heun_sampler",
    "hybrid_objective",
    "implicit_score_matching",
    "ito_sum",
    "langevin",
    "langevin_path",
    "learned_variance_ddpm",
    "linear_schedule",
    "multiscale_score_matching",
    "optimal_variance",
    "posterior_mean",
    "posterior_variance",
    "probability_flow_field",
    "probability_flow_log_prob",
    "quadratic_variation",
    "refine_path",
    "reverse_sde",
    "reverse_sde_path",
    "reverse_times",
    "score_surrogate_loss",
    "sde_from_schedule",
    "sigmoid_schedule",
    "sinusoidal_embedding",
    "slerp",
    "sliced_score_matching",
    "solve_probability_flow",
    "stationary_density",
    "stratonovich_sum",
    "sub_variance_preserving",
    "surrogate_loss",
    "time_at_noise_ratio",
    "tweedie_covariance",
    "tweedie_mean",
    "variance_exploding",
    "variance_preserving",
    "wiener_process",
]
