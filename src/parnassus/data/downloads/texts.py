"""Texts as strings: Python's documentation, downloaded texts, and user files."""

import re
from dataclasses import dataclass
from pathlib import Path

from parnassus.data.downloads.sources import MOBY_DICK, NAMES, TINY_SHAKESPEARE, RemoteFile
from parnassus.data.downloads.transfer import Verify, obtain
from parnassus.data.errors import DataError
from parnassus.data.files.idx import read_gzipped
from parnassus.short_repr import short_repr

MIN_PROSE_FRACTION = 0.9  # letters, spaces, commas and full stops in a paragraph; code and tables have fewer


@dataclass(frozen=True)
class TextDataset:
    """A text in two parts: the beginning for training, the end for testing.

    >>> TextDataset("words", train="a cab", test="a bee").alphabet
    (' ', 'a', 'b', 'c', 'e')
    """

    name: str
    train: str
    test: str
    about: str = ""

    __repr__ = short_repr

    @property
    def alphabet(self) -> tuple[str, ...]:
        """All distinct characters, sorted."""
        return tuple(sorted(set(self.train + self.test)))


def pydoc_text() -> TextDataset:
    """The English prose of Python's help topics, which depends on the Python version; the first 90 % for training."""
    from pydoc_data.topics import topics

    paragraphs = [paragraph for name in sorted(topics) for paragraph in topics[name].split("\n\n")]
    unwrapped = [re.sub(r"\s+", " ", paragraph).strip() for paragraph in paragraphs]
    prose = dict.fromkeys(paragraph for paragraph in unwrapped if _is_prose(paragraph))  # topics share paragraphs
    return split_text("pydoc", "\n\n".join(prose) + "\n", about="Help topics of Python (PSF licence)")


def tiny_shakespeare() -> TextDataset:
    """1,115,394 characters of Shakespeare's plays; the first 90 % for training."""
    text = _load_text(TINY_SHAKESPEARE)
    return split_text("tiny_shakespeare", text, about="Tiny Shakespeare (A. Karpathy), public domain")


def moby_dick() -> TextDataset:
    """Moby Dick; or, The Whale, from its first chapter to its epilogue; the first 90 % for training."""
    text = _load_text(MOBY_DICK, verify=lambda path: book_body(read_text(path), MOBY_DICK.name))
    return split_text(
        "moby_dick", book_body(text, MOBY_DICK.name), about="H. Melville 1851, Project Gutenberg 2701, public domain"
    )


def names() -> TextDataset:
    """32,033 first names in lower case, one per line, from common to rare; every tenth line is for testing."""
    lines = _load_text(NAMES).split()
    if len(lines) < 10 or not all(line.isalpha() for line in lines):
        raise DataError("names.txt must have one name per line, of letters only, and at least ten names.")
    train = [line for number, line in enumerate(lines) if number % 10 != 9]
    return TextDataset(
        "names", "\n".join(train) + "\n", "\n".join(lines[9::10]) + "\n", "First names (A. Karpathy, makemore)"
    )


def text_file(path: Path | str, *, test: float = 0.1) -> TextDataset:
    """A UTF-8 text file, plain or gzipped; the last part is for testing."""
    if not Path(path).is_file():
        problem = "is a folder, not a text file" if Path(path).is_dir() and str(path) else "is not a text file"
        raise DataError(f"{str(path)!r} {problem}.")
    path = Path(path)
    return split_text(path.name.removesuffix(".gz").removesuffix(".txt"), read_text(path), test=test)


def read_text(path: Path) -> str:
    """A UTF-8 text without byte order mark, with Unix line endings."""
    content = read_gzipped(path)
    try:
        text = content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8 text: byte {error.start} is {content[error.start]:#04x}.") from error
    if not text.strip():
        raise DataError(f"{path} is empty.")
    return text


def split_text(name: str, text: str, *, test: float = 0.1, about: str = "") -> TextDataset:
    """Hold out the last fraction `test` of the characters."""
    if not 0 <= test < 1:
        raise ValueError(f"test must be a fraction in [0, 1); got test={test}")
    end = int(len(text) * (1 - test))
    return TextDataset(name, text[:end], text[end:], about)


def book_body(text: str, name: str) -> str:
    """The novel without table of contents and licence: from the heading of the first chapter to the last word."""
    start = text.rfind("CHAPTER 1. Loomings")
    end = re.search(r"only found another\s+orphan\.", text)
    if start < 0 or end is None:
        raise DataError(
            f"{name} is not the Project Gutenberg edition of Moby Dick: its first or last words are missing."
        )
    return text[start : end.end()] + "\n"


def _load_text(source: RemoteFile, *, verify: Verify | None = None) -> str:
    return read_text(obtain(source, verify=verify))


def _is_prose(paragraph: str) -> bool:
    """Whether a paragraph consists of sentences: no code, table, heading or list of names."""
    plain = sum(character.isalpha() or character in " ,." for character in paragraph)
    is_sentence = paragraph[:1].isupper() and paragraph.endswith((".", ":")) and paragraph.isascii()
    return is_sentence and len(paragraph) >= 60 and plain >= MIN_PROSE_FRACTION * len(paragraph)
