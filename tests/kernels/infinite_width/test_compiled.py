"""CompiledLayer layers keep their values; tested in a child process, because shape checks cannot be compiled."""

import subprocess
import sys

import torch

from parnassus.kernels import Activation, CompiledLayer, Convolution, Dense, GlobalAveragePooling, Network, ReLU

from .images import images

UNIT = Network((Convolution(3, 2.0, 0.1), Activation(ReLU())))
END = (GlobalAveragePooling(), Dense(2.0, 0.05))
PROGRAM = """
import torch
from parnassus.kernels import Activation, Convolution, Dense, CompiledLayer, GlobalAveragePooling, Network, ReLU

x = torch.sin(torch.arange(96, dtype=torch.float64).pow(1.3)).view(2, 3, 4, 4)
body, end = Network((Convolution(3, 2.0, 0.1), Activation(ReLU()))), (GlobalAveragePooling(), Dense())
unit = CompiledLayer(body, backend="eager")
compiled, plain = Network((unit, unit, *end)), Network((*body.layers, *body.layers, *end))
torch.testing.assert_close(tuple(compiled.kernels(x)), tuple(plain.kernels(x)), rtol=1e-12, atol=0)
print("equal")
"""


def test_compilation_preserves_values() -> None:
    completed = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, timeout=300
    )
    assert completed.stdout == "equal\n", completed.stderr


def test_module_matches_the_uncompiled_body() -> None:
    unit = CompiledLayer(UNIT)
    outputs = []
    for network in (Network((unit, unit, *END)), Network((*UNIT.layers, *UNIT.layers, *END))):
        torch.manual_seed(0)
        outputs.append(network.module((3, 4, 4), 8).double()(images()))
    torch.testing.assert_close(outputs[0], outputs[1])
    assert Network((unit, *END)).mixes_positions
    assert not unit.mixes_positions
    assert unit.needs_variances
