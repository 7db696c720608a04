"""Diffusion models: schedules, the process, objectives, samplers, guidance and the model that joins them."""

from parnassus.diffusion.ddpm import DDPM
from parnassus.diffusion.denoisers import ResidualMLP, TimeMLP, sinusoidal_embedding
from parnassus.diffusion.elbo import ElboTerms, elbo_terms
from parnassus.diffusion.guidance import classifier_guided, clipped, guided, guided_at_once
from parnassus.diffusion.process import diffuse, posterior_mean, posterior_variance
from parnassus.diffusion.samplers import ddim, ddim_path, ddpm, ddpm_path, even_grid, slerp
from parnassus.diffusion.schedules import (
    LearnableSchedule,
    Schedule,
    constant_schedule,
    cosine_schedule,
    linear_schedule,
    sigmoid_schedule,
)

__all__ = [
    "DDPM",
    "ElboTerms",
    "LearnableSchedule",
    "ResidualMLP",
    "Schedule",
    "TimeMLP",
    "classifier_guided",
    "clipped",
    "constant_schedule",
    "cosine_schedule",
    "ddim",
    "ddim_path",
    "ddpm",
    "ddpm_path",
    "diffuse",
    "elbo_terms",
    "even_grid",
    "guided",
    "guided_at_once",
    "linear_schedule",
    "posterior_mean",
    "posterior_variance",
    "sigmoid_schedule",
    "sinusoidal_embedding",
    "slerp",
]
