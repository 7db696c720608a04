import torch
from torch import Tensor, nn

from parnassus.train import ModelCollection


class LinearModel(nn.Module):
    """A model with one parameter and the loss (w x − 1)²."""

    def __init__(self, slope: float) -> None:
        super().__init__()
        self.slope = nn.Parameter(torch.tensor(slope))

    def loss(self, x: Tensor) -> Tensor:
        return (self.slope * x - 1).square().mean()


def test_models_are_trained_independently() -> None:
    x = torch.tensor([1.0, 2.0])
    separate = {"steep": LinearModel(3.0), "flat": LinearModel(0.1)}
    combined: ModelCollection[LinearModel] = ModelCollection({"steep": LinearModel(3.0), "flat": LinearModel(0.1)})
    models: tuple[LinearModel | ModelCollection[LinearModel], ...] = (*separate.values(), combined)
    for model in models:
        optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
        for _ in range(20):
            optimizer.zero_grad()
            model.loss(x).backward()
            optimizer.step()
    for name, model_alone in separate.items():
        torch.testing.assert_close(combined.model(name).slope, model_alone.slope)
