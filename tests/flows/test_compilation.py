"""The loss of an image flow compiles to one graph; in a separate process, since shape checks cannot be compiled."""

import subprocess
import sys

PROGRAM = """
import torch
from parnassus.flows import DequantisedFlow, image_flow, real_nvp_step

torch.manual_seed(0)
flow = image_flow(
    (1, 4, 4), lambda channels: real_nvp_step(channels, width=4, blocks=0), num_scales=1, steps_per_scale=1
)
model, x = DequantisedFlow(flow, (1, 4, 4), levels=4), torch.randint(4, (5, 1, 4, 4)) / 3
model.loss(x)  # initialises the ActNorm layers
with torch.no_grad():
    for parameter in model.parameters():
        parameter.add_(0.1 * torch.randn_like(parameter))
results = []
for loss in (model.loss, torch.compile(model.loss, backend="aot_eager", fullgraph=True)):
    torch.manual_seed(1)
    model.zero_grad()
    value = loss(x)
    value.backward()
    results.append([value.detach(), *(parameter.grad.clone() for parameter in model.parameters())])
torch.testing.assert_close(results[0], results[1])
print("equal")
"""


def test_compiled_loss_is_one_graph_with_equal_value_and_gradients() -> None:
    process = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False, timeout=300)
    assert process.stdout == "equal\n", process.stderr
