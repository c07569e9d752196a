"""MPI: the ranks of a script that was started by mpirun or srun make one run together (``out=``).

    mpirun -np 4 python3 study.py

Every rank runs the same script and gets the same result. Rank 0 owns the run directory and hands out points or cells.
mpi4py carries the messages, so that this package needs no MPI of its own. ``ESSCHER_MPI=0`` leaves ranks alone.
"""

from __future__ import annotations

import os
import sys
import time
from importlib import import_module
from typing import Any, Callable, Optional, Tuple, TypeVar, cast

from . import threads
from .errors import CapabilityError, RuntimeFailure

T = TypeVar("T")

_TAG = 1
# A failure of one rank ends all of them; the first rank has this long to say why.
_SECONDS_OF_RANK_ZERO = 3.0


class Ranks:
    """What the store asks of MPI (store/ranks.h): numbered processes that exchange bytes."""

    def __init__(self, mpi: Any) -> None:
        if mpi.Query_thread() < mpi.THREAD_SERIALIZED:
            raise CapabilityError("out: MPI was started with less than MPI_THREAD_SERIALIZED; leave mpi4py.rc.threads as it is")
        self._mpi = mpi
        # A communicator of our own: our texts never meet messages of the script.
        self._world = mpi.COMM_WORLD.Dup()
        self.rank: int = self._world.Get_rank()
        self.count: int = self._world.Get_size()

    def send(self, to: int, text: bytes) -> None:
        """A message, which arrives after those before it."""
        self._world.send(text, dest=to, tag=_TAG)

    def receive(self) -> Optional[Tuple[int, bytes]]:
        """(rank, message), or None if there is none now."""
        status = self._mpi.Status()
        if not self._world.Iprobe(source=self._mpi.ANY_SOURCE, tag=_TAG, status=status):
            return None
        return status.Get_source(), self._world.recv(source=status.Get_source(), tag=_TAG)

    def broadcast(self, text: bytes) -> bytes:
        """Rank 0's text, on every rank."""
        return self.share(lambda: text)

    def share(self, make: Callable[[], T]) -> T:
        """What ``make`` gives on rank 0, on every rank; where it fails, all of them fail."""
        if self.rank != 0:
            failed, found = self._world.bcast(None)
            if failed:
                raise RuntimeFailure(f"rank 0: {found}")
            return cast(T, found)
        try:
            made = make()
        except BaseException as error:
            self.fail(str(error) or type(error).__name__)
            raise
        self._world.bcast((False, made))
        return made

    def fail(self, reason: str) -> None:
        """On rank 0, in place of a broadcast: the others raise the reason."""
        self._world.bcast((True, reason))

    def share_cores(self) -> None:
        """The ranks of one machine share its cores, unless the script has chosen a number of threads."""
        neighbours = self._world.Split_type(self._mpi.COMM_TYPE_SHARED).Get_size()
        if not threads.are_chosen():
            threads.suggest(max(1, threads.thread_count() // neighbours))

    def end_together(self) -> None:
        """An exception that nobody catches ends all ranks, because the others would wait for this one forever."""
        before = sys.excepthook

        def hook(kind: Any, error: Any, trace: Any) -> None:
            before(kind, error, trace)
            sys.stderr.flush()
            if self.rank != 0:
                time.sleep(_SECONDS_OF_RANK_ZERO)
            self._mpi.COMM_WORLD.Abort(1)

        sys.excepthook = hook


_ranks: Optional[Ranks] = None
_asked = False


def _is_launched() -> bool:
    """Open MPI sets the first; PMIx and PMI are set by srun."""
    return int(os.environ.get("OMPI_COMM_WORLD_SIZE", "1")) > 1 or "PMIX_RANK" in os.environ or "PMI_RANK" in os.environ


def world() -> Optional[Ranks]:
    """The ranks this script is one of; None when it is alone. MPI starts at the first call."""
    global _asked, _ranks
    if _asked or not _is_launched() or os.environ.get("ESSCHER_MPI") == "0":
        return _ranks
    try:
        mpi: Any = import_module("mpi4py.MPI")
    except ImportError as error:
        raise CapabilityError(
            "out: this script was started by mpirun, and ranks make one run together only through mpi4py (Debian: "
            "python3-mpi4py); with ESSCHER_MPI=0 every rank is alone, and needs a run of its own"
        ) from error
    _asked = True
    if mpi.COMM_WORLD.Get_size() > 1:
        _ranks = Ranks(mpi)
        _ranks.share_cores()
        _ranks.end_together()
    return _ranks
