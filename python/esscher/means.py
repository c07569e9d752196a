"""The mean of a law: an attribute, as its other parameters are."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .types import Array


class MeanArray(np.ndarray):  # type: ignore[type-arg]
    """A mean [d]. ``mu.mean()`` is an older name of ``mu.mean`` and still works."""

    def __call__(self) -> Array:
        warnings.warn("mu.mean() is now mu.mean", DeprecationWarning, stacklevel=2)
        return np.array(self)

    def __array_wrap__(self, array: Any, context: Any = None) -> Any:
        return np.asarray(array)[()]  # what is computed of a mean is an array like any other

    def __reduce__(self) -> Any:
        return np.array, (np.asarray(self),)

    def __repr__(self) -> str:
        return repr(np.asarray(self))


class HasMean:
    """Gives a measure its ``mean``; mixed into Measure."""

    @property
    def mean(self: Any) -> Array:
        """E z' [d].

        >>> import esscher as es
        >>> es.Gaussian([[1.0]], mean=[2.0]).mean
        array([2.])
        """
        found: Array = np.asarray(self._mean()).view(MeanArray)
        return found
