"""Random streams addressed by (seed, stream, index): the same bits on every machine and thread."""

from __future__ import annotations

from typing import Union

from ._esscher import Stream

Stream.__doc__ = """Counter-based random stream: value i is a pure function of (seed, stream, i).

>>> import esscher as es
>>> s = es.Stream(1)
>>> bool((s.normal(5)[2:] == s.normal(3, first=2)).all())
True
>>> s.split(0)  # doctest: +ELLIPSIS
Stream(seed=1, stream=...)
"""

__all__ = ["Stream", "as_stream"]


def as_stream(value: Union[Stream, int]) -> Stream:
    """A stream, or stream 0 of a seed."""
    return value if isinstance(value, Stream) else Stream(value)
