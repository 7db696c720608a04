"""A language model with the tokeniser of its text: a prompt goes in, text comes out."""

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from parnassus.attention.gpt import LanguageModel
from parnassus.text.choosing import Choose
from parnassus.text.generation import generate
from parnassus.text.tokeniser import Tokeniser, as_it_comes

OPENINGS = ("\n", " ")  # what a text may be begun with where nothing is given


class Writer(nn.Module):
    """p(next token | text so far), for text as people type it (book sec. 10.1.1)."""

    def __init__(self, model: LanguageModel, tokeniser: Tokeniser) -> None:
        super().__init__()
        if model.vocabulary != tokeniser.vocabulary:
            raise ValueError(
                "a model must know the tokens of its tokeniser; "
                f"got {model.vocabulary} tokens and a tokeniser of {tokeniser.vocabulary}"
            )
        self.model, self.tokeniser = model, tokeniser

    def forward(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch time vocabulary"]:
        """Logits of the token after each."""
        logits: Tensor = self.model(tokens)
        return logits

    def loss(self, tokens: Int[Tensor, "batch time_and_one"]) -> Float[Tensor, ""]:
        """The mean of −log p a token, in nats."""
        return self.model.loss(tokens)

    def tokens(self, prompt: str) -> Int[Tensor, " time"]:
        """The tokens of a prompt; of an empty one a new line, or what comes nearest to it.

        A prompt with characters that the tokeniser has never seen is refused in a sentence that names them.
        """
        device = self.model.embedding.tokens.weight.device
        for text in (prompt,) if prompt else OPENINGS:
            try:
                tokens = self.tokeniser.encode(text)
            except ValueError:
                if prompt:
                    raise
                continue
            if len(tokens):
                return tokens.to(device)
        return torch.zeros(1, dtype=torch.int64, device=device)

    @torch.no_grad()
    def logits(self, prompt: str) -> Float[Tensor, " vocabulary"]:
        """Logits of the token after a prompt; of one beyond the window its end is read."""
        return self.model.read(self.tokens(prompt)[-self.model.window :][None])[0][0]

    def write(self, prompt: str, choose: Choose, length: int) -> Iterator[str]:
        """The text of `length` more tokens, piece by piece as they come."""
        if length < 1:
            raise ValueError(f"length must be at least 1 token; got length={length}")
        tokens = self.tokens(prompt)
        written = generate(self.model, tokens[None], choose, length)
        after = int(tokens[-1]) if prompt[-1:].strip() else None  # nothing parts a text from no prompt, or from a space
        return as_it_comes(self.tokeniser, (int(token) for token in written), after)
