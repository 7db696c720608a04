"""`parnassus predict` for the classifiers of sentences."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal, cast

import pytest
import torch

from parnassus.shapley.experiments import shap_sentences
from parnassus.text import WordTokeniser, tokeniser_to_dict
from parnassus.text.word_tokeniser import UNKNOWN
from parnassus.train.sample_predict_evaluate import Input
from parnassus.train.trained import TrainedRun


@pytest.mark.parametrize("network", ["recurrent", "bag_of_words"])
def test_sentiments_follow_the_sign_of_the_log_odds(
    untrained_run: Callable[..., TrainedRun],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    network: Literal["recurrent", "bag_of_words"],
) -> None:
    tokeniser = WordTokeniser.fit("the food was not good dull", special=(shap_sentences.PADDING, UNKNOWN))
    run = untrained_run("shap_sentences", {"tokens": tokeniser_to_dict(tokeniser)})
    models = cast("shap_sentences.OpinionClassifiers", run.model)
    bag_of_words = cast("shap_sentences.BagOfWords", models.model("bag_of_words"))
    with torch.no_grad():
        bag_of_words.weights.weight.copy_(torch.linspace(-2, 2, tokeniser.vocabulary)[:, None])
    lines = ["the food was good", "", "the food was not good", "dull soup"]
    (tmp_path / "opinions.txt").write_text("\n".join(lines))
    rows = list(shap_sentences.Predict(network=network)(run, [Input(tmp_path / "opinions.txt")]))
    assert [row["text"] for row in rows] == [line for line in lines if line]
    assert capsys.readouterr().err == "unknown words: soup\n"
    for row in rows:
        with torch.no_grad():
            log_odds = float(models.model(network)(tokeniser.encode(str(row["text"]))[None]))
        assert row["class"] == shap_sentences.SENTIMENTS[log_odds <= 0]
        assert row["probability"] == pytest.approx(float(torch.tensor(abs(log_odds)).sigmoid()), rel=1e-5)
