"""BLEU: how many runs of one to four words of a translation are also in the wanted one (Papineni et al. 2002)."""

from collections.abc import Sequence
from math import nan


def bleu(written: Sequence[str], wanted: Sequence[str]) -> float:
    """BLEU of a whole corpus, 0 to 100, as sacrebleu counts it; nan where that is not installed.

        BLEU = 100 · min(1, e^{1 − r/c}) · (Π_{n ≤ 4} p_n)^{1/4}

    p_n is the share of runs of n words that are found in the wanted text too, c and r are the lengths of both. Only
    numbers with the same `signature` can be compared (Post 2018). Install with: pip install 'parnassus[text]'.
    """
    if len(written) != len(wanted) or not wanted:
        raise ValueError(f"there must be a wanted line for each written one; got {len(written)} and {len(wanted)}")
    try:
        from sacrebleu.metrics.bleu import BLEU
    except ImportError:
        return nan
    return float(BLEU().corpus_score(list(written), [list(wanted)]).score)


def signature() -> str:
    """How BLEU was counted, as sacrebleu asks to be told."""
    try:
        from sacrebleu.metrics.bleu import BLEU
    except ImportError:
        return "BLEU needs sacrebleu: pip install 'parnassus[text]'"
    metric = BLEU()
    metric.corpus_score(["a"], [["a"]])
    return f"sacreBLEU {metric.get_signature()}"
