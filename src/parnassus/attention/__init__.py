"""Attention: from looking things up to transformers that read and write."""

from parnassus.attention.block import Block, DecoderBlock, feed_forward, post_norm, pre_norm
from parnassus.attention.cache import Cache, KeyValues
from parnassus.attention.dot_product import Attended, attend, attention, attention_weights, masked_softmax
from parnassus.attention.embedding import PositionalEmbedding, TokenEmbedding
from parnassus.attention.gpt import LanguageModel, gpt, rotary_gpt
from parnassus.attention.head_positions import HeadPositions
from parnassus.attention.masks import causal_mask, length_mask, padding_mask
from parnassus.attention.multi_head import MultiHeadAttention, Widths, cross_attention
from parnassus.attention.rotary import Rotary
from parnassus.attention.self_attention import SelfAttention

__all__ = [
    "Attended",
    "Block",
    "Cache",
    "DecoderBlock",
    "HeadPositions",
    "KeyValues",
    "LanguageModel",
    "MultiHeadAttention",
    "PositionalEmbedding",
    "Rotary",
    "SelfAttention",
    "TokenEmbedding",
    "Widths",
    "attend",
    "attention",
    "attention_weights",
    "causal_mask",
    "cross_attention",
    "feed_forward",
    "gpt",
    "length_mask",
    "masked_softmax",
    "padding_mask",
    "post_norm",
    "pre_norm",
    "rotary_gpt",
]
