"""Models that need logits reject networks that end in a sigmoid or a softmax."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn

from parnassus.adversarial import GAN
from parnassus.diffusion.guidance import class_gradient
from parnassus.latent import VAE, BernoulliDecoder, PredictiveVAE, mlp_encoder
from parnassus.latent.autoencoders.dense_networks import dense_decoder
from parnassus.layers import Classifier, Dense, check_logit_network, dense_classifier, mlp, relu, sigmoid
from parnassus.losses import softmax
from parnassus.transfer import ReprogrammedModel, TransferClassifier


class OwnNetwork(nn.Module):
    """A network whose forward ends in a probability, which its structure does not show."""

    def __init__(self, inputs: int, outputs: int, last: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.layer, self.last = nn.Linear(inputs, outputs), last

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.layer(x))


MODELS: dict[str, Callable[[nn.Module], object]] = {
    "BernoulliDecoder": BernoulliDecoder,
    "Classifier": Classifier,
    "TransferClassifier": lambda head: TransferClassifier(nn.Identity(), head),
    "ReprogrammedModel": lambda model: ReprogrammedModel(model, nn.Identity(), torch.tensor([0, 1])),
    "GAN": lambda discriminator: GAN(nn.Linear(2, 2), discriminator, latent_dim=2),
    "PredictiveVAE": lambda head: PredictiveVAE(VAE(mlp_encoder((2,), 4), nn.Linear(2, 2), 2), head),
}
NETWORKS = {
    "nn.Sigmoid": nn.Sequential(nn.Linear(2, 2), nn.Sigmoid()),
    "nn.Softmax": nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Softmax(-1), nn.Identity())),
    "Dense": mlp((2, 3, 2), output=sigmoid),
    "softmax": Dense(2, 2, activation=softmax),
    "before a reshape": dense_decoder(2, (1, 2), width=3),
}


@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("model", MODELS)
def test_networks_that_end_in_probabilities_are_rejected(model: str, network: str) -> None:
    with pytest.raises(ValueError, match="the network must return logits"):
        MODELS[model](NETWORKS[network])


@pytest.mark.parametrize("model", MODELS)
def test_networks_that_end_in_logits_are_accepted(model: str) -> None:
    for network in (nn.Linear(2, 2), mlp((2, 3, 2), activation=sigmoid), nn.Sequential(nn.Sigmoid(), nn.Linear(2, 2))):
        MODELS[model](network)
    check_logit_network(nn.Sequential())
    dense_classifier(2, 2, output=relu)  # the book's network, whose error is another


def test_losses_reject_networks_of_the_user_that_end_in_probabilities() -> None:
    x, y = torch.rand(6, 2), torch.tensor([0, 1, 0, 1, 0, 1])
    classifier = OwnNetwork(2, 2, lambda z: z.softmax(-1))
    encoder = mlp_encoder((2,), 4, width=3)
    losses: dict[str, Callable[[], object]] = {
        "BernoulliDecoder": lambda: VAE(encoder, BernoulliDecoder(OwnNetwork(2, 2, torch.sigmoid)), 2).loss(x),
        "Classifier": lambda: Classifier(classifier).loss(x, y),
        "TransferClassifier": lambda: TransferClassifier(nn.Identity(), classifier).loss(x, y),
        "GAN": lambda: GAN(nn.Linear(2, 2), OwnNetwork(2, 1, torch.sigmoid), latent_dim=2).discriminator_loss(x),
        "class_gradient": lambda: class_gradient(lambda x, t: classifier(x), x, torch.zeros(6, dtype=torch.int64), y),
    }
    for loss in losses.values():
        with pytest.raises(ValueError, match="logits must not have passed through a sigmoid or a softmax"):
            loss()
