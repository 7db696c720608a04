"""Claims about turning text into tokens and back (book secs. 9.2, 9.5)."""

from collections import Counter

import torch

from parnassus.atlas import Evidence, all_of, at_least, at_most, claim, close, raises
from parnassus.data import pydoc_text
from parnassus.text.byte_pairs import BytePairTokeniser
from parnassus.text.characters import CharacterTokeniser
from parnassus.text.merges import learn_merges
from parnassus.text.words import UNKNOWN, WordTokeniser, split_words


def _any_text(source: torch.Generator, length: int) -> str:
    """Characters of one to four bytes, none of them half of a pair."""
    ranges = [(0, 0x80), (0x80, 0x800), (0x800, 0xD800), (0x10000, 0x110000)]
    columns = torch.stack([torch.randint(*bounds, (length,), generator=source) for bounds in ranges], 1)
    kinds = torch.randint(4, (length, 1), generator=source)
    return "".join(map(chr, columns.gather(1, kinds)[:, 0].tolist()))


@claim("B9.2-12")
def words_and_characters_are_numbered_after_the_filler() -> Evidence:
    """0 is kept for filler, unknown words share a number, words go from frequent to rare (book sec. 9.2)."""
    text = pydoc_text().train[:20_000]
    words = WordTokeniser.fit(text, most=300, special=("<pad>",))
    tokens, counts = words.encode(text), Counter(split_words(text))
    frequency = torch.bincount(tokens, minlength=words.vocabulary)
    unknown = words.special.index(UNKNOWN)
    characters = CharacterTokeniser.fit(text, special=("<pad>",))
    same = characters.decode(characters.encode(text)) == text
    return all_of(
        filler_is_never_text=close(frequency[0], 0.0),
        from_frequent_to_rare=at_most(frequency[2:].diff(), 0.0),
        counts=close(frequency[2:], torch.tensor([counts[word] for word in words.words])),
        all_others_are_unknown=close(frequency[unknown], sum(counts.values()) - frequency[2:].sum()),
        characters_lose_nothing=close(float(same), 1.0),
        and_are_numbered_from_one=close(characters.encode(text).min(), 1.0),
        unseen_ones_are_refused=raises(ValueError, lambda: characters.encode("→")),
    )


@claim("B9.5-7")
def byte_pairs_write_every_text_and_lose_nothing() -> Evidence:
    """Any UTF-8 text comes back as it was; merges only shorten; a frequent word is one token (book sec. 9.5)."""
    text = pydoc_text().train[:8_000]
    small, large = (BytePairTokeniser(tuple(learn_merges(text, size))) for size in (300, 380))
    source = torch.Generator().manual_seed(0)
    strange = [_any_text(source, 80) for _ in range(40)]
    back = [large.decode(large.encode(each)) == each for each in [text, *strange]]
    lengths = torch.tensor([len(text.encode()), len(small.encode(text)), len(large.encode(text))])
    known = [len(tokeniser.encode(" the")) for tokeniser in (BytePairTokeniser(()), large)]
    rare = len(large.encode(" Parnassus"))
    return all_of(
        back_as_it_was=close(torch.tensor(back).double(), 1.0),
        shorter=at_most(lengths.diff(), -1.0),
        halved=at_least(lengths[0] / lengths[2], 1.8),
        the_is_one_token=close(torch.tensor(known), torch.tensor([4, 1])),
        a_rare_word_has_parts=at_least(rare, 2.0),
        merges_nest=close(float(small.merges == large.merges[: len(small.merges)]), 1.0),
    )
