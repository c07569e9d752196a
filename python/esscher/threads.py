"""How many threads compute. Results never depend on it."""

from __future__ import annotations

from . import _esscher

_chosen = False


def set_thread_count(threads: int) -> None:
    """Threads of every later call; 0 for one per core.

    >>> import esscher as es
    >>> es.set_thread_count(2)
    >>> es.thread_count()
    2
    >>> es.set_thread_count(0)
    """
    global _chosen
    _chosen = True
    _esscher.set_thread_count(threads)


def thread_count() -> int:
    """Threads in use.

    >>> import esscher as es
    >>> es.thread_count() >= 1
    True
    """
    return _esscher.thread_count()


def are_chosen() -> bool:
    """Whether the script has set a number."""
    return _chosen


def suggest(threads: int) -> None:
    """A number that is not the choice of the script."""
    _esscher.set_thread_count(threads)
