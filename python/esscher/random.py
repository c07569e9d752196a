"""Random streams addressed by (seed, stream, index): the same bits on every machine and thread."""

from __future__ import annotations

from typing import Any, Union

from ._esscher import Stream
from .errors import ArgumentError
from .types import whole

Stream.__doc__ = """Counter-based random stream: value i is a pure function of (seed, stream, i).

>>> import esscher as es
>>> s = es.Stream(1)
>>> bool((s.normal(5)[2:] == s.normal(3, first=2)).all())
True
>>> s.split(0)  # doctest: +ELLIPSIS
Stream(seed=1, stream=...)
"""



def _reduce(self: Stream) -> Any:
    return Stream, (self.seed, self.id)


def _equal(self: Stream, other: object) -> bool:
    return isinstance(other, Stream) and (self.seed, self.id) == (other.seed, other.id)


# A stream is its two numbers: it pickles, copies and compares as they do.
setattr(Stream, "__reduce__", _reduce)
setattr(Stream, "__eq__", _equal)
setattr(Stream, "__hash__", lambda self: hash((self.seed, self.id)))

__all__ = ["Stream", "as_seed", "as_stream"]


def as_stream(value: Union[Stream, int]) -> Stream:
    """A stream, or stream 0 of a seed."""
    return value if isinstance(value, Stream) else Stream(as_seed("stream", value))


def as_seed(where: str, value: Any) -> int:
    """The seed of a call that may be kept in a run, which has no place for a stream."""
    if isinstance(value, Stream):
        raise ArgumentError(f"{where}: seed is {value!r}, expected an integer, which a run can keep")
    seed = whole(where, "seed", value)
    if not 0 <= seed < 2**64:
        raise ArgumentError(f"{where}: seed is {seed}, expected an integer from 0 to 2^64 - 1")
    return seed
