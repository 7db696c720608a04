"""The subjects in the order in which one climbs, each with its name and its line."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PICTURES = Path(__file__).with_name("pictures")


@dataclass(frozen=True)
class Subject:
    """A room of the house: its folder, what a person calls it, and what it is about."""

    room: str
    title: str
    line: str

    @cached_property
    def picture(self) -> str:
        """Its picture as SVG."""
        return (PICTURES / f"{self.room}.svg").read_text(encoding="utf-8")


SUBJECTS = tuple(
    Subject(*words)
    for words in (
        ("layers", "Layers", "Neurons, activations and the networks they make."),
        ("losses", "Losses", "What training makes small, and what that means."),
        ("autodiff", "Automatic differentiation", "Derivatives of programs, by tape and by graph."),
        ("optim", "Optimisation", "How to walk downhill, and how fast one gets there."),
        ("expressivity", "Expressivity", "What a network of a given size can and cannot say."),
        ("probability", "Probability", "Gaussians, Markov chains, mixtures, and how to sample."),
        ("information", "Information", "Entropy, compression and what a layer keeps."),
        ("latent", "Latent variables", "From principal components to variational autoencoders."),
        ("convolution", "Convolution", "Sliding filters, and the networks that see with them."),
        ("vision", "Vision", "Finding things in pictures and drawing their outlines."),
        ("audio", "Audio", "Sound as a picture of frequencies, and back."),
        ("recurrent", "Recurrence", "Networks with a memory, for what comes in sequence."),
        ("text", "Text", "Tokens, embeddings, and choosing the next word."),
        ("music", "Music", "Notes as events, chorales, and new ones."),
        ("attention", "Attention", "Soft lookup, transformers and language models."),
        ("adversarial", "Adversaries", "A forger and a detective train each other."),
        ("transport", "Optimal transport", "The cheapest way to turn one pile into another."),
        ("flows", "Flows", "Invertible maps that carry densities along."),
        ("diffusion", "Diffusion", "Drown data in noise, then learn to swim back."),
        ("kernels", "Infinite width", "Gaussian processes and the tangent kernel."),
        ("transfer", "Transfer", "What was learned here, used there."),
        ("shapley", "Shapley values", "Who contributed how much to a prediction."),
        ("reinforcement", "Reinforcement", "Learning from reward, one action after another."),
        ("games", "Games", "Search and self-play, up to AlphaZero."),
    )
)


def subject_of(room: str) -> Subject | None:
    return next((subject for subject in SUBJECTS if subject.room == room), None)
