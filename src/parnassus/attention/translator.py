"""A transformer with the tokenisers of its two languages: sentences go in, sentences come out."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from parnassus.attention.seq2seq import Transformer
from parnassus.text.beam import beam_search
from parnassus.text.tokeniser import Tokeniser

SPECIAL = ("<padding>", "<begin>", "<end>")
PADDING, BEGIN, END = range(3)


class Translator(nn.Module):
    """p(target sentence | source sentence) for sentences as people write them (book sec. 10.1.1).

    Both tokenisers must begin with the special tokens `SPECIAL`: filler, begin and end.
    """

    def __init__(self, model: Transformer, source: Tokeniser, target: Tokeniser) -> None:
        super().__init__()
        for tokeniser, known in ((source, model.encoder.vocabulary), (target, model.vocabulary)):
            if tokeniser.special[:3] != SPECIAL:
                raise ValueError(f"the special tokens must begin with {SPECIAL}; got {tokeniser.special}")
            if tokeniser.vocabulary != known:
                raise ValueError(f"the model knows {known} tokens; the tokeniser has {tokeniser.vocabulary}")
        self.model, self.source, self.target = model, source, target

    def loss(self, source: Int[Tensor, "batch n"], target: Int[Tensor, "batch m_and_one"]) -> Float[Tensor, ""]:
        """The mean of −log p a token of the target, in nats; see `Transformer.loss`."""
        return self.model.loss(source, target)

    def translate(self, sentences: Sequence[str], *, width: int = 1, penalty: float = 1.0) -> list[str]:
        """The best translation that a beam of this width finds; width 1 is greedy.

        Candidates are ranked by log p / length^penalty. A sentence longer than the model's window is refused.
        """
        if not sentences:
            return []
        source = encoded(self.source, sentences).to(self.model.embedding.tokens.weight.device)
        if source.shape[1] > self.model.window:
            raise ValueError(f"a sentence may have {self.model.window - 1} tokens; got one of {source.shape[1] - 1}")
        begin = torch.full((len(sentences), 1), BEGIN, device=source.device)
        length = min(self.model.window - 1, 2 * source.shape[1] + 8)  # no translation is much longer than its source
        training = self.training
        self.eval()
        found = beam_search(self.model.given(source), begin, width=width, length=length, stop=END, penalty=penalty)
        self.train(training)
        best = [found.best(row).tokens for row in range(len(sentences))]
        return [self.target.decode(torch.tensor(tokens, dtype=torch.int64)) for tokens in best]


def encoded(tokeniser: Tokeniser, sentences: Sequence[str], *, begin: bool = False) -> Int[Tensor, "batch time"]:
    """Sentences as rows of tokens, each with an end, and a beginning where asked for; filler makes them as long."""
    rows = [tokeniser.encode(sentence).tolist() for sentence in sentences]
    whole = [torch.tensor([*([BEGIN] if begin else []), *row, END]) for row in rows]
    return pad_sequence(whole, batch_first=True, padding_value=PADDING)
