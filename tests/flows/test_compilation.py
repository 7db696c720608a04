"""The loss of a flow over images compiles whole: in a process of its own, for shape checks cannot be compiled."""

import subprocess
import sys

PROGRAM = """
import torch
from parnassus.flows import Dequantised, image_flow, real_nvp_step

torch.manual_seed(0)
flow = image_flow((1, 4, 4), lambda channels: real_nvp_step(channels, width=4, blocks=0), scales=1, steps=1)
model, x = Dequantised(flow, (1, 4, 4), levels=4), torch.randint(4, (5, 1, 4, 4)) / 3
model.loss(x)  # the normalisations have begun
with torch.no_grad():
    for parameter in model.parameters():
        parameter.add_(0.1 * torch.randn_like(parameter))
found = []
for loss in (model.loss, torch.compile(model.loss, backend="aot_eager", fullgraph=True)):  # raises at a break
    torch.manual_seed(1)
    model.zero_grad()
    value = loss(x)
    value.backward()
    found.append([value.detach(), *(parameter.grad.clone() for parameter in model.parameters())])
torch.testing.assert_close(found[0], found[1])
print("whole and alike")
"""


def test_the_loss_is_one_graph_with_the_same_value_and_gradient() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, timeout=300)
    assert done.stdout == "whole and alike\n", done.stderr
