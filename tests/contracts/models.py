"""Factories of the models: nn.Modules with `loss`, `sample` or `log_prob`, in small sizes, with their inputs."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from parnassus import (
    adversarial,
    attention,
    audio,
    diffusion,
    flows,
    latent,
    layers,
    probability,
    recurrent,
    text,
    transfer,
)
from parnassus.diffusion.networks.score_networks import NoiseLevelMLP

Inputs = tuple[Any, ...]


@dataclass(frozen=True)
class Model:
    """How to build a model and call its verbs; `untrained` names parameters that the loss does not reach, with why."""

    build: Callable[[], Any]
    inputs: Callable[[], Inputs] = lambda: ()  # of `loss`
    log_prob: Callable[[], Inputs] | None = None  # if other than those of `loss`
    sample: tuple[Any, ...] = (3,)
    sample_steps: int | None = None  # if not the default
    log_prob_is_random: bool = False  # an estimate by sampling
    untrained: tuple[str, ...] = ()


def points() -> Tensor:
    return torch.randn(4, 2, generator=torch.Generator().manual_seed(0))


def unit_interval(*shape: int) -> Tensor:
    return torch.rand(shape, generator=torch.Generator().manual_seed(0))


def labels() -> Tensor:
    return torch.tensor([0, 1, 2, 1])


def tokens(length: int = 5, vocabulary: int = 7) -> Tensor:
    return torch.randint(1, vocabulary, (4, length), generator=torch.Generator().manual_seed(0))


def binary(*shape: int) -> Tensor:
    return torch.randint(2, shape, generator=torch.Generator().manual_seed(0))


def image_points() -> Inputs:
    return (unit_interval(4, 1, 8, 8),)


def vae(objective: Any = None) -> latent.VAE:
    decoder = latent.BernoulliDecoder(latent.mlp_decoder(2, (4,), width=8))
    return latent.VAE(latent.mlp_encoder((4,), 4, width=8), decoder, 2, objective=objective)


def autoencoder() -> latent.Autoencoder:
    return latent.Autoencoder(latent.mlp_encoder((4,), 2, width=8), latent.mlp_decoder(2, (4,), width=8))


def vq_vae() -> latent.VQVAE:
    encoder, decoder = latent.code_grid_encoder(1, 3, width=4), latent.code_grid_decoder(3, 1, width=4)
    prior = latent.IndependentPrior(5, 4)
    return latent.VQVAE(encoder, decoder, latent.Codebook(5, 3), prior, grid_shape=(2, 2))


def ladder_vae() -> latent.LadderVAE:
    decoder = latent.BernoulliDecoder(latent.mlp_decoder(2, (4,), width=8))
    bottom_up = [nn.Linear(4, 6), nn.Linear(6, 6)]
    return latent.LadderVAE(bottom_up, [nn.Linear(6, 4), nn.Linear(6, 4)], [nn.Linear(2, 4)], decoder, 2)


def codes() -> Inputs:
    return (torch.randint(5, (4, 6), generator=torch.Generator().manual_seed(0)),)


def gpt() -> attention.LanguageModel:
    return attention.gpt(7, 8, width=8, heads=2, depth=1)


def seq2seq() -> attention.Transformer:
    return attention.seq2seq((7, 7), 8, width=8, heads=2, depth=1)


def text_generator() -> attention.TextGenerator:
    return attention.TextGenerator(gpt(), text.CharacterTokeniser("abcdefg"))


def translator() -> attention.Translator:
    words = text.WordTokeniser(("a", "b", "c"), ("<padding>", "<begin>", "<end>", "<unknown>"))
    return attention.Translator(seq2seq(), words, words)


def sentence_classifier() -> attention.SentenceClassifier[Any]:
    encoder = attention.encoder(7, 8, width=8, heads=2, depth=1)
    return attention.SentenceClassifier(encoder, attention.Encoder.mean_pool, 3)


def sound_classifier() -> audio.SoundClassifier:
    return audio.SoundClassifier(audio.WavePatches(16), 128, 3, width=8, heads=2, depth=1)


def reprogrammed() -> transfer.ReprogrammedModel:
    model = layers.dense_classifier(64, 4, hidden=(6,))
    return transfer.ReprogrammedModel(
        nn.Sequential(nn.Flatten(), model), transfer.learned_frame((1, 8, 8), 4, 4), torch.tensor([3, 0, 1])
    )


def score_sde() -> diffusion.ScoreSDE:
    return diffusion.ScoreSDE(NoiseLevelMLP(2, 8), (2,), diffusion.variance_preserving())


def two_sequences() -> Inputs:
    return tokens(), tokens(4)


def one_sequence() -> Inputs:
    return (tokens(),)


def one_point_each() -> Inputs:
    return (points(),)


def vectors() -> Inputs:
    return (unit_interval(4, 4),)


def bits() -> Inputs:
    return (binary(4, 4).float(),)


def classified_points() -> Inputs:
    return points(), labels()


def classified_images() -> Inputs:
    return *image_points(), labels()


def add_noise(x: Tensor) -> Tensor:
    return x + 0.1 * torch.randn_like(x)


def narrow_glow_step(channels: int) -> nn.Module:
    return flows.glow_step(channels, width=4)


MODELS: dict[str, Model] = {
    "adversarial.GAN": Model(lambda: adversarial.GAN(layers.mlp((3, 8, 2)), layers.mlp((2, 8, 1)), latent_dim=3)),
    "attention.LanguageModel": Model(gpt, one_sequence),
    "attention.LearnedKernel": Model(
        lambda: attention.LearnedKernel(attention.BilinearScore(2, 2)), lambda: (points(), points()[:, :1])
    ),
    "attention.MaskedLanguageModel": Model(lambda: attention.bert(9, 8, width=8, heads=2, depth=1), one_sequence),
    "attention.SentenceClassifier": Model(sentence_classifier, lambda: (tokens(), labels())),
    "attention.TextGenerator": Model(text_generator, one_sequence),
    "attention.Transformer": Model(seq2seq, two_sequences),
    "attention.Translator": Model(translator, two_sequences),
    "attention.VisionTransformer": Model(
        lambda: attention.vit((1, 8, 8), 3, patch=4, width=8, heads=2, depth=1), classified_images
    ),
    "audio.SoundClassifier": Model(sound_classifier, lambda: (unit_interval(4, 128), labels())),
    "diffusion.DDPM": Model(
        lambda: diffusion.DDPM(diffusion.TimeMLP(2, 8), (2,), schedule=diffusion.linear_schedule(5)),
        one_point_each,
        log_prob_is_random=True,
    ),
    "diffusion.NoisyClassifier": Model(
        lambda: diffusion.NoisyClassifier(
            (1, 8, 8), 3, schedule=diffusion.linear_schedule(5), width=8, multipliers=(1,)
        ),
        classified_images,
    ),
    "diffusion.ScoreModel": Model(
        lambda: diffusion.ScoreModel(diffusion.TimeMLP(2, 8), (2,), torch.tensor([0.1, 0.3, 1.0])),
        one_point_each,
        sample_steps=3,
    ),
    "diffusion.ScoreSDE": Model(score_sde, one_point_each, sample_steps=3),
    "diffusion.VariationalDiffusion": Model(
        lambda: diffusion.VariationalDiffusion(NoiseLevelMLP(2, 8), (2,)),
        one_point_each,
        sample_steps=3,
    ),
    "flows.DequantisedFlow": Model(
        lambda: flows.DequantisedFlow(flows.image_flow((1, 4, 4), narrow_glow_step, num_scales=1), (1, 4, 4)),
        lambda: (unit_interval(4, 1, 4, 4),),
        log_prob_is_random=True,
    ),
    "flows.Flow": Model(
        lambda: flows.Flow(flows.real_nvp(2, num_layers=2, width=8), flows.GaussianBase((2,), trainable=True)),
        one_point_each,
    ),
    "flows.PixelModel": Model(
        lambda: flows.pixelcnn((4, 4), channels=4, blocks=1, first_kernel_size=3), lambda: (binary(4, 4, 4),)
    ),
    "latent.Autoencoder": Model(autoencoder, vectors),
    "latent.Codebook": Model(lambda: latent.Codebook(5, 3), lambda: (unit_interval(4, 3), labels())),
    "latent.ConditionalVAE": Model(
        lambda: latent.ConditionalVAE(
            latent.mlp_encoder((7,), 4, width=8),
            latent.BernoulliDecoder(latent.mlp_decoder(5, (4,), width=8)),
            2,
            3,
        ),
        lambda: (*vectors(), labels()),
        sample=(3, 1),
    ),
    "latent.DenoisingAutoencoder": Model(lambda: latent.DenoisingAutoencoder(autoencoder(), add_noise), vectors),
    "latent.EMACodebook": Model(
        lambda: latent.EMACodebook(5, 3), lambda: (unit_interval(4, 3).requires_grad_(), labels())
    ),
    "latent.FullCovarianceVAE": Model(
        lambda: latent.FullCovarianceVAE(
            latent.mlp_encoder((4,), 5, width=8),
            latent.BernoulliDecoder(latent.mlp_decoder(2, (4,), width=8)),
            2,
        ),
        vectors,
        log_prob_is_random=True,
    ),
    "latent.HelmholtzMachine": Model(lambda: latent.HelmholtzMachine((4, 3, 2)), bits),
    "latent.IndependentPrior": Model(lambda: latent.IndependentPrior(5, 6), codes),
    "latent.LadderVAE": Model(ladder_vae, vectors),
    "latent.LinearAutoencoder": Model(lambda: latent.LinearAutoencoder(4, 2), vectors),
    "latent.LinearVAE": Model(lambda: latent.LinearVAE(4, 2), vectors),
    "latent.NeighbourPrior": Model(lambda: latent.NeighbourPrior(5, (2, 3), width=4), codes),
    "latent.PredictiveVAE": Model(lambda: latent.PredictiveVAE(vae(), nn.Linear(2, 3)), lambda: (*vectors(), labels())),
    "latent.RBM": Model(lambda: latent.RBM(4, 3), bits, sample_steps=3),
    "latent.VAE": Model(vae, vectors, log_prob_is_random=True),
    "latent.VQVAE": Model(
        vq_vae,
        image_points,
        untrained=("prior.",),  # trained on the codes afterwards, by its own loss
    ),
    "layers.Classifier": Model(lambda: layers.dense_classifier(2, 3, hidden=(6,)), classified_points),
    "layers.SupportVectorMachine": Model(lambda: layers.linear_svm(2, 3), classified_points),
    "probability.UnconstrainedMixture": Model(
        lambda: probability.UnconstrainedMixture(probability.kmeans_plus_plus_start(points(), 2)),
        one_point_each,
    ),
    "recurrent.RecurrentLanguageModel": Model(lambda: recurrent.RecurrentLanguageModel(7, width=8), one_sequence),
    "transfer.ReprogrammedModel": Model(
        reprogrammed,
        lambda: (unit_interval(4, 1, 4, 4), labels()),
        untrained=("model.",),  # frozen
    ),
    "transfer.TransferClassifier": Model(
        lambda: transfer.TransferClassifier(layers.mlp((2, 6, 5)), nn.Linear(5, 3)), classified_points
    ),
}
