"""Models with exact likelihood: normalising flows and autoregressive models of images (book sec. 13.1)."""

from parnassus.flows.autoregressive.autoregressive_flow import (
    AutoregressiveTransform,
    inverse_autoregressive_flow,
    masked_autoregressive_flow,
)
from parnassus.flows.autoregressive.conditioners import RecurrentConditioner, SeparateConditioners
from parnassus.flows.autoregressive.made import MADE, MaskedDense, autoregressive_masks, unit_degrees
from parnassus.flows.autoregressive.rational_quadratic_spline import (
    Knots,
    inverse_rational_quadratic_spline,
    rational_quadratic_spline,
)
from parnassus.flows.autoregressive.synthesizers import AffineSynthesizer, SplineSynthesizer, Synthesizer
from parnassus.flows.coupling.affine_coupling import AffineCoupling, AlternatingCouplings, zero_last_layer
from parnassus.flows.coupling.neural_spline_flow import SynthesizerCoupling, neural_spline_flow
from parnassus.flows.coupling.real_nvp import real_nvp
from parnassus.flows.evaluation import nll_and_divergence, round_trip_error
from parnassus.flows.flow import Chain, Flow, GaussianBase, InverseTransform, Invertible
from parnassus.flows.flow_distribution import FlowDistribution
from parnassus.flows.images.dequantisation import (
    DequantisedFlow,
    Logit,
    bits_per_dimension,
    count_grey_levels,
    dequantise,
    independent_bits,
    quantise,
)
from parnassus.flows.images.multiscale import MultiscaleTransform
from parnassus.flows.images.real_nvp_and_glow import ConvConditioner, PixelNorm, glow_step, image_flow, real_nvp_step
from parnassus.flows.images.squeeze import Squeeze, checkerboard_channels
from parnassus.flows.linear.actnorm import ActNorm
from parnassus.flows.linear.batch_norm import BatchNormFlow
from parnassus.flows.linear.invertible_1x1_convolution import InvertibleConv1x1
from parnassus.flows.linear.invertible_matrices import (
    DenseMatrix,
    HouseholderMatrix,
    InvertibleMatrix,
    PLUMatrix,
    TriangularMatrix,
    random_rotation,
)
from parnassus.flows.linear.linear_flow import LinearFlow, Permutation
from parnassus.flows.pixels.gated_pixelcnn import GatedStack, gated_pixelcnn
from parnassus.flows.pixels.pixel_model import CausalNetwork, PixelModel, bits_per_pixel, mean_nll, threshold_pixels
from parnassus.flows.pixels.pixel_rnn import PixelLSTM, pixel_rnn
from parnassus.flows.pixels.pixelcnn import MaskedConv2d, MaskedStack, causal_filter_mask, pixelcnn
from parnassus.flows.residual.continuous_flow import (
    ContinuousTransform,
    FlowSolver,
    TimeDependentField,
    dopri5,
    dopri5_adjoint,
)
from parnassus.flows.residual.jacobian_traces import (
    Directions,
    jacobian_trace,
    rademacher_directions,
    unit_directions,
    value_and_vjp,
)
from parnassus.flows.residual.lipschitz_networks import (
    SpectralBound,
    constrain_lipschitz,
    contractive_mlp,
    fixed_point_iterates,
    invert_residual,
    lipschitz_swish,
    spectral_norm,
)
from parnassus.flows.residual.residual_flow import (
    InvertibleResidual,
    LogDetEstimator,
    PowerSeriesLogDet,
    RussianRouletteLogDet,
    exact_log_det,
    residual_flow,
)
from parnassus.flows.reverse_kl import estimate_evidence, path_gradient_reverse_kl, reverse_kl

__all__ = [
    "MADE",
    "ActNorm",
    "AffineCoupling",
    "AffineSynthesizer",
    "AlternatingCouplings",
    "AutoregressiveTransform",
    "BatchNormFlow",
    "CausalNetwork",
    "Chain",
    "ContinuousTransform",
    "ConvConditioner",
    "DenseMatrix",
    "DequantisedFlow",
    "Directions",
    "Flow",
    "FlowDistribution",
    "FlowSolver",
    "GatedStack",
    "GaussianBase",
    "HouseholderMatrix",
    "InverseTransform",
    "Invertible",
    "InvertibleConv1x1",
    "InvertibleMatrix",
    "InvertibleResidual",
    "Knots",
    "LinearFlow",
    "LogDetEstimator",
    "Logit",
    "MaskedConv2d",
    "MaskedDense",
    "MaskedStack",
    "MultiscaleTransform",
    "PLUMatrix",
    "Permutation",
    "PixelLSTM",
    "PixelModel",
    "PixelNorm",
    "PowerSeriesLogDet",
    "RecurrentConditioner",
    "RussianRouletteLogDet",
    "SeparateConditioners",
    "SpectralBound",
    "SplineSynthesizer",
    "Squeeze",
    "Synthesizer",
    "SynthesizerCoupling",
    "TimeDependentField",
    "TriangularMatrix",
    "autoregressive_masks",
    "bits_per_dimension",
    "bits_per_pixel",
    "causal_filter_mask",
    "checkerboard_channels",
    "constrain_lipschitz",
    "contractive_mlp",
    "count_grey_levels",
    "dequantise",
    "dopri5",
    "dopri5_adjoint",
    "estimate_evidence",
    "exact_log_det",
    "fixed_point_iterates",
    "gated_pixelcnn",
    "glow_step",
    "image_flow",
    "independent_bits",
    "inverse_autoregressive_flow",
    "inverse_rational_quadratic_spline",
    "invert_residual",
    "jacobian_trace",
    "lipschitz_swish",
    "masked_autoregressive_flow",
    "mean_nll",
    "neural_spline_flow",
    "nll_and_divergence",
    "path_gradient_reverse_kl",
    "pixel_rnn",
    "pixelcnn",
    "quantise",
    "rademacher_directions",
    "random_rotation",
    "rational_quadratic_spline",
    "real_nvp",
    "real_nvp_step",
    "residual_flow",
    "reverse_kl",
    "round_trip_error",
    "spectral_norm",
    "threshold_pixels",
    "unit_degrees",
    "unit_directions",
    "value_and_vjp",
    "zero_last_layer",
]
