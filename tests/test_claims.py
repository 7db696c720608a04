"""Every claim holds, and every erratum shows a print that fails beside a correction that does not."""

import pytest

from parnassus.atlas.index import Atlas, examine
from parnassus.atlas.reading import Mark

MARKS = [pytest.param(mark, id=mark.name, marks=[pytest.mark.slow] * mark.slow) for mark in Atlas().marks]


@pytest.mark.parametrize("mark", MARKS)
def test_it_holds(mark: Mark) -> None:
    outcome = examine(mark)
    assert outcome.holds, outcome
