"""Every claim of this room holds, and every corrected misprint is one."""

import pytest

from parnassus.atlas.index import examine
from parnassus.atlas.reading import Mark, marks


@pytest.mark.parametrize("mark", [mark for mark in marks() if mark.room == "latent"], ids=lambda mark: mark.name)
def test_it_holds(mark: Mark) -> None:
    outcome = examine(mark)
    assert outcome.holds, outcome
