"""Every claim holds; for every erratum the printed formula fails and the correction holds."""

import pytest

from parnassus.atlas.declarations import Mark
from parnassus.atlas.index import Atlas, run_mark

MARKS = [pytest.param(mark, id=mark.name, marks=[pytest.mark.slow] * mark.slow) for mark in Atlas().marks]


@pytest.mark.parametrize("mark", MARKS)
def test_claim_holds(mark: Mark) -> None:
    outcome = run_mark(mark)
    assert outcome.holds, outcome
