"""The grammar: agreement of articles, reproducibility, disjoint splits."""

import re

import pytest

from parnassus.data.built_in.phrases import ARTICLES, NOUNS, ORDERS, german_phrases, phrases


def test_indefinite_article_agrees_with_the_next_word() -> None:
    pairs = {phrase.german: phrase.english for phrase in phrases(1_500)}
    with_an = {english for english in pairs.values() if " an " in f" {english}"}
    assert with_an
    assert all(re.search(r"\ban (old)\b", english) for english in with_an)
    assert all(not re.search(r"\ba [aeiou]", english) for english in pairs.values())


def test_all_word_orders_occur_and_verbs_are_final_in_clauses() -> None:
    sentences = phrases(400)
    assert {phrase.order for phrase in sentences} == set(ORDERS)
    clause = next(phrase for phrase in sentences if ", dass" in phrase.german)
    assert clause.order == "verb final"
    german, english = clause.german.rstrip(".").split(), clause.english.rstrip(".").split()
    assert german.index("weiß,") < german.index("dass") < len(german) - 1
    assert english[english.index("that") - 1] == "knows"


def test_articles_agree_with_nouns() -> None:
    genders = {noun.german: noun.gender for noun in NOUNS}
    for phrase in phrases(300):
        with_an = re.findall(r"\w+", phrase.german)
        for index, word in enumerate(with_an):
            if word in genders:
                article = with_an[index - 1] if with_an[index - 1] in sum(ARTICLES.values(), ()) else with_an[index - 2]
                assert article in ARTICLES[genders[word]], phrase


def test_sentences_are_distinct_and_reproducible() -> None:
    assert len({phrase.german for phrase in phrases(500)}) == 500
    assert phrases(20, seed=1) == phrases(20, seed=1) != phrases(20, seed=2)
    assert phrases(10) == phrases(20)[:10]


def test_splits_are_disjoint() -> None:
    pairs = german_phrases(300, 50, 60)
    parts = [{german for german, _ in part} for part in (pairs.train, pairs.valid, pairs.test)]
    assert [len(part) for part in parts] == [300, 50, 60]
    assert len(set.union(*parts)) == 410


def test_invalid_arguments_raise() -> None:
    with pytest.raises(ValueError, match="must not be negative; got number=-1"):
        phrases(-1)
