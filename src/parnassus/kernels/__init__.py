"""Kernels: Gaussian processes, and networks of infinite width (NNGP and neural tangent kernel)."""

from parnassus.kernels.finite_width.backpropagation import (
    Signals,
    layer_weights,
    layerwise_ntk,
    network_outputs,
    propagate_signals,
    random_weights,
    train_networks,
)
from parnassus.kernels.finite_width.empirical_ntk import (
    empirical_ntk,
    full_empirical_ntk,
    jacobian_ntk,
    ntk_vector_product,
)
from parnassus.kernels.finite_width.factored_gradients import FactoredGradients
from parnassus.kernels.finite_width.width_effects import (
    KernelStatistics,
    TrainingRecord,
    kernel_statistics,
    train_and_measure,
    width_exponent,
)
from parnassus.kernels.gaussian_processes.blocked_regression import BlockedRegression
from parnassus.kernels.gaussian_processes.calibration import (
    CalibrationCurve,
    Reliability,
    class_probabilities,
    interval_coverage,
    negative_log_density,
    reliability,
    root_mean_squared_error,
    wilson_interval,
)
from parnassus.kernels.gaussian_processes.covariance import (
    BrownianKernel,
    FeatureKernel,
    Kernel,
    LinearKernel,
    OrnsteinUhlenbeckKernel,
    ProductKernel,
    RBFKernel,
    ScaledKernel,
    SumKernel,
)
from parnassus.kernels.gaussian_processes.gp_regression import GPPrediction, GPRegression
from parnassus.kernels.gaussian_processes.gpytorch_kernel import as_gpytorch
from parnassus.kernels.gaussian_processes.hyperparameters import (
    HyperparameterFit,
    TrainableKernel,
    learn_hyperparameters,
)
from parnassus.kernels.gaussian_processes.model_selection import (
    SelectedRatio,
    SelectionCriterion,
    select_by_evidence,
    select_by_validation,
)
from parnassus.kernels.gaussian_processes.process import GaussianProcess, SamplePaths, brownian_paths, zero_mean
from parnassus.kernels.infinite_width.attention import Attention, TiedAttention, identity_scores
from parnassus.kernels.infinite_width.compiled import CompiledLayer
from parnassus.kernels.infinite_width.convolution import Convolution, ScaledConvolution, moving_mean
from parnassus.kernels.infinite_width.kernel_state import KernelState
from parnassus.kernels.infinite_width.layer import Activation, Dense, Layer, ScaledLinear, Shape
from parnassus.kernels.infinite_width.layer_kernels import LayerKernels, layer_kernels
from parnassus.kernels.infinite_width.network import Kernels, Network, fully_connected
from parnassus.kernels.infinite_width.nngp_and_ntk import NNGP, NTK
from parnassus.kernels.infinite_width.nonlinearity import (
    GELU,
    Cosine,
    Erf,
    Expectations,
    Identity,
    LeakyReLU,
    Nonlinearity,
    ReLU,
    Sine,
    normaliser,
)
from parnassus.kernels.infinite_width.pooling import AveragePooling, Flatten, GlobalAveragePooling
from parnassus.kernels.infinite_width.quadrature import Quadrature, gauss_hermite
from parnassus.kernels.infinite_width.residual import Branches, Parallel, Residual
from parnassus.kernels.infinite_width.trainable_dense import TrainableDense
from parnassus.kernels.solvers.jittered_cholesky import JitteredRoot, jittered_cholesky
from parnassus.kernels.solvers.kernel_matrix import KernelMatrix, evaluate_in_blocks, free_bytes
from parnassus.kernels.solvers.linear_solvers import (
    CholeskySolver,
    ConjugateGradients,
    LinearSolver,
    Preconditioner,
    Solution,
    choose_solver,
    pivoted_cholesky,
    relative_residual,
)
from parnassus.kernels.training_dynamics.gradient_flow import GradientFlow, ModeConvergence
from parnassus.kernels.training_dynamics.infinite_ensemble import (
    InfiniteEnsemble,
    input_mutual_information,
    label_mutual_information,
)
from parnassus.kernels.training_dynamics.kernel_spectrum import AmplitudeFit, KernelSpectrum

__all__ = [
    "GELU",
    "NNGP",
    "NTK",
    "Activation",
    "AmplitudeFit",
    "Attention",
    "AveragePooling",
    "BlockedRegression",
    "Branches",
    "BrownianKernel",
    "CalibrationCurve",
    "CholeskySolver",
    "CompiledLayer",
    "ConjugateGradients",
    "Convolution",
    "Cosine",
    "Dense",
    "Erf",
    "Expectations",
    "FactoredGradients",
    "FeatureKernel",
    "Flatten",
    "GPPrediction",
    "GPRegression",
    "GaussianProcess",
    "GlobalAveragePooling",
    "GradientFlow",
    "HyperparameterFit",
    "Identity",
    "InfiniteEnsemble",
    "JitteredRoot",
    "Kernel",
    "KernelMatrix",
    "KernelSpectrum",
    "KernelState",
    "KernelStatistics",
    "Kernels",
    "Layer",
    "LayerKernels",
    "LeakyReLU",
    "LinearKernel",
    "LinearSolver",
    "ModeConvergence",
    "Network",
    "Nonlinearity",
    "OrnsteinUhlenbeckKernel",
    "Parallel",
    "Preconditioner",
    "ProductKernel",
    "Quadrature",
    "RBFKernel",
    "ReLU",
    "Reliability",
    "Residual",
    "SamplePaths",
    "ScaledConvolution",
    "ScaledKernel",
    "ScaledLinear",
    "SelectedRatio",
    "SelectionCriterion",
    "Shape",
    "Signals",
    "Sine",
    "Solution",
    "SumKernel",
    "TiedAttention",
    "TrainableDense",
    "TrainableKernel",
    "TrainingRecord",
    "as_gpytorch",
    "brownian_paths",
    "choose_solver",
    "class_probabilities",
    "empirical_ntk",
    "evaluate_in_blocks",
    "free_bytes",
    "full_empirical_ntk",
    "fully_connected",
    "gauss_hermite",
    "identity_scores",
    "input_mutual_information",
    "interval_coverage",
    "jacobian_ntk",
    "jittered_cholesky",
    "kernel_statistics",
    "label_mutual_information",
    "layer_kernels",
    "layer_weights",
    "layerwise_ntk",
    "learn_hyperparameters",
    "moving_mean",
    "negative_log_density",
    "network_outputs",
    "normaliser",
    "ntk_vector_product",
    "pivoted_cholesky",
    "propagate_signals",
    "random_weights",
    "relative_residual",
    "reliability",
    "root_mean_squared_error",
    "select_by_evidence",
    "select_by_validation",
    "train_and_measure",
    "train_networks",
    "width_exponent",
    "wilson_interval",
    "zero_mean",
]
