"""Claims about tokenisers (book secs. 9.2, 9.5)."""

from collections import Counter

import torch

from parnassus.atlas import Evidence, all_of, claim, close, greater_equal, less_equal, raises
from parnassus.data import pydoc_text
from parnassus.text.byte_pair_library import learn_merges_by_library
from parnassus.text.byte_pair_merges import learn_merges
from parnassus.text.byte_pair_tokeniser import BytePairTokeniser
from parnassus.text.character_tokeniser import CharacterTokeniser
from parnassus.text.word_tokeniser import UNKNOWN, WordTokeniser, split_words


def _random_text(generator: torch.Generator, length: int) -> str:
    """Random characters of one to four UTF-8 bytes, without surrogates."""
    ranges = [(0, 0x80), (0x80, 0x800), (0x800, 0xD800), (0x10000, 0x110000)]
    columns = torch.stack([torch.randint(*bounds, (length,), generator=generator) for bounds in ranges], 1)
    kinds = torch.randint(4, (length, 1), generator=generator)
    return "".join(map(chr, columns.gather(1, kinds)[:, 0].tolist()))


@claim("B9.2-12")
def word_and_character_ids_follow_the_padding_token() -> Evidence:
    """Id 0 is padding, unknown words share an id, words are sorted by frequency (book sec. 9.2)."""
    text = pydoc_text().train[:20_000]
    words = WordTokeniser.fit(text, max_words=300, special=("<pad>",))
    tokens, counts = words.encode(text), Counter(split_words(text))
    frequency = torch.bincount(tokens, minlength=words.vocabulary)
    unknown = words.special.index(UNKNOWN)
    characters = CharacterTokeniser.fit(text, special=("<pad>",))
    is_lossless = characters.decode(characters.encode(text)) == text
    return all_of(
        padding_is_never_encoded=close(frequency[0], 0.0),
        sorted_by_frequency=less_equal(frequency[2:].diff(), 0.0),
        counts=close(frequency[2:], torch.tensor([counts[word] for word in words.words])),
        other_words_are_unknown=close(frequency[unknown], sum(counts.values()) - frequency[2:].sum()),
        characters_are_lossless=close(float(is_lossless), 1.0),
        character_ids_start_at_one=close(characters.encode(text).min(), 1.0),
        unknown_characters_raise=raises(ValueError, lambda: characters.encode("→")),
    )


@claim("B9.5-7")
def byte_pair_encoding_is_lossless_for_any_text() -> Evidence:
    """Any UTF-8 text is decoded exactly; merges only shorten it; a frequent word is one token (book sec. 9.5)."""
    text = pydoc_text().train[:8_000]
    small, large = (BytePairTokeniser(tuple(learn_merges(text, size))) for size in (300, 380))
    generator = torch.Generator().manual_seed(0)
    random = [_random_text(generator, 80) for _ in range(40)]
    is_lossless = [large.decode(large.encode(each)) == each for each in [text, *random]]
    lengths = torch.tensor([len(text.encode()), len(small.encode(text)), len(large.encode(text))])
    known = [len(tokeniser.encode(" the")) for tokeniser in (BytePairTokeniser(()), large)]
    rare = len(large.encode(" Parnassus"))
    return all_of(
        lossless=close(torch.tensor(is_lossless).double(), 1.0),
        shorter=less_equal(lengths.diff(), -1.0),
        halved=greater_equal(lengths[0] / lengths[2], 1.8),
        the_is_one_token=close(torch.tensor(known), torch.tensor([4, 1])),
        a_rare_word_has_several=greater_equal(rare, 2.0),
        the_library_finds_the_same_merges=close(float(learn_merges_by_library(text, 380) == list(large.merges)), 1.0),
        merges_are_nested=close(float(small.merges == large.merges[: len(small.merges)]), 1.0),
    )
