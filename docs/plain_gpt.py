"""Load a GPT exported with `parnassus sample RUN --export FOLDER` and generate text, in plain torch.

python docs/plain_gpt.py FOLDER "Call me" 300
"""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch.nn.functional import gelu, linear, rms_norm, scaled_dot_product_attention


def rotate(x):
    time, width = x.shape[1:]
    angle = torch.arange(time)[:, None] * 10_000 ** (-torch.arange(0, width, 2) / width)
    planes = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(planes * torch.polar(torch.ones_like(angle), angle)).flatten(-2)


def logits(w, tokens, heads, depth):
    x = w["model.embedding.tokens.weight"][tokens]
    for block in range(depth):
        part = {key.removeprefix(f"model.blocks.{block}."): value for key, value in w.items()}
        qkv = linear(rms_norm(x, x.shape[-1:], part["norms.0.weight"]), part["attention.in_proj.weight"])
        q, k, v = qkv.view(len(x), 3, heads, -1).permute(1, 2, 0, 3)
        mixed = scaled_dot_product_attention(rotate(q), rotate(k), v, is_causal=True).transpose(0, 1).flatten(1)
        x = x + linear(mixed, part["attention.out_proj.weight"])
        h = linear(rms_norm(x, x.shape[-1:], part["norms.1.weight"]), part["dense.0.weight"], part["dense.0.bias"])
        x = x + linear(gelu(h, approximate="tanh"), part["dense.2.weight"], part["dense.2.bias"])
    return rms_norm(x, x.shape[-1:], w["model.norm.weight"]) @ w["model.embedding.tokens.weight"].T


def load(folder):
    return json.loads((folder / "config.json").read_text("utf-8")), load_file(folder / "weights.safetensors")


# Greedy decoding.
config, weights = load(Path(sys.argv[1]))
shape, alphabet = config["settings"], config["model"]["tokens"]["alphabet"]
text = sys.argv[2]
for _ in range(int(sys.argv[3])):
    tokens = torch.tensor([alphabet.index(letter) for letter in text[-shape["block_size"] :]])
    text += alphabet[int(logits(weights, tokens, shape["num_heads"], shape["num_layers"])[-1].argmax())]
print(text)  # noqa: T201
