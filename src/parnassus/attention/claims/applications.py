"""Claims about classifiers, translators, text generators and tasks given in the prompt (book secs. 10.1.1, 10.1.2)."""

import torch
from torch import Tensor, nn
from torch.optim import Adam

from parnassus.atlas import Correction, Evidence, all_of, claim, close, erratum, greater_equal, less_equal
from parnassus.attention.core.multi_head import AttentionWidths, MultiHeadAttention
from parnassus.attention.models.encoder import Encoder, encoder
from parnassus.attention.models.gpt import LanguageModel, gpt, rotary_gpt
from parnassus.attention.models.sentence_classifier import SentenceClassifier
from parnassus.attention.models.seq2seq import seq2seq
from parnassus.attention.models.text_generator import TextGenerator
from parnassus.attention.models.translator import BEGIN, END, SPECIAL, Translator, encode_sentences
from parnassus.text.character_tokeniser import CharacterTokeniser
from parnassus.text.enumeration import enumerate_continuations
from parnassus.text.sampling import greedy
from parnassus.text.word_tokeniser import WordTokeniser


def enlarge_weights(model: nn.Module, factor: float = 4.0) -> nn.Module:
    """Scale all matrices, so that predictions are far from uniform; double precision, evaluation mode."""
    with torch.no_grad():
        for parameter in model.double().eval().parameters():
            if parameter.ndim == 2:
                parameter.mul_(factor)
    return model


@claim("B10.1.1-8", "B10.1.2-8")
@torch.no_grad()
def a_sentence_classifier_pools_the_words_of_each_sentence() -> Evidence:
    """softmax(W v + b) with v the mean over the words of the sentence alone, and −log p as loss (book sec. 10.1.2)."""
    torch.manual_seed(0)
    model = SentenceClassifier(encoder(20, 9, width=16), Encoder.mean_pool, 3).double().eval()
    lengths, labels = (9, 4, 1), torch.tensor([2, 0, 1])
    tokens = torch.randint(1, 20, (3, 9)) * (torch.arange(9) < torch.tensor(lengths)[:, None])
    vectors = [model.encoder(row[None, :length])[0].mean(0) for row, length in zip(tokens, lengths, strict=True)]
    logits = torch.stack([model.head.weight @ vector + model.head.bias for vector in vectors])
    chosen = torch.stack([row.exp()[label] / row.exp().sum() for row, label in zip(logits, labels, strict=True)])
    return all_of(
        embeddings=close(model.embed(tokens), torch.stack(vectors), atol=1e-12),
        logits=close(model(tokens), logits, atol=1e-12),
        loss=close(model.loss(tokens, labels), -chosen.log().mean(), rtol=1e-12),
    )


@claim("B10.1.1-7")
def a_wide_beam_finds_the_most_likely_translation() -> Evidence:
    """`translate` returns the words with the best log p/length^α among all translations (book sec. 10.1.1)."""
    torch.manual_seed(2)
    source = WordTokeniser.fit("a b c d", special=SPECIAL)
    target = WordTokeniser.fit("x y z", special=SPECIAL)
    model = seq2seq((source.vocabulary, target.vocabulary), 5, width=16, heads=2, depth=1)
    translator = Translator(model, source, target)
    enlarge_weights(translator)
    sentences = ["a b", "c", "d d a", "b a c"]
    conditions = [model.condition_on(encode_sentences(source, [sentence])) for sentence in sentences]
    texts = [enumerate_continuations(each, torch.tensor([BEGIN]), length=4, stop=END) for each in conditions]
    best = {penalty: [target.decode(each.best(penalty)) for each in texts] for penalty in (0.0, 1.0)}
    found = {penalty: translator.translate(sentences, width=6**3, penalty=penalty) for penalty in best}
    return all_of(
        translations=close(float(found == best), 1.0),
        alone_as_in_a_batch=close(float(translator.translate(sentences[1:2], width=6**3) == best[1.0][1:2]), 1.0),
        effect_of_the_sentence=greater_equal(float(len(set(best[1.0]))), 2.0),
        effect_of_the_penalty=greater_equal(float(sum(a != b for a, b in zip(*best.values(), strict=True))), 1.0),
    )


@claim("B10.1.1-10")
@torch.no_grad()
def generated_text_is_the_most_likely_character_each_time() -> Evidence:
    """Greedy generation appends the argmax of one pass over the whole text, each time (book sec. 10.1.1)."""
    torch.manual_seed(0)
    tokeniser = CharacterTokeniser.fit("attention is all you need")
    generator = TextGenerator(gpt(tokeniser.vocabulary, 40, width=16, heads=2, depth=2), tokeniser)
    enlarge_weights(generator, 8.0)
    text = "you "
    first = generator.logits(text)
    for _ in range(30):
        text += tokeniser.decode(generator(tokeniser.encode(text)[None])[0, -1:].argmax(-1))
    generated = "".join(generator.generate("you ", greedy, 30))
    return all_of(
        text=close(float("you " + generated == text), 1.0),
        logits=close(first, generator(tokeniser.encode("you ")[None])[0, -1], atol=1e-12),
        number_of_different_characters=greater_equal(float(len(set(generated))), 3.0),
    )


@claim("B10.1.1-12")
def the_task_in_the_prompt_decides_the_answer() -> Evidence:
    """One model answers p(output | input, task): the first or the last of four letters, as asked (book sec. 10.1.1)."""
    torch.manual_seed(0)
    letters, first, last = 6, 6, 7
    model = rotary_gpt(8, 6, width=32, heads=2, depth=2)
    optimizer = Adam(model.parameters(), lr=1e-2)
    for _ in range(80):
        optimizer.zero_grad()
        model.nll(_two_tasks(64, letters, first, last))[:, -1].mean().backward()
        optimizer.step()
    test = _two_tasks(500, letters, first, last)
    other = test.clone()
    other[:, 0] = first + last - test[:, 0]
    with torch.no_grad():
        answers, other_answers = (model(rows[:, :-1])[:, -1].argmax(-1) for rows in (test, other))
        likelihood = model.nll(test)[:, -1]
    different = test[:, 1] != test[:, 4]
    return all_of(
        accuracy=greater_equal((answers == test[:, 5]).double().mean(), 0.97),
        accuracy_with_the_other_task=less_equal((other_answers == test[:, 5])[different].double().mean(), 0.05),
        nll=less_equal(likelihood.mean(), 0.2),
    )


def _two_tasks(rows: int, letters: int, first: int, last: int) -> Tensor:
    """A task token, four letters, and the answer."""
    words, task = torch.randint(letters, (rows, 4)), torch.randint(first, last + 1, (rows, 1))
    return torch.cat([task, words, torch.where(task == first, words[:, :1], words[:, 3:])], 1)


@claim("B10.1.2-11")
def a_transformer_adds_context_to_the_token_embeddings() -> Evidence:
    """Its last state depends on all tokens; the embedding, and a model of it alone, on the last one (book sec. 10.1.2).

    With blocks whose outputs are 0 the model is the bigram table E norm(e).
    """
    torch.manual_seed(0)
    model = rotary_gpt(9, 6, width=16, heads=2, depth=1)
    enlarge_weights(model)
    tokens = torch.tensor([[1, 2, 3, 4], [5, 6, 7, 4]])
    with torch.no_grad():
        with_context = model(tokens)[:, -1]
        _remove_blocks(model)
        without = model(tokens)[:, -1]
        e = model.embedding.tokens.weight
        bigram = e @ (e[4] / e[4].square().mean().sqrt())  # the norm has weight 1
    return all_of(
        context_changes_the_prediction=greater_equal((with_context[0] - with_context[1]).abs().max(), 0.05),
        without_blocks_only_the_last_token_matters=close(without[0], without[1], atol=1e-12),
        bigram_table=close(without[0], bigram, rtol=1e-6),
    )


def _remove_blocks(model: LanguageModel) -> None:
    for name, parameter in model.named_parameters():
        if name.endswith(("out_proj.weight", "dense.2.weight", "dense.2.bias")):
            parameter.zero_()


@erratum(
    "B10.1.1-5",
    printed="key_dim = embed_dim for each head (the Keras example behind the listing)",
    right="key_dim = embed_dim / num_heads, so that the number of parameters does not depend on the heads",
)
def heads_share_the_width() -> Correction:
    """Heads of full width have h times the parameters of the published layer (book sec. 10.1.1)."""
    width, heads = 16, 8
    published = _count_parameters(nn.MultiheadAttention(width, heads))
    wide = MultiHeadAttention(AttentionWidths(width, width, width, width), heads, key_width=width)
    shared = MultiHeadAttention(AttentionWidths(width, width, width, width), heads)
    return Correction(
        printed=close(_count_parameters(wide), published), corrected=close(_count_parameters(shared), published)
    )


def _count_parameters(layer: nn.Module) -> float:
    return float(sum(parameter.numel() for parameter in layer.parameters()))
