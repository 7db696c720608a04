"""Generate text with a GPT exported by `parnassus export RUN --out FOLDER`, in plain torch.

python docs/plain_gpt.py FOLDER "Call me" 300
"""

import json
import sys
from pathlib import Path

import torch

folder, text, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
config = json.loads((folder / "config.json").read_text("utf-8"))
logits = torch.export.load(folder / "logits.pt2").module()
alphabet, window = config["model"]["tokens"]["alphabet"], config["settings"]["block_size"]
for _ in range(count):  # greedy decoding
    tokens = torch.tensor([[alphabet.index(letter) for letter in text[-window:]]])
    text += alphabet[int(logits(tokens)[0][0, -1].argmax())]
print(text)  # noqa: T201
