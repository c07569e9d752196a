"""``out=``, ``shard=`` and ``progress=`` of long calls: into a run on disk, and who hears of it.

A run of Python has the call as its configuration, with a fingerprint of what TOML cannot say, so that it is resumed by
the same call and by no other.
"""

from __future__ import annotations

import hashlib
import json
import os
import pickle
from contextlib import contextmanager
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple, Union

import numpy as np

from .errors import ArgumentError
from .progress import Bar, Progress, listener
from .random import Stream
from .ranks import Ranks, world
from .recorded import Recorded

Out = Union[None, str, "os.PathLike[str]"]


def fingerprint(value: Any) -> str:
    """A short text that differs where the value does."""
    digest = hashlib.sha256()
    _absorb(digest, value)
    return digest.hexdigest()[:16]


def _absorb(digest: Any, value: Any) -> None:
    def add(*texts: Any) -> None:
        digest.update(("|".join(str(text) for text in texts) + ";").encode())

    if isinstance(value, Stream):
        add("stream", value.seed, value.id)
    elif isinstance(value, Recorded):
        add("object", type(value).__qualname__)
        _absorb(digest, value.parameters)
    elif isinstance(value, Mapping):
        for key, item in value.items():
            add("key", key)
            _absorb(digest, item)
    elif isinstance(value, (list, tuple)):
        add("list", len(value))
        for item in value:
            _absorb(digest, item)
    elif isinstance(value, np.ndarray) and value.dtype != object:
        add("array", value.dtype, value.shape)
        digest.update(np.ascontiguousarray(value).tobytes())
    elif isinstance(value, (int, float, str, bool, type(None), np.generic)):
        add(type(value).__name__, repr(value))
    else:
        add("object", type(value).__qualname__)
        try:
            digest.update(pickle.dumps(value))
        except Exception:  # an object that cannot be pickled is known by its class alone
            add("not pickled")


def _toml(value: Any) -> str:
    if isinstance(value, (bool, str)):
        return json.dumps(value)
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, (list, tuple)) and all(isinstance(item, (int, float, str)) for item in value):
        return "[" + ", ".join(_toml(item) for item in value) + "]"
    text = repr(value)
    if " at 0x" in text:  # no address of this process
        text = type(value).__qualname__
    return json.dumps(text if len(text) <= 200 else text[:197] + "...")


def call_toml(call: str, arguments: Mapping[str, Any]) -> str:
    """The configuration of a run that Python made."""
    lines = ["[python]", f"call = {json.dumps(call)}", f'fingerprint = "{fingerprint(dict(arguments))}"']
    return "\n".join(lines + [f"{key} = {_toml(value)}" for key, value in arguments.items() if value is not None]) + "\n"


@contextmanager
def outlet(
    verb: str,
    call: str,
    arguments: Mapping[str, Any],
    *,
    out: Out = None,
    shard: str = "",
    progress: Progress = None,
    seed: Union[int, Stream] = 0,
) -> Iterator[Optional[Dict[str, Any]]]:
    """What the compiled module wants to know; a bar is removed at the end.

    With ``out`` the MPI ranks of the script make the run together, and the first of them tells the progress.
    """
    ranks = None if out is None else world()
    hears = None if ranks is not None and ranks.rank != 0 else listener(progress, call)
    if ranks is not None:
        _same_run(ranks, os.fspath(out or ""))
    try:
        if out is None and hears is None:
            yield None
            return
        yield {
            "out": None if out is None else os.fspath(out),
            "verb": verb,
            "config": "" if out is None else call_toml(call, arguments),
            "seed": seed.seed if isinstance(seed, Stream) else seed,
            "shard": shard,
            "progress": hears,
            "ranks": ranks,
        }
    finally:
        if isinstance(hears, Bar):
            hears.close()


def _same_run(ranks: Ranks, out: str) -> None:
    theirs = ranks.share(lambda: out)
    if theirs != out:
        raise ArgumentError(
            f"out is {out!r} on rank {ranks.rank} and {theirs!r} on rank 0; the ranks of mpirun make one run together, or "
            "each its own with ESSCHER_MPI=0"
        )


def without(arguments: Mapping[str, Any], *names: str) -> Dict[str, Any]:
    """The arguments of a call that decide its result: not where it goes and who hears of it."""
    hidden: Tuple[str, ...] = ("out", "shard", "progress", *names)
    return {key: value for key, value in arguments.items() if key not in hidden}
