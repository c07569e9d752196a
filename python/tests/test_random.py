"""Streams against the known answers of tests/data, which C++ reads too."""

import struct

import numpy as np
import pytest

import esscher as es


def as_double(word: str) -> float:
    return struct.unpack(">d", bytes.fromhex(word.zfill(16)))[0]


def test_known_answers(data):
    checked = 0
    for line in (data / "philox_kat.txt").read_text().splitlines():
        kind, *words = line.split()
        if kind not in ("uniform", "normal", "split"):
            continue
        seed, stream, index = (int(word, 16) for word in words[:3])
        s = es.Stream(seed, stream)
        if kind == "split":
            assert s.split(index).id == int(words[3], 16)
        else:
            value = getattr(s, kind)(1, first=index)[0]
            assert value == as_double(words[3]), line
        checked += 1
    assert checked > 50


def test_uniform_and_normal_ranges():
    s = es.Stream(3)
    u, x = s.uniform(10000), s.normal(10000)
    assert 0 < u.min() and u.max() < 1
    assert abs(x.mean()) < 6 / 100 and abs(x.var() - 1) < 6 * 2**0.5 / 100


def test_bad_seed():
    with pytest.raises(TypeError):
        es.Stream(-1)


def test_sample_is_a_prefix_of_a_longer_one():
    mu = es.Gaussian(np.eye(3))
    assert np.array_equal(mu.sample(5, 10).tokens, mu.sample(5, 100).tokens[:10])
