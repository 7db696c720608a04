"""Update the numbers of README.md: `make readme` rewrites its count of items and its table of subjects.

All numbers come from the atlas. The experiments that the table names as examples are kept; a subject without examples
gets its first two.
"""

import re
from collections import Counter
from pathlib import Path

from parnassus.atlas.index import Atlas
from parnassus.atlas.settings import PACKAGE

README = Path(__file__).parents[1] / "README.md"
HEAD = "| subject | contents | items | experiments | claims, errata |\n|---|---|---|---|---|\n"


def count_of_items(atlas: Atlas) -> str:
    """The sentence that counts items, experiments, claims and errata."""
    rows, kinds = atlas.rows.values(), Counter(mark.kind for mark in atlas.marks)
    implemented, no_code = sum(bool(row.symbols) for row in rows), sum(bool(row.no_code) for row in rows)
    return (
        f"So far {implemented} of {len(rows)} items of the texts are implemented ({no_code} need no implementation), "
        f"with {len(atlas.experiments)} experiments, {kinds['claim']:,} claims and {kinds['erratum']} errata."
    )


def subject_table(atlas: Atlas, examples: dict[str, str]) -> str:
    """The table of the subjects with code, and the titles of the planned ones; `examples` by subject."""
    built = {name: room for name, room in atlas.subjects.items() if (PACKAGE / name / "__init__.py").exists()}
    lines = [
        f"| [`{name}`](src/parnassus/{name}) | {room.line} | {_numbers(atlas, name, examples.get(name, ''))} |\n"
        for name, room in built.items()
    ]
    planned = ", ".join(room.title for name, room in atlas.subjects.items() if name not in built)
    return HEAD + "".join(lines) + f"\nPlanned: {planned}.\n"


def _numbers(atlas: Atlas, subject: str, examples: str) -> str:
    """The cells with the items, experiments, claims and errata of a subject."""
    rows = [row for row in atlas.rows.values() if row.subject == subject]
    names = [entry.name for entry in atlas.experiments.values() if entry.room == subject]
    kinds = Counter(mark.kind for mark in atlas.marks if mark.room == subject)
    examples = examples or ", ".join(f"`{name}`" for name in names[:2])
    items = f"{sum(bool(row.symbols) for row in rows)} of {len(rows)}"
    experiments = f"{len(names)}: {examples}" if names else "0"
    return f"{items} | {experiments} | {kinds['claim']}, {kinds['erratum']}"


def update(readme: str, atlas: Atlas) -> str:
    """The text of the README with current numbers."""
    examples = dict(re.findall(r"^\| \[`(\w+)`\].*?\| \d+: (`.*?`) \|", readme, re.MULTILINE))
    readme = re.sub(r"^So far \d.* errata\.$", lambda _: count_of_items(atlas), readme, count=1, flags=re.MULTILINE)
    pattern = r"^\| subject \|.*?^Planned: .*?\n"
    return re.sub(pattern, lambda _: subject_table(atlas, examples), readme, count=1, flags=re.MULTILINE | re.DOTALL)


if __name__ == "__main__":
    README.write_text(update(README.read_text(encoding="utf-8"), Atlas()), encoding="utf-8")
