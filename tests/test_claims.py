"""Claims hold; printed formulas of errata fail and corrections hold; together the marks run all symbols of the rows.

One room alone: `pytest tests/test_claims.py -n 0 -k "reach and latent"`.
"""

import pytest
from claim_coverage import ATLAS, idle_marks, measure, unreached_symbols

from parnassus.atlas.declarations import Mark

pytestmark = pytest.mark.xdist_group("claims")  # one process, in which every mark runs once
MARKS = [pytest.param(mark, id=mark.name, marks=[pytest.mark.slow] * mark.slow) for mark in ATLAS.marks]
ROOMS = [
    pytest.param(room, slow, id=f"{room}-slow" if slow else room, marks=[pytest.mark.slow] * slow)
    for room in ATLAS.rooms
    for slow in (False, True)
]


@pytest.mark.parametrize("mark", MARKS)
def test_claim_holds(mark: Mark) -> None:
    outcome = measure(mark).outcome
    assert outcome.holds, outcome


@pytest.mark.parametrize(("room", "slow"), ROOMS)
def test_claims_reach_the_symbols_of_their_rows(room: str, slow: bool) -> None:
    """Symbols that no mark of their row runs, and marks that run no code of the package; rows with slow marks apart."""
    assert [*unreached_symbols(room, slow=slow), *idle_marks(room, slow=slow)] == []
