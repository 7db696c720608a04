"""The loss of a diffusion model compiles to one graph; in a subprocess, since shape checks cannot be compiled."""

import subprocess
import sys

PROGRAM = """
import torch
from parnassus.diffusion import DDPM, DiffusionTransformer, UNet

for network in (
    UNet((1, 6, 6), 8, multipliers=(1, 2), blocks=1, attention=(1,), classes=3),
    DiffusionTransformer((1, 6, 6), 16, blocks=1, classes=3),
):
    model = DDPM(network, (1, 6, 6), classes=3)
    x, label = torch.randn(2, 1, 6, 6), torch.tensor([0, 2])
    torch.compile(model.loss, backend="eager", fullgraph=True)(x, label).backward()  # raises an error at a graph break
    print("compiled", type(network).__name__)
"""


def test_loss_is_one_graph() -> None:
    process = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, timeout=300)
    assert process.stdout.split("\n")[:-1] == ["compiled UNet", "compiled DiffusionTransformer"], process.stderr
