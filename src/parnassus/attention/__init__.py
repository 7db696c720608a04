"""Attention: from looking things up to transformers that read and write."""

from parnassus.attention.alibi import Alibi, alibi_bias, alibi_slopes
from parnassus.attention.bahdanau import BahdanauDecoder
from parnassus.attention.bert import Hidden, MaskedLanguageModel, bert, hide
from parnassus.attention.block import Block, DecoderBlock, feed_forward, post_norm, pre_norm
from parnassus.attention.cache import Cache, KeyValues, Memory
from parnassus.attention.classifier import SentenceClassifier
from parnassus.attention.cosformer import (
    causal_cosformer_attention,
    cosformer_attention,
    cosine_features,
    cosine_weight,
)
from parnassus.attention.dot_product import Attended, attend, attention, attention_weights, masked_softmax
from parnassus.attention.embedding import PositionalEmbedding, TokenEmbedding
from parnassus.attention.encoder import Encoder, encoder, masked_mean, of_length_one
from parnassus.attention.feature_ridge import FeatureRidge, KernelRidge
from parnassus.attention.gpt import LanguageModel, gpt, rotary_gpt
from parnassus.attention.growth import (
    Counted,
    Witness,
    array_access,
    bears_witness,
    big_o_witness,
    binary_search,
    bubble_sort,
    crossover_length,
    exact_attention_operations,
    growth_exponent,
    linear_attention_operations,
    linked_list,
    list_access,
    merge_sort,
)
from parnassus.attention.head_positions import HeadPositions, additive_map
from parnassus.attention.kernel_regression import NadarayaWatson, mean_shift
from parnassus.attention.lean import LeanBlock, NeighbourMixing
from parnassus.attention.learned_kernel import LearnedKernel
from parnassus.attention.linear import (
    Sums,
    causal_linear_attention,
    elu_features,
    kernel_weights,
    linear_attention,
    mix,
    recall,
)
from parnassus.attention.linear_self_attention import LinearSelfAttention, RunningSums, mask_of_keys
from parnassus.attention.linformer import LinformerSelfAttention, linformer_attention
from parnassus.attention.lookup import average_pooling, best_of, hard_lookup, linear_lookup, pool, soft_lookup
from parnassus.attention.maps import attention_distance, attention_entropy, attention_maps
from parnassus.attention.masks import causal_mask, length_mask, padding_mask
from parnassus.attention.multi_head import MultiHeadAttention, Offered, Widths, cross_attention
from parnassus.attention.music_transformer import music_transformer
from parnassus.attention.nystrom import landmarks, nystrom_attention, pseudo_inverse
from parnassus.attention.one_row import Affine, affine
from parnassus.attention.peak_memory import peak_memory
from parnassus.attention.performer import PerformerAttention, causal_performer_attention, performer_attention
from parnassus.attention.random_features import (
    cosh_features,
    cosh_variance,
    draw_phases,
    fourier_features,
    gaussian_directions,
    log_positive_features,
    orthogonal_directions,
    paired,
    positive_features,
    positive_rbf_features,
    positive_variance,
)
from parnassus.attention.recurrent_encoder import RecurrentEncoder
from parnassus.attention.relative import RelativePositions, explicit_relative_scores, relative_scores, skew
from parnassus.attention.rotary import Rotary, long_range_bound, rotate, rotation
from parnassus.attention.scores import (
    AdditiveScore,
    BilinearScore,
    MetricScore,
    Score,
    cosine_score,
    dot_score,
    gaussian_score,
    scaled_score,
)
from parnassus.attention.self_attention import SelfAttention
from parnassus.attention.seq2seq import Transformer, Translating, Translation, seq2seq
from parnassus.attention.sinusoidal import SinusoidalEmbedding, frequencies, sinusoidal, waves
from parnassus.attention.sparse import (
    LocalSelfAttention,
    band_mask,
    block_mask,
    dilated_mask,
    global_mask,
    local_attention,
    pairs,
    random_mask,
    steps_to_reach_all,
    strided_mask,
)
from parnassus.attention.translator import Translator
from parnassus.attention.vit import (
    Patches,
    VisionTransformer,
    class_token,
    dilated_receptive_field,
    mean_of_patches,
    patch_places,
    receptive_field,
    vit,
)
from parnassus.attention.writer import Writer

__all__ = [
    "AdditiveScore",
    "Affine",
    "Alibi",
    "Attended",
    "BahdanauDecoder",
    "BilinearScore",
    "Block",
    "Cache",
    "Counted",
    "DecoderBlock",
    "Encoder",
    "FeatureRidge",
    "HeadPositions",
    "Hidden",
    "KernelRidge",
    "KeyValues",
    "LanguageModel",
    "LeanBlock",
    "LearnedKernel",
    "LinearSelfAttention",
    "LinformerSelfAttention",
    "LocalSelfAttention",
    "MaskedLanguageModel",
    "Memory",
    "MetricScore",
    "MultiHeadAttention",
    "NadarayaWatson",
    "NeighbourMixing",
    "Offered",
    "Patches",
    "PerformerAttention",
    "PositionalEmbedding",
    "RecurrentEncoder",
    "RelativePositions",
    "Rotary",
    "RunningSums",
    "Score",
    "SelfAttention",
    "SentenceClassifier",
    "SinusoidalEmbedding",
    "Sums",
    "TokenEmbedding",
    "Transformer",
    "Translating",
    "Translation",
    "Translator",
    "VisionTransformer",
    "Widths",
    "Witness",
    "Writer",
    "additive_map",
    "affine",
    "alibi_bias",
    "alibi_slopes",
    "array_access",
    "attend",
    "attention",
    "attention_distance",
    "attention_entropy",
    "attention_maps",
    "attention_weights",
    "average_pooling",
    "band_mask",
    "bears_witness",
    "bert",
    "best_of",
    "big_o_witness",
    "binary_search",
    "block_mask",
    "bubble_sort",
    "causal_cosformer_attention",
    "causal_linear_attention",
    "causal_mask",
    "causal_performer_attention",
    "class_token",
    "cosformer_attention",
    "cosh_features",
    "cosh_variance",
    "cosine_features",
    "cosine_score",
    "cosine_weight",
    "cross_attention",
    "crossover_length",
    "dilated_mask",
    "dilated_receptive_field",
    "dot_score",
    "draw_phases",
    "elu_features",
    "encoder",
    "exact_attention_operations",
    "explicit_relative_scores",
    "feed_forward",
    "fourier_features",
    "frequencies",
    "gaussian_directions",
    "gaussian_score",
    "global_mask",
    "gpt",
    "growth_exponent",
    "hard_lookup",
    "hide",
    "kernel_weights",
    "landmarks",
    "length_mask",
    "linear_attention",
    "linear_attention_operations",
    "linear_lookup",
    "linformer_attention",
    "linked_list",
    "list_access",
    "local_attention",
    "log_positive_features",
    "long_range_bound",
    "mask_of_keys",
    "masked_mean",
    "masked_softmax",
    "mean_of_patches",
    "mean_shift",
    "merge_sort",
    "mix",
    "music_transformer",
    "nystrom_attention",
    "of_length_one",
    "orthogonal_directions",
    "padding_mask",
    "paired",
    "pairs",
    "patch_places",
    "peak_memory",
    "performer_attention",
    "pool",
    "positive_features",
    "positive_rbf_features",
    "positive_variance",
    "post_norm",
    "pre_norm",
    "pseudo_inverse",
    "random_mask",
    "recall",
    "receptive_field",
    "relative_scores",
    "rotary_gpt",
    "rotate",
    "rotation",
    "scaled_score",
    "seq2seq",
    "sinusoidal",
    "skew",
    "soft_lookup",
    "steps_to_reach_all",
    "strided_mask",
    "vit",
    "waves",
]
