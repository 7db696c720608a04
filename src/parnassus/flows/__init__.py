"""Exact densities: autoregressive models of images, and flows that carry a simple density through invertible maps."""

from parnassus.flows.actnorm import ActNorm
from parnassus.flows.autoregressive import (
    Autoregressive,
    inverse_autoregressive_flow,
    masked_autoregressive_flow,
)
from parnassus.flows.batch_norm import BatchNormFlow
from parnassus.flows.conditioners import RecurrentConditioner, SeparateConditioners
from parnassus.flows.continuous import ContinuousTransform, Solver, TimeField, dopri5, dopri5_adjoint
from parnassus.flows.contraction import (
    SpectralBound,
    contract,
    contractive_mlp,
    fixed_point_path,
    lipschitz_swish,
    solve_residual,
    spectral_norm,
)
from parnassus.flows.coupling import AffineCoupling, AlternatingCouplings, real_nvp, silenced
from parnassus.flows.dequantisation import (
    Dequantised,
    Logit,
    bits_per_dimension,
    dequantise,
    grey_levels,
    independent_bits,
    quantise,
)
from parnassus.flows.distribution import FlowDistribution
from parnassus.flows.flow import Chain, Flow, GaussianBase, Inverted, Invertible
from parnassus.flows.gated_pixelcnn import GatedStack, gated_pixelcnn
from parnassus.flows.image_flow import ConvNetwork, PixelNorm, glow_step, image_flow, real_nvp_step
from parnassus.flows.linear import LinearFlow, Permutation
from parnassus.flows.masked_network import MaskedDense, MaskedNetwork, autoregressive_masks, degrees
from parnassus.flows.matrices import (
    DenseMatrix,
    HouseholderMatrix,
    InvertibleMatrix,
    PLUMatrix,
    TriangularMatrix,
    random_rotation,
)
from parnassus.flows.multiscale import Multiscale
from parnassus.flows.one_by_one_convolution import OneByOneConvolution
from parnassus.flows.pixel_model import CausalNetwork, PixelModel, bits_per_pixel
from parnassus.flows.pixel_rnn import PixelLSTM, pixel_rnn
from parnassus.flows.pixelcnn import MaskedConv2d, MaskedStack, causal_mask, pixelcnn
from parnassus.flows.residual import (
    InvertibleResidual,
    LogDet,
    RouletteLogDet,
    SeriesLogDet,
    exact_log_det,
    residual_chain,
)
from parnassus.flows.reverse_kl import reverse_kl, reverse_kl_by_path, weigh_target
from parnassus.flows.spline_coupling import SynthesizerCoupling, neural_spline_flow
from parnassus.flows.splines import Knots, spline, spline_inverse
from parnassus.flows.squeeze import Squeeze, checkerboard
from parnassus.flows.synthesizers import AffineSynthesizer, SplineSynthesizer, Synthesizer
from parnassus.flows.traces import Directions, jacobian_trace, random_signs, unit_directions, with_pullback

__all__ = [
    "ActNorm",
    "AffineCoupling",
    "AffineSynthesizer",
    "AlternatingCouplings",
    "Autoregressive",
    "BatchNormFlow",
    "CausalNetwork",
    "Chain",
    "ContinuousTransform",
    "ConvNetwork",
    "DenseMatrix",
    "Dequantised",
    "Directions",
    "Flow",
    "FlowDistribution",
    "GatedStack",
    "GaussianBase",
    "HouseholderMatrix",
    "Inverted",
    "Invertible",
    "InvertibleMatrix",
    "InvertibleResidual",
    "Knots",
    "LinearFlow",
    "LogDet",
    "Logit",
    "MaskedConv2d",
    "MaskedDense",
    "MaskedNetwork",
    "MaskedStack",
    "Multiscale",
    "OneByOneConvolution",
    "PLUMatrix",
    "Permutation",
    "PixelLSTM",
    "PixelModel",
    "PixelNorm",
    "RecurrentConditioner",
    "RouletteLogDet",
    "SeparateConditioners",
    "SeriesLogDet",
    "Solver",
    "SpectralBound",
    "SplineSynthesizer",
    "Squeeze",
    "Synthesizer",
    "SynthesizerCoupling",
    "TimeField",
    "TriangularMatrix",
    "autoregressive_masks",
    "bits_per_dimension",
    "bits_per_pixel",
    "causal_mask",
    "checkerboard",
    "contract",
    "contractive_mlp",
    "degrees",
    "dequantise",
    "dopri5",
    "dopri5_adjoint",
    "exact_log_det",
    "fixed_point_path",
    "gated_pixelcnn",
    "glow_step",
    "grey_levels",
    "image_flow",
    "independent_bits",
    "inverse_autoregressive_flow",
    "jacobian_trace",
    "lipschitz_swish",
    "masked_autoregressive_flow",
    "neural_spline_flow",
    "pixel_rnn",
    "pixelcnn",
    "quantise",
    "random_rotation",
    "random_signs",
    "real_nvp",
    "real_nvp_step",
    "residual_chain",
    "reverse_kl",
    "reverse_kl_by_path",
    "silenced",
    "solve_residual",
    "spectral_norm",
    "spline",
    "spline_inverse",
    "unit_directions",
    "weigh_target",
    "with_pullback",
]
