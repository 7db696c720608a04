"""The byte-pair tokeniser: lossless encoding, and ids compared with the tokenizers library."""

import random
from pydoc_data.topics import topics

import pytest
import torch

from parnassus.text import BytePairTokeniser, learn_merges
from parnassus.text.byte_pair_library import learn_merges_by_library

PROSE = topics["assignment"][:6_000]
TOKENISER = BytePairTokeniser.fit(PROSE, 400, special=("<pad>", "<end>"))


def random_text(rng: random.Random) -> str:
    """Random characters encodable in UTF-8, with ASCII more frequent."""
    ranges = [(32, 127), (32, 127), (0, 0x800), (0x800, 0xD800), (0xE000, 0x110000)]
    return "".join(chr(rng.randrange(*rng.choice(ranges))) for _ in range(rng.randrange(60)))


def test_decoding_inverts_encoding() -> None:
    rng = random.Random(1)
    for text in [PROSE, "", *(random_text(rng) for _ in range(200))]:
        assert TOKENISER.decode(TOKENISER.encode(text)) == text


def test_ids_match_the_library() -> None:
    rng, library = random.Random(2), TOKENISER.to_library()
    for text in [PROSE, topics["class"], *(random_text(rng) for _ in range(50))]:
        assert TOKENISER.encode(text).tolist() == library.encode(text).ids


def test_vocabulary_includes_bytes_merges_and_special_tokens() -> None:
    assert TOKENISER.vocabulary == 400
    assert len(TOKENISER.merges) == 400 - 256 - 2
    assert TOKENISER.tokens[:256] == tuple(dict.fromkeys(TOKENISER.tokens))[:256]
    assert TOKENISER.decode(torch.tensor([0, 1])) == ""


def test_more_merges_never_lengthen_the_encoded_text() -> None:
    lengths = [len(BytePairTokeniser.fit(PROSE, size).encode(PROSE)) for size in (256, 300, 400, 600)]
    assert lengths[0] == len(PROSE.encode())
    assert lengths == sorted(lengths, reverse=True)


def test_reference_implementation_and_library_learn_the_same_tokeniser() -> None:
    assert BytePairTokeniser.fit(PROSE[:2_000], 300, learn=learn_merges) == BytePairTokeniser.fit(
        PROSE[:2_000], 300, learn=learn_merges_by_library
    )


def test_invalid_arguments_raise_value_error() -> None:
    with pytest.raises(ValueError, match="size must be at least 257, the bytes and special tokens; got size=256"):
        BytePairTokeniser.fit("text", 256, special=("<end>",))
    with pytest.raises(ValueError, match="text must not be empty"):
        BytePairTokeniser.fit("", 300)
    with pytest.raises(ValueError, match="a merge must join earlier tokens; got b'ab' and b'c'"):
        BytePairTokeniser(((b"ab", b"c"),))
    with pytest.raises(ValueError, match="tokens must lie between 0 and 399; got 400 to 400"):
        TOKENISER.decode(torch.tensor([400]))
