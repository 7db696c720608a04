"""Kernels: Gaussian processes, and the ones that infinitely wide networks are."""

from parnassus.kernels.attention import Attention, TiedAttention, scores_alone
from parnassus.kernels.backward import (
    Signals,
    layerwise_ntk,
    network_outputs,
    random_weights,
    signals,
    train_many,
    weights_of,
)
from parnassus.kernels.blocked_regression import BlockedRegression
from parnassus.kernels.blocks import KernelMatrix, blocked, free_bytes
from parnassus.kernels.calibration import (
    Reliability,
    class_probabilities,
    coverage,
    negative_log_density,
    reliability,
    root_mean_square,
    share_interval,
)
from parnassus.kernels.convolution import Convolution, ScaledConvolution, moving_mean
from parnassus.kernels.covariance import (
    RBF,
    Brownian,
    FeatureKernel,
    Kernel,
    Linear,
    OrnsteinUhlenbeck,
    Product,
    Scaled,
    Sum,
    squared_distances,
)
from parnassus.kernels.empirical import empirical_ntk, empirical_ntk_of_outputs, jacobian_ntk, tangent_product
from parnassus.kernels.finite_width import Scatter, Training, kernel_scatter, train_and_measure, width_exponent
from parnassus.kernels.gp_regression import GPRegression, Prediction
from parnassus.kernels.gpytorch_kernel import as_gpytorch
from parnassus.kernels.gradient_flow import GradientFlow, Progress
from parnassus.kernels.hyperparameters import Learned, Tunable, learn_hyperparameters
from parnassus.kernels.information import InfiniteEnsemble, information_with_inputs, information_with_labels
from parnassus.kernels.jitter import JitteredRoot, jittered_cholesky
from parnassus.kernels.joined import Joined
from parnassus.kernels.judgement import Judgement
from parnassus.kernels.layer import Activation, Dense, Layer, ScaledLinear, Shape
from parnassus.kernels.learned_dense import LearnedDense
from parnassus.kernels.network import Kernels, Network, fully_connected
from parnassus.kernels.nonlinearity import (
    GELU,
    Cosine,
    Erf,
    Expected,
    Identity,
    Leaky,
    Nonlinearity,
    ReLU,
    Sine,
    normaliser,
)
from parnassus.kernels.pair import Pair
from parnassus.kernels.places import Places
from parnassus.kernels.pooling import AveragePooling, Flatten, GlobalAveragePooling
from parnassus.kernels.process import GaussianProcess, Paths, brownian_paths, zero_mean
from parnassus.kernels.quadrature import Quadrature, hermite
from parnassus.kernels.residual import Branches, Parallel, Residual
from parnassus.kernels.selection import Choice, Criterion, by_evidence, by_validation
from parnassus.kernels.solve import (
    CholeskySolver,
    ConjugateGradients,
    Preconditioner,
    Solution,
    Solver,
    pivoted_cholesky,
    relative_residual,
    solver_for,
)
from parnassus.kernels.spectrum import BestAmplitude, KernelSpectrum
from parnassus.kernels.tangent import LayerKernels, layer_kernels
from parnassus.kernels.wide_kernel import NNGP, NTK

__all__ = [
    "GELU",
    "NNGP",
    "NTK",
    "RBF",
    "Activation",
    "Attention",
    "AveragePooling",
    "BestAmplitude",
    "BlockedRegression",
    "Branches",
    "Brownian",
    "Choice",
    "CholeskySolver",
    "ConjugateGradients",
    "Convolution",
    "Cosine",
    "Criterion",
    "Dense",
    "Erf",
    "Expected",
    "FeatureKernel",
    "Flatten",
    "GPRegression",
    "GaussianProcess",
    "GlobalAveragePooling",
    "GradientFlow",
    "Identity",
    "InfiniteEnsemble",
    "JitteredRoot",
    "Joined",
    "Judgement",
    "Kernel",
    "KernelMatrix",
    "KernelSpectrum",
    "Kernels",
    "Layer",
    "LayerKernels",
    "Leaky",
    "Learned",
    "LearnedDense",
    "Linear",
    "Network",
    "Nonlinearity",
    "OrnsteinUhlenbeck",
    "Pair",
    "Parallel",
    "Paths",
    "Places",
    "Preconditioner",
    "Prediction",
    "Product",
    "Progress",
    "Quadrature",
    "ReLU",
    "Reliability",
    "Residual",
    "Scaled",
    "ScaledConvolution",
    "ScaledLinear",
    "Scatter",
    "Shape",
    "Signals",
    "Sine",
    "Solution",
    "Solver",
    "Sum",
    "TiedAttention",
    "Training",
    "Tunable",
    "as_gpytorch",
    "blocked",
    "brownian_paths",
    "by_evidence",
    "by_validation",
    "class_probabilities",
    "coverage",
    "empirical_ntk",
    "empirical_ntk_of_outputs",
    "free_bytes",
    "fully_connected",
    "hermite",
    "information_with_inputs",
    "information_with_labels",
    "jacobian_ntk",
    "jittered_cholesky",
    "kernel_scatter",
    "layer_kernels",
    "layerwise_ntk",
    "learn_hyperparameters",
    "moving_mean",
    "negative_log_density",
    "network_outputs",
    "normaliser",
    "pivoted_cholesky",
    "random_weights",
    "relative_residual",
    "reliability",
    "root_mean_square",
    "scores_alone",
    "share_interval",
    "signals",
    "solver_for",
    "squared_distances",
    "tangent_product",
    "train_and_measure",
    "train_many",
    "weights_of",
    "width_exponent",
    "zero_mean",
]
