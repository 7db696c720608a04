"""Every claim holds, and every erratum shows a print that fails beside a correction that does not."""

import pytest

from parnassus.atlas.index import examine
from parnassus.atlas.reading import Mark, marks


@pytest.mark.parametrize("mark", marks(), ids=lambda mark: mark.name)
def test_it_holds(mark: Mark) -> None:
    outcome = examine(mark)
    assert outcome.holds, outcome
