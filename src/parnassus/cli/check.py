"""`parnassus check`: run claims and errata and show measured next to predicted values."""

import time

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from parnassus.atlas.declarations import Mark
from parnassus.atlas.evidence import Correction, Evidence
from parnassus.atlas.index import load_atlas, run_mark


def check_claims(parts: list[str], *, only_failed: bool) -> int:
    """Run the claims that match `parts` (all claims if `parts` is empty); exit code 1 if one does not hold."""
    atlas = load_atlas()
    chosen = atlas.marks if not parts else [mark for part in parts for mark in atlas.marks_of(part)]
    chosen = list(dict.fromkeys(chosen))
    console = Console(highlight=False)
    if not chosen:
        console.print(f"no claims for {', '.join(parts)} yet")
        return 0
    import torch  # imported only after unknown ids have been rejected

    torch.set_num_threads(1)  # claims are small
    failures, began = 0, time.perf_counter()
    table = Table(box=None, pad_edge=False, header_style="dim")
    for title in ("", "id", "statement", "measured and predicted"):
        table.add_column(title, overflow="fold")
    with console.status("") as status:
        for count, mark in enumerate(chosen, start=1):
            status.update(f"{count}/{len(chosen)}  {mark.room}: {mark.label}")
            holds, shown = run_claim(mark)
            failures += not holds
            if not (holds and only_failed):
                sign = "[green]✓[/]" if holds else "[red]✗[/]"
                table.add_row(sign, "\n".join(mark.ids), statement(mark), escape(shown))
    console.print(table)
    seconds = time.perf_counter() - began
    console.print(f"\n{len(chosen) - failures} of {len(chosen)} hold ({seconds:.1f} s)")
    return 1 if failures else 0


def run_claim(mark: Mark) -> tuple[bool, str]:
    """Whether a claim or erratum holds, and the numbers that show it."""
    try:
        outcome = run_mark(mark)
    except Exception as error:  # a claim that raises does not hold; the others still run
        return False, f"{type(error).__name__}: {error}"
    if isinstance(outcome, Correction):
        return outcome.holds, f"{_describe_printed(outcome.printed)}\n{_describe_corrected(outcome.corrected)}"
    return outcome.holds, _lines(outcome)


def statement(mark: Mark) -> str:
    """The statement of a claim or an erratum, as markup."""
    return escape(mark.summary) if mark.kind == "claim" else f"[dim]erratum:[/] {escape(mark.summary)}"


NEGATIONS = {"=": "≠", "≈": "≉", "≤": "≰", "≥": "≱", "<": "≮", "is": "is not", "is a": "is not a"}


def _describe_printed(evidence: Evidence) -> str:
    """The evidence of a printed formula, which is expected to fail, so that a success reads as one."""
    return (
        f"✗ printed value holds: {_lines(evidence)}" if evidence.holds else f"printed value fails: {_failure(evidence)}"
    )


def _describe_corrected(evidence: Evidence) -> str:
    return f"{'corrected value holds' if evidence.holds else '✗ corrected value fails'}: {_lines(evidence)}"


def _failure(evidence: Evidence) -> str:
    """Evidence that does not hold, with the negated relation: "200 ≠ 2"; of several pieces those that fail."""
    if not evidence.parts:
        return f"{evidence.measured} {NEGATIONS[evidence.relation]} {evidence.predicted}"
    return "\n".join(f"{name}: {_failure(part)}" for name, part in evidence.parts if not part.holds)


def _lines(evidence: Evidence) -> str:
    if not evidence.parts:
        return str(evidence)
    return "\n".join(f"{'' if part.holds else '✗ '}{name}: {part}" for name, part in evidence.parts)
