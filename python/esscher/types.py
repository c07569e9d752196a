"""Types of arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, Union, runtime_checkable

import numpy as np
import numpy.typing as npt

from .errors import ArgumentError, DimensionError

if TYPE_CHECKING:
    from ._esscher import Measure, Prompt, Stream

Array = npt.NDArray[np.float64]


@runtime_checkable
class SupportsDLPack(Protocol):
    """An array of another library."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...


# Anything NumPy or DLPack can read: nested lists, arrays, torch tensors.
ArrayLike = Union[npt.ArrayLike, SupportsDLPack]

def as_array(value: Any) -> Any:
    """An ArrayLike as NumPy sees it; tensors of PyTorch in every precision, without their gradient."""
    if type(value).__module__.partition(".")[0] == "torch":
        tensor = value.detach().cpu()
        return (tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor).numpy()
    if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
        return np.from_dlpack(value)
    return np.asarray(value)


def whole(where: str, name: str, value: Any) -> int:
    """A count: an integer of Python or NumPy, or a float without fraction such as 1e6."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return int(value)
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return int(value)
    raise ArgumentError(f"{where}: {name} is {value!r}, expected an integer")


def covariance(where: str, cov: Any, mean: Any, dim: Any) -> Array:
    """cov [d,d], which may be given as a number beside dim or a mean [d]."""
    d = None if dim is None else whole(where, "dim", dim)
    if np.shape(cov) == ():
        if not isinstance(cov, (int, float, np.number)) and not hasattr(cov, "__array__"):
            raise ArgumentError(f"{where}: cov is {cov!r}, expected a matrix [d,d], or a number beside dim")
        if d is None and mean is None:
            raise ArgumentError(f"{where}: cov is {cov!r}, a number, expected dim or mean beside it")
        found: Array = float(cov) * np.eye(len(as_array(mean)) if d is None else d)
        return found
    if d is not None and np.shape(cov)[:1] != (d,):
        raise DimensionError(f"{where}: cov has shape {np.shape(cov)}, dim is {d}")
    given: Array = cov
    return given


# A prompt length: an integer, or ``math.inf`` (``esscher.inf``).
Length = Union[int, float]


class UserMeasure(Protocol):
    """What a measure written in Python must have; see ``esscher.measure``.

    >>> import numpy as np, esscher as es
    >>> class Point:
    ...     '''All mass at 1.'''
    ...     dim = 1
    ...     def log_mgf(self, a): return a[0]
    ...     def tilted_mean(self, a): return np.ones(1)
    ...     def tilted_cov(self, a): return np.zeros((1, 1))
    ...     def sample(self, stream, n): return np.ones((n, 1))
    >>> es.Attention(U=[[1.0]])(Point(), [2.0])
    array([1.])
    """

    @property
    def dim(self) -> int:
        """d; an attribute or a method."""
        ...

    def log_mgf(self, a: Array) -> float:
        """Lambda(a) = log E exp(<a, z'>), a [d]."""
        ...

    def tilted_mean(self, a: Array) -> Array:
        """grad Lambda(a) [d]."""
        ...

    def tilted_cov(self, a: Array) -> Array:
        """The Hessian of Lambda at a [d,d]."""
        ...

    def sample(self, stream: Stream, n: int) -> Any:
        """n iid tokens [n,d]; draw from the stream and from nothing else."""
        ...


# Whatever is accepted where a law of tokens is wanted; an array [n,d] is a finite prompt.
MeasureLike = Union["Measure", UserMeasure, ArrayLike]

# The same, or a ``Prompt``, which says more about its tokens.
PromptLike = Union["Prompt", MeasureLike]
