"""Diffusion models: schedules, the process, objectives, samplers, guidance and the model that joins them."""

from parnassus.diffusion.annealed_langevin import annealed_langevin, annealed_langevin_path
from parnassus.diffusion.brownian import ito_sum, quadratic_variation, refine, stratonovich_sum, wiener
from parnassus.diffusion.conditioning import (
    Concatenation,
    ConditionedMLP,
    CrossAttention,
    FiLM,
    Multiplication,
    SelfAttention,
)
from parnassus.diffusion.ddpm import DDPM
from parnassus.diffusion.denoisers import ResidualMLP, TimeMLP, sinusoidal_embedding
from parnassus.diffusion.elbo import ElboTerms, elbo_terms
from parnassus.diffusion.energy_score import EnergyScore
from parnassus.diffusion.euler_maruyama import euler_maruyama, euler_maruyama_path
from parnassus.diffusion.fokker_planck import fokker_planck, fokker_planck_path, heat_kernel, stationary_density
from parnassus.diffusion.guidance import classifier_guided, clipped, guided, guided_at_once
from parnassus.diffusion.inversion import encode, encode_path, reconstruct
from parnassus.diffusion.langevin import adjusted_langevin, langevin, langevin_path
from parnassus.diffusion.learned_variance import hybrid, learned_ddpm, optimal_variance
from parnassus.diffusion.noise_levels import geometric_levels
from parnassus.diffusion.noisy_classifier import NoisyClassifier
from parnassus.diffusion.ornstein_uhlenbeck import OrnsteinUhlenbeck
from parnassus.diffusion.predictions import DATA, NOISE, SCORE, VELOCITY, AsNoise, Prediction
from parnassus.diffusion.probability_flow import flow_field, flow_log_prob, follow
from parnassus.diffusion.process import diffuse, posterior_mean, posterior_variance
from parnassus.diffusion.reverse_time import denoised, reverse, reverse_path
from parnassus.diffusion.samplers import ddim, ddim_path, ddpm, ddpm_path, even_grid, slerp
from parnassus.diffusion.schedules import (
    LearnableSchedule,
    Schedule,
    constant_schedule,
    cosine_schedule,
    linear_schedule,
    sigmoid_schedule,
)
from parnassus.diffusion.score_matching import (
    denoising_matching,
    explicit_matching,
    implicit_matching,
    matching_at_levels,
    sliced_matching,
)
from parnassus.diffusion.score_model import ScoreModel
from parnassus.diffusion.score_sde import ScoreSDE, matching_in_time
from parnassus.diffusion.sde import (
    NoisingSDE,
    of_schedule,
    sub_variance_preserving,
    time_of,
    towards_data,
    variance_exploding,
    variance_preserving,
)
from parnassus.diffusion.solvers import dpm, dpm_path, heun, heun_path
from parnassus.diffusion.surrogate import score_surrogate, surrogate
from parnassus.diffusion.transformer import DiffusionTransformer
from parnassus.diffusion.tweedie import tweedie_covariance, tweedie_mean
from parnassus.diffusion.unet import UNet
from parnassus.diffusion.variational_diffusion import RisingCurve, VariationalDiffusion

__all__ = [
    "DATA",
    "DDPM",
    "NOISE",
    "SCORE",
    "VELOCITY",
    "AsNoise",
    "Concatenation",
    "ConditionedMLP",
    "CrossAttention",
    "DiffusionTransformer",
    "ElboTerms",
    "EnergyScore",
    "FiLM",
    "LearnableSchedule",
    "Multiplication",
    "NoisingSDE",
    "NoisyClassifier",
    "OrnsteinUhlenbeck",
    "Prediction",
    "ResidualMLP",
    "RisingCurve",
    "Schedule",
    "ScoreModel",
    "ScoreSDE",
    "SelfAttention",
    "TimeMLP",
    "UNet",
    "VariationalDiffusion",
    "adjusted_langevin",
    "annealed_langevin",
    "annealed_langevin_path",
    "classifier_guided",
    "clipped",
    "constant_schedule",
    "cosine_schedule",
    "ddim",
    "ddim_path",
    "ddpm",
    "ddpm_path",
    "denoised",
    "denoising_matching",
    "diffuse",
    "dpm",
    "dpm_path",
    "elbo_terms",
    "encode",
    "encode_path",
    "euler_maruyama",
    "euler_maruyama_path",
    "even_grid",
    "explicit_matching",
    "flow_field",
    "flow_log_prob",
    "fokker_planck",
    "fokker_planck_path",
    "follow",
    "geometric_levels",
    "guided",
    "guided_at_once",
    "heat_kernel",
    "heun",
    "heun_path",
    "hybrid",
    "implicit_matching",
    "ito_sum",
    "langevin",
    "langevin_path",
    "learned_ddpm",
    "linear_schedule",
    "matching_at_levels",
    "matching_in_time",
    "of_schedule",
    "optimal_variance",
    "posterior_mean",
    "posterior_variance",
    "quadratic_variation",
    "reconstruct",
    "refine",
    "reverse",
    "reverse_path",
    "score_surrogate",
    "sigmoid_schedule",
    "sinusoidal_embedding",
    "slerp",
    "sliced_matching",
    "stationary_density",
    "stratonovich_sum",
    "sub_variance_preserving",
    "surrogate",
    "time_of",
    "towards_data",
    "tweedie_covariance",
    "tweedie_mean",
    "variance_exploding",
    "variance_preserving",
    "wiener",
]
