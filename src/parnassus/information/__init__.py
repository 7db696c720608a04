"""Source codes and rate-distortion: code lengths in bits, and the information a code keeps of the data."""

from parnassus.information.arithmetic_code import ArithmeticCode
from parnassus.information.prefix_codes import (
    expected_length,
    huffman_lengths,
    kraft_sum,
    prefix_codewords,
    shannon_lengths,
)
from parnassus.information.rate_distortion import (
    LabelInformation,
    RateDistortionTerms,
    aggregated_posterior,
    bayes_decoder,
    encoder_joint,
    label_information,
    rate_distortion_terms,
)

__all__ = [
    "ArithmeticCode",
    "LabelInformation",
    "RateDistortionTerms",
    "aggregated_posterior",
    "bayes_decoder",
    "encoder_joint",
    "expected_length",
    "huffman_lengths",
    "kraft_sum",
    "label_information",
    "prefix_codewords",
    "rate_distortion_terms",
    "shannon_lengths",
]
