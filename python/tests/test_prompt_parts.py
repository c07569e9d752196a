"""es.Prompt: what it holds, what every call makes of it, against brute force, the program and other engines."""

import copy
import itertools
import json
import pickle
import subprocess

import numpy as np
import pytest

import esscher as es
from user_laws import Coin

T = es.Attention(U=[[0.6, 0.1], [0.0, 0.5]], V=[[1.0, 0.5], [0.0, 2.0]])
Z = np.array([1.0, -0.5])
COIN = es.Rademacher(2)
FULL = es.Prompt(
    [es.Group(COIN, share=0.75), es.Group(es.Gaussian(np.eye(2)), count=2, bias=0.5, name="needles")],
    given=[[1.0, 2.0], [0.0, -1.0]],
    include_query=True,
    sink_logits=[0.3, -np.inf],
    bias={"kind": "table", "values": [0.0, 0.4, -0.2]},
)
PROMPTS = [
    FULL,
    es.Prompt(COIN),
    es.Prompt([[1.0, 0.0], [0.0, 1.0]]),  # tokens drawn with replacement
    es.Prompt([COIN, es.Sphere(2)], bias={"kind": "alibi", "slope": 0.1}),
    es.Prompt(es.Group(COIN, count=3), bias={"kind": "window", "width": 2}),
    es.Prompt(given=[[1.0, 2.0]], include_query=True),
]


def by_enumeration(n, given):
    """E of output, |output|^2 and weights over all prompts of n coins, tokens in the order coins, given."""
    atoms = np.array(list(itertools.product((-1.0, 1.0), repeat=2)))
    output, square, weights = np.zeros(2), 0.0, np.zeros(n + len(given))
    for chosen in itertools.product(range(4), repeat=n):
        tokens = np.vstack([atoms[list(chosen)], given])
        w = np.exp(tokens @ T.U @ Z)
        w = w / w.sum()
        out = T.V @ (w @ tokens)
        output, square, weights = output + out / 4**n, square + out @ out / 4**n, weights + w / 4**n
    return output, square, weights


@pytest.mark.parametrize("n", [2, 3])
def test_self_attention_with_given_tokens_is_the_sum_over_all_prompts(n):
    given = np.array([[1.0, 2.0], [0.0, -1.0]])
    prompt = es.Prompt(es.Group(COIN, count=n), given=given, include_query=True)
    output, square, weights = by_enumeration(n, np.vstack([given, Z]))
    seen = es.attend(prompt, T, Z)
    assert (seen.length, seen.engine) == (n + 3, "exact")
    np.testing.assert_allclose(seen.output, output, rtol=1e-12)
    np.testing.assert_allclose(seen.variance, square - output @ output, rtol=1e-10)
    expected = {"given:0": weights[n], "given:1": weights[n + 1], "rademacher": weights[:n].sum(), "self": weights[-1]}
    assert list(seen.weights) == list(expected)
    np.testing.assert_allclose(list(seen.weights.values()), list(expected.values()), rtol=1e-12)
    np.testing.assert_array_equal(es.expected_output(prompt, T, Z, n + 3), seen.output)


def test_the_program_says_the_same(program, tmp_path):
    config = tmp_path / "prompt.toml"
    config.write_text(
        "[prompt]\ngiven = [[1.0, 2.0], [0.0, -1.0]]\ninclude_query = true\nsink_logits = [0.3, -inf]\n"
        'bias = { kind = "table", values = [0.0, 0.4, -0.2] }\n'
        '[[prompt.groups]]\nmeasure = { type = "rademacher", dim = 2 }\nshare = 1.0\n'
        '[[prompt.groups]]\nmeasure = { type = "gaussian", dim = 2 }\ncount = 2\nbias = 0.5\nname = "needles"\n'
        "[attention]\nU = [[0.6, 0.1], [0.0, 0.5]]\nV = [[1.0, 0.5], [0.0, 2.0]]\n[query]\nz = [1.0, -0.5]\n"
        '[sweep]\nlengths = [10, 20]\nmetrics = ["output"]\n'
    )

    def say(*words):
        command = [program, *words, "--config", str(config), "--json"]
        return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)

    row, seen = say("attend", "--length", "20", "--set", "sweep={}")["rows"][0], es.attend(FULL, T, Z, 20)
    assert row["output"] == seen.output.tolist() and row["variance"] == seen.variance
    assert {part["group"]: part["mean"] for part in row["weights"]} == seen.weights
    found = es.concentration(FULL, T, [Z], [10, 20], metrics=["output"])
    for mine, theirs in zip(found.rows, say("concentration")["rows"]):
        assert mine["value"] == theirs["value"] and mine["weights"] == theirs["weights"]
    assert found.rows[1]["value"] == es.mean_square_error(FULL, T, Z, 20).value
    universal, mine = say("universal", "--length", "20", "--needle", "1.5"), es.universal(20, FULL, T, Z, needle=1.5)
    for name in ("H", "M1", "M2c", "free_energy", "entropy", "needle"):
        assert universal[name] == getattr(mine, name)
    length = es.shortest_length(FULL, T, [Z], error="20%")
    assert say("length", "--error", "20%")["length"] == length.length


def test_engines_agree():
    exact = es.attend(FULL, T, Z, 25)
    drawn = es.attend(FULL, T, Z, 25, engine="direct", replicates=20000, seed=3)
    assert (exact.engine, drawn.engine) == ("exact", "direct")
    assert np.all(exact.std_error == 0) and np.all(drawn.std_error > 0)
    assert np.all(np.abs(drawn.output - exact.output) < 6 * drawn.std_error)
    for name, weight in exact.weights.items():
        assert abs(drawn.weights[name] - weight) < 6 * np.sqrt(weight * (1 - weight) / 20000) + 1e-12


def test_limits_and_saturation():
    two = es.Prompt([es.Group(COIN, share=0.25), es.Group(es.Gaussian(np.eye(2)), share=0.75, bias=np.log(2))])
    same = es.Mixture([0.25, 1.5], [COIN, es.Gaussian(np.eye(2))])
    np.testing.assert_allclose(es.expected_output(two, T, Z, es.inf), T(same, Z), rtol=1e-12)
    np.testing.assert_allclose(two.limit.weights, same.weights, rtol=1e-14)
    np.testing.assert_allclose(es.expected_output(two, T, Z, 10**9), T(same, Z), rtol=1e-6)
    alibi = es.Prompt(COIN, bias={"kind": "alibi", "slope": 0.2})
    assert alibi.limit is None and "alibi" in alibi.no_limit
    far, further = (es.expected_output(alibi, T, Z, L) for L in (10**4, es.inf))
    np.testing.assert_allclose(far, further, rtol=1e-12)
    assert FULL.limit.name == "rademacher" and FULL.no_limit is None


def test_the_limit_of_a_prompt_is_what_attention_gives():
    assert np.array_equal(T(FULL, Z), T(COIN, Z))
    assert T(FULL, np.array([Z, 2 * Z])).shape == (2, 2)
    with pytest.raises(es.CapabilityError, match="alibi.*expected_output"):
        T(es.Prompt(COIN, bias={"kind": "alibi", "slope": 0.2}), Z)


def test_long_prompts_reach_their_constant():
    """Counts of groups are fixed, so the constant is not that of the mixture."""
    two = es.Prompt([es.Group(COIN, share=0.5), es.Group(es.Gaussian(np.eye(2), [2.0, 0.0]), share=0.5, bias=0.3)])
    constant = es.asymptotic_constant(two, T, Z)
    assert es.mean_square_error(two, T, Z, 10**8).value * 10**8 == pytest.approx(constant, rel=1e-5)
    assert abs(constant / es.asymptotic_constant(two.limit, T, Z) - 1) > 0.02


def test_student_tokens_have_finite_prompts_and_no_limit():
    law = es.Student(5, [[0.6]])
    head = es.Attention(U=[[1.0]])
    assert round(float(es.expected_output(law, head, [1.0], 1000)[0]), 2) == 2.30
    with pytest.raises(es.DomainError, match="no limit"):
        es.expected_output(law, head, [1.0], es.inf)
    assert es.universal(1000, law, head, [1.0]).M2c == es.inf


def test_a_link_of_the_user_is_exact():
    tanh = es.SingleIndex([[1.0]], [1.3], link="tanh", noise_variance=0.1)
    own = es.SingleIndex([[1.0]], [1.3], link=np.tanh, noise_variance=0.1)
    for L in (2, 50):
        one, other = es.attend(tanh, T, Z, L), es.attend(own, T, Z, L)
        assert one.engine == other.engine == "exact"
        np.testing.assert_allclose(one.output, other.output, rtol=1e-9)
    drawn = es.attend(own, T, Z, 20, engine="direct", replicates=4000)
    assert np.all(np.abs(drawn.output - es.attend(own, T, Z, 20).output) < 6 * drawn.std_error)


@pytest.mark.parametrize("how", [lambda x: pickle.loads(pickle.dumps(x)), copy.copy, copy.deepcopy])
@pytest.mark.parametrize("prompt", PROMPTS, ids=range(len(PROMPTS)))
def test_prompts_come_back(prompt, how):
    again = how(prompt)
    assert repr(again) == repr(prompt) and again.names == prompt.names
    length = None if all(group.count is not None for group in prompt.groups) else 12
    assert np.array_equal(es.attend(again, T, Z, length).output, es.attend(prompt, T, Z, length).output)


@pytest.mark.parametrize("prompt", PROMPTS, ids=range(len(PROMPTS)))
def test_a_repr_makes_the_prompt_again(prompt):
    names = {name: getattr(es, name) for name in es.__all__}
    assert repr(eval(repr(prompt), names)) == repr(prompt)


def test_parts_and_counts():
    assert FULL.names == ["given:0", "given:1", "rademacher", "needles", "self", "sink:0", "sink:1"]
    assert (FULL.dim, FULL.fixed_tokens, FULL.counts(20)) == (2, 5, [15, 2])
    assert [group.name for group in FULL.groups] == ["", "needles"]
    assert es.Prompt([COIN, es.Sphere(2)]).counts(7) == [4, 3]


@pytest.mark.parametrize(
    "make, error, says",
    [
        (lambda: es.Prompt(), es.ArgumentError, "groups or given tokens"),
        (lambda: es.Prompt(COIN, given=[[1.0]]), es.DimensionError, "given tokens"),
        (lambda: es.Prompt([COIN, es.Sphere(3)]), es.DimensionError, "group of sphere"),
        (lambda: es.Prompt(COIN, sink_logits=[np.inf]), es.ArgumentError, "sink_logits"),
        (lambda: es.Prompt(COIN, sink_logits=[np.nan]), es.ArgumentError, "sink_logits"),
        (lambda: es.Prompt(es.Group(COIN, count=2, share=0.5)), es.ArgumentError, "count and share"),
        (lambda: es.Prompt(es.Group(COIN, count=-1)), es.ArgumentError, "count of group rademacher is -1"),
        (lambda: es.Prompt(es.Group(COIN, count=1.5)), es.ArgumentError, "count is 1.5"),
        (lambda: es.Prompt(es.Group(COIN, share=0)), es.ArgumentError, "shares"),
        (lambda: es.Prompt(COIN, bias={"kind": "alibi"}), es.ArgumentError, "slope"),
        (lambda: es.Prompt(COIN, bias={"kind": "alibi", "slope": -1}), es.ArgumentError, "slope is -1"),
        (lambda: es.Prompt(COIN, bias={"kind": "rope"}), es.ArgumentError, "alibi"),
        (lambda: es.Prompt(COIN, bias=0.5), es.ArgumentError, "bias is 0.5"),
        (lambda: es.Prompt(COIN, bias={"kind": "window", "width": 0}), es.ArgumentError, "width is 0"),
        (lambda: es.Prompt("tokens"), es.ArgumentError, "Prompt"),
        (lambda: es.Prompt(COIN, givens=[[1.0, 2.0]]), TypeError, "did you mean 'given'"),
        (lambda: es.attend(COIN, T, Z), es.ArgumentError, "length is None, expected the number of tokens"),
        (lambda: es.attend(FULL, T, Z, 3), es.ArgumentError, "L is 3, expected at least 5"),
        (lambda: es.attend(FULL, T, Z, es.inf), es.ArgumentError, "expected_output"),
        (lambda: es.attend(FULL, T, [1.0], 9), es.DimensionError, "z"),
        (lambda: es.attend(FULL, T, Z, 9, engine="sampled"), es.CapabilityError, "direct"),
        (lambda: es.universal(9, FULL), es.ArgumentError, "attention and z"),
        (lambda: es.universal(9, 1.0, needle=2.0), es.ArgumentError, "needle"),
        (lambda: es.universal(es.inf, FULL, T, Z), es.ArgumentError, "a number"),
        (lambda: es.mean_square_error(FULL, T, Z, 9, metric="grad_u", engine="exact"), es.CapabilityError, "direct"),
        (lambda: es.mean_square_error(FULL, T, Z, 9, metric="grad_v", gradient=True), es.CapabilityError, "grad_v .* no exact gradient"),
    ],
)
def test_errors_name_the_part(make, error, says):
    with pytest.raises(error, match=says):
        make()


def test_a_run_of_a_prompt_is_resumed_by_the_same_prompt_only(tmp_path):
    say = dict(metrics=["output"], out=tmp_path / "run")
    first = es.concentration(FULL, T, [Z], [10, 20], **say)
    again = es.concentration(FULL, T, [Z], [10, 20], **say)
    assert first.rows[0]["value"] == again.rows[0]["value"] and again.rows[0]["weights"] == first.rows[0]["weights"]
    with pytest.raises(es.Error):
        es.concentration(es.Prompt(COIN, sink_logits=[0.0]), T, [Z], [10, 20], **say)


def test_a_measure_of_the_user_is_drawn():
    own = es.attend(es.Prompt(Coin(2), sink_logits=[0.0]), T, Z, 6, replicates=4000)
    coin = es.attend(es.Prompt(COIN, sink_logits=[0.0]), T, Z, 6)
    assert own.engine == "direct" and np.all(np.abs(own.output - coin.output) < 6 * own.std_error)
