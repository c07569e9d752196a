"""Types of arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Union, runtime_checkable

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from ._esscher import Measure, Stream

Array = npt.NDArray[np.float64]


@runtime_checkable
class SupportsDLPack(Protocol):
    """An array of another library."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...


# Anything NumPy or DLPack can read: nested lists, arrays, torch tensors.
ArrayLike = Union[npt.ArrayLike, SupportsDLPack]

# A prompt length: an integer, or ``math.inf`` (``esscher.inf``).
Length = Union[int, float]


class UserMeasure(Protocol):
    """What a measure written in Python must have; see ``esscher.measure``."""

    @property
    def dim(self) -> int: ...

    def log_mgf(self, a: Array) -> float: ...

    def tilted_mean(self, a: Array) -> Array: ...

    def tilted_cov(self, a: Array) -> Array: ...

    def sample(self, stream: Stream, n: int) -> Any: ...


# Whatever is accepted where a law of tokens is wanted; an array [n,d] is a finite prompt.
MeasureLike = Union["Measure", UserMeasure, ArrayLike]
