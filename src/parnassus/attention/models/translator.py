"""Translation of sentences: a transformer with the tokenisers of its two languages."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from parnassus.arrays import accepts_arrays
from parnassus.attention.models.seq2seq import Transformer
from parnassus.text.beam_search import beam_search
from parnassus.text.tokeniser import Tokeniser

SPECIAL = ("<padding>", "<begin>", "<end>")
PADDING, BEGIN, END = range(3)


class Translator(nn.Module):
    """p(target sentence | source sentence) for strings (book sec. 10.1.1).

    Both tokenisers must begin with the special tokens `SPECIAL`: padding, begin and end.

    >>> from parnassus.text import WordTokeniser
    >>> tokeniser = WordTokeniser(("the", "cat"), special=("<padding>", "<begin>", "<end>", "<unknown>"))
    >>> model = seq2seq((tokeniser.vocabulary,) * 2, 16, width=16, heads=2, depth=1)
    >>> len(Translator(model, tokeniser, tokeniser).translate(["the cat"]))
    1
    """

    def __init__(self, model: Transformer, source: Tokeniser, target: Tokeniser) -> None:
        super().__init__()
        for tokeniser, vocabulary in ((source, model.encoder.vocabulary), (target, model.vocabulary)):
            if tokeniser.special[:3] != SPECIAL:
                raise ValueError(f"the special tokens must begin with {SPECIAL}; got {tokeniser.special}")
            if tokeniser.vocabulary != vocabulary:
                raise ValueError(
                    "model and tokeniser must have the same vocabulary; "
                    f"got {vocabulary} tokens in the model, {tokeniser.vocabulary} in the tokeniser"
                )
        self.model, self.source, self.target = model, source, target

    @accepts_arrays
    def loss(self, source: Int[Tensor, "batch n"], target: Int[Tensor, "batch m_and_one"]) -> Float[Tensor, ""]:
        """The mean of −log p per target token, in nats; see `Transformer.loss`."""
        return self.model.loss(source, target)

    def translate(self, sentences: Sequence[str], *, width: int = 1, penalty: float = 1.0) -> list[str]:
        """Translations by beam search; width 1 is greedy decoding.

        Candidates are ranked by log p / length^penalty. A sentence longer than the model's window raises ValueError.
        """
        if not sentences:
            return []
        source = encode_sentences(self.source, sentences).to(self.model.embedding.tokens.weight.device)
        if source.shape[1] > self.model.window:
            raise ValueError(f"a sentence must have at most {self.model.window - 1} tokens; got {source.shape[1] - 1}")
        begin = torch.full((len(sentences), 1), BEGIN, device=source.device)
        length = min(self.model.window - 1, 2 * source.shape[1] + 8)  # translations are rarely longer
        training = self.training
        self.eval()
        result = beam_search(
            self.model.condition_on(source), begin, width=width, length=length, stop=END, penalty=penalty
        )
        self.train(training)
        best = [result.best(row).tokens for row in range(len(sentences))]
        return [self.target.decode(torch.tensor(tokens, dtype=torch.int64)) for tokens in best]


def encode_sentences(
    tokeniser: Tokeniser, sentences: Sequence[str], *, begin: bool = False
) -> Int[Tensor, "batch time"]:
    """Sentences as rows of tokens with an end token, optionally a begin token, padded to the same length."""
    rows = [tokeniser.encode(sentence).tolist() for sentence in sentences]
    sequences = [torch.tensor([*([BEGIN] if begin else []), *row, END]) for row in rows]
    return pad_sequence(sequences, batch_first=True, padding_value=PADDING)
