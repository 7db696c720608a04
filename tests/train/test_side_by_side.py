import torch
from torch import Tensor, nn

from parnassus.train import SideBySide


class Line(nn.Module):
    """(w x − 1)², the least thing with a loss."""

    def __init__(self, slope: float) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.tensor(slope))

    def loss(self, x: Tensor) -> Tensor:
        return (self.slope * x - 1).square().mean()


def test_each_model_is_trained_as_if_it_were_alone() -> None:
    x = torch.tensor([1.0, 2.0])
    alone = {"steep": Line(3.0), "flat": Line(0.1)}
    both: SideBySide[Line] = SideBySide({"steep": Line(3.0), "flat": Line(0.1)})
    models: tuple[Line | SideBySide[Line], ...] = (*alone.values(), both)
    for model in models:
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        for _ in range(20):
            optimizer.zero_grad()
            model.loss(x).backward()
            optimizer.step()
    for name, line in alone.items():
        torch.testing.assert_close(both.one(name).slope, line.slope)
