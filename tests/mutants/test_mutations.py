"""The list of mutations fits the source: `make mutants` plants them."""

import ast
from collections import Counter

from .mutations import KINDS, Mutation, read_mutations


def test_every_mutation_applies_exactly_once_and_is_valid_python() -> None:
    offences = [offence for each in read_mutations() if (offence := find_offence(each))]
    assert not offences, "\n".join(offences)


def find_offence(mutation: Mutation) -> str | None:
    """Why the mutation cannot be planted."""
    try:
        source, mutated = mutation.source(), mutation.mutated()
        same = ast.dump(ast.parse(mutated)) == ast.dump(ast.parse(source))
    except (OSError, ValueError, SyntaxError) as error:
        return f"{mutation.name}: {error}"
    return f"{mutation.name}: changes nothing" if same else None


def test_mutations_are_of_every_kind_and_differ() -> None:
    mutations = read_mutations()
    kinds = Counter(each.kind for each in mutations)
    assert set(kinds) == set(KINDS)
    assert min(kinds.values()) >= 5, kinds
    assert len(mutations) >= 150
    assert len({each.name for each in mutations}) == len(mutations)
