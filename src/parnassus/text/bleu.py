"""BLEU score of translations against references (Papineni et al. 2002)."""

from collections.abc import Sequence
from math import nan


def bleu(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Corpus BLEU, 0 to 100, as computed by sacrebleu; nan if sacrebleu is not installed.

        BLEU = 100 · min(1, e^{1 − r/c}) · (Π_{n ≤ 4} p_n)^{1/4}

    p_n is the fraction of the hypotheses' n-grams that occur in the references, c and r are the total lengths of
    hypotheses and references. Only scores with the same `bleu_signature` are comparable (Post 2018).
    """
    if len(hypotheses) != len(references) or not references:
        raise ValueError(
            "there must be at least one hypothesis and one reference for each; "
            f"got {len(hypotheses)} hypotheses and {len(references)} references"
        )
    try:
        from sacrebleu.metrics.bleu import BLEU
    except ImportError:
        return nan
    return float(BLEU().corpus_score(list(hypotheses), [list(references)]).score)


def bleu_signature() -> str:
    """The sacrebleu version and settings that a published score should state."""
    try:
        from sacrebleu.metrics.bleu import BLEU
    except ImportError:
        return "BLEU needs sacrebleu: pip install 'parnassus[text]'"
    metric = BLEU()
    metric.corpus_score(["a"], [["a"]])
    return f"sacreBLEU {metric.get_signature()}"
