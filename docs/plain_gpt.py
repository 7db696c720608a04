"""A gpt that `parnassus sample RUN --export FOLDER` wrote, read by twenty lines of plain torch.

python docs/plain_gpt.py FOLDER "Call me" 300
"""

import json
import sys
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch.nn.functional import gelu, linear, rms_norm, scaled_dot_product_attention


def turn(x):
    time, width = x.shape[1:]
    angle = torch.arange(time)[:, None] * 10_000 ** (-torch.arange(0, width, 2) / width)
    planes = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous())
    return torch.view_as_real(planes * torch.polar(torch.ones_like(angle), angle)).flatten(-2)


def logits(w, tokens, heads, depth):
    x = w["model.embedding.tokens.weight"][tokens]
    for block in range(depth):
        part = {key.removeprefix(f"model.blocks.{block}."): value for key, value in w.items()}
        asked = linear(rms_norm(x, x.shape[-1:], part["norms.0.weight"]), part["attention.ask.weight"])
        q, k, v = asked.view(len(x), 3, heads, -1).permute(1, 2, 0, 3)
        mixed = scaled_dot_product_attention(turn(q), turn(k), v, is_causal=True).transpose(0, 1).flatten(1)
        x = x + linear(mixed, part["attention.answer.weight"])
        h = linear(rms_norm(x, x.shape[-1:], part["norms.1.weight"]), part["dense.0.weight"], part["dense.0.bias"])
        x = x + linear(gelu(h, approximate="tanh"), part["dense.2.weight"], part["dense.2.bias"])
    return rms_norm(x, x.shape[-1:], w["model.norm.weight"]) @ w["model.embedding.tokens.weight"].T


def load(folder):
    return json.loads((folder / "config.json").read_text("utf-8")), load_file(folder / "weights.safetensors")


# That was all; what follows lets it write, each time the likeliest letter.
config, weights = load(Path(sys.argv[1]))
shape, alphabet = config["settings"], config["model"]["tokens"]["alphabet"]
text = sys.argv[2]
for _ in range(int(sys.argv[3])):
    seen = torch.tensor([alphabet.index(letter) for letter in text[-shape["window"] :]])
    text += alphabet[int(logits(weights, seen, shape["heads"], shape["depth"])[-1].argmax())]
print(text)  # noqa: T201 - that is what it is for
