"""Text generation: a language model with its tokeniser."""

from collections.abc import Iterator

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from parnassus.arrays import accepts_arrays
from parnassus.attention.models.gpt import LanguageModel
from parnassus.text.generation import stream_tokens
from parnassus.text.sampling import TokenSampler
from parnassus.text.tokeniser import Tokeniser, stream_text

DEFAULT_PROMPTS = ("\n", " ")  # tried in this order if the prompt is empty


class TextGenerator(nn.Module):
    """p(next token | text so far) for strings (book sec. 10.1.1).

    >>> from parnassus.text import CharacterTokeniser, greedy
    >>> tokeniser = CharacterTokeniser.fit("the cat")
    >>> generator = TextGenerator(gpt(tokeniser.vocabulary, 16, width=16, depth=1), tokeniser)
    >>> len("".join(generator.generate("the", greedy, 5)))
    5
    """

    def __init__(self, model: LanguageModel, tokeniser: Tokeniser) -> None:
        super().__init__()
        if model.vocabulary != tokeniser.vocabulary:
            raise ValueError(
                "model and tokeniser must have the same vocabulary; "
                f"got {model.vocabulary} tokens in the model, {tokeniser.vocabulary} in the tokeniser"
            )
        self.model, self.tokeniser = model, tokeniser

    def forward(self, tokens: Int[Tensor, "batch time"]) -> Float[Tensor, "batch time vocabulary"]:
        """Logits of the next token at each position."""
        logits: Tensor = self.model(tokens)
        return logits

    @accepts_arrays
    def loss(self, tokens: Int[Tensor, "batch time_and_one"]) -> Float[Tensor, ""]:
        """The mean of −log p per token, in nats."""
        return self.model.loss(tokens)

    def encode_prompt(self, prompt: str) -> Int[Tensor, " time"]:
        """The tokens of a prompt; an empty prompt becomes a line break, a space or token 0.

        A prompt with characters outside the tokeniser's alphabet raises ValueError, which names them.
        """
        device = self.model.embedding.tokens.weight.device
        for text in (prompt,) if prompt else DEFAULT_PROMPTS:
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
        """Logits of the token after a prompt, which is cut to its last `window` tokens."""
        return self.model.read(self.encode_prompt(prompt)[-self.model.window :][None])[0][0]

    def generate(self, prompt: str, sampler: TokenSampler, length: int) -> Iterator[str]:
        """The text of `length` further tokens, streamed piece by piece."""
        if length < 1:
            raise ValueError(f"length must be at least 1 token; got length={length}")
        tokens = self.encode_prompt(prompt)
        generated = stream_tokens(self.model, tokens[None], sampler, length)
        previous = int(tokens[-1]) if prompt[-1:].strip() else None  # no separator after an empty prompt or a space
        return stream_text(self.tokeniser, (int(token) for token in generated), previous)
