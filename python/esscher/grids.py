"""Tables of results as xarray Datasets: a grid of rows, with further axes where a column holds arrays."""

from __future__ import annotations

from typing import Any, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from .errors import ArgumentError
from .tables import Rows, module

# The axes of a column that holds arrays: {"U": ("token", "query")}. One axis more than names is that of heads.
Shapes = Mapping[str, Tuple[str, ...]]

# What the parameters of a head, of its tokens and of a task are indexed by: coordinates of tokens and of queries, of
# outputs V z, of scores K z, and of the features of a task.
PARAMETERS: Shapes = {
    "z": ("query",), "U": ("token", "query"), "V": ("output", "token"), "W": ("output", "query"), "r": ("token",),
    "K": ("score", "token"), "Q": ("score", "query"), "mean": ("token",), "cov": ("token", "token_2"), "score_scale": (),
    "prompt_cov": ("feature", "feature_2"), "query_cov": ("feature", "feature_2"),
}


def dataset(rows: Rows, axes: Sequence[str], shapes: Shapes) -> Any:
    """The rows over ``axes``, which must tell them apart; a single row without axes is a Dataset of single numbers.

    Arrays of one shape, and dictionaries of numbers, get axes of their own; other objects stay objects. Parameters that
    no row has are left out.
    """
    xarray, frame = module("xarray", "to_xarray"), rows.to_pandas()
    known = {name: [row.get(name) for row in rows] for name in rows.columns if name not in axes and name != "ci"}
    absent = [name for name, values in known.items() if name in shapes and all(value is None for value in values)]
    wide = {name: pair for name, values in known.items() if (pair := _arrays(values)) is not None}
    frame = frame.drop(columns=[*absent, *wide])
    if axes:
        if frame.duplicated(list(axes)).any():
            raise ArgumentError(f"to_xarray: two rows have the same {', '.join(axes)}; to_pandas() has both")
        found = xarray.Dataset.from_dataframe(frame.set_index(list(axes)))
        places = [tuple(found.indexes[axis].get_loc(row[axis]) for axis in axes) for row in rows]
    else:
        found = xarray.Dataset.from_dataframe(frame)
        places = [(i,) for i in range(len(rows))]
    sizes = [found.sizes[axis] for axis in axes or ["index"]]
    for name, (arrays, labels) in wide.items():
        shape = next(array.shape for array in arrays if array is not None)
        values = np.full((*sizes, *shape), np.nan)
        for place, array in zip(places, arrays):
            if array is not None:
                values[place] = array
        names = _names(name, len(shape), shapes)
        coordinates = {} if labels is None else {names[0]: labels}
        found[name] = xarray.DataArray(values, dims=[*(axes or ["index"]), *names], coords=coordinates)
    return found.squeeze("index", drop=True) if not axes and len(rows) == 1 else found


def _arrays(values: List[Any]) -> Optional[Tuple[List[Any], Optional[List[str]]]]:
    """Values as arrays of one shape, with the labels of their entries if they are dictionaries; None for all others."""
    given = [value for value in values if value is not None]
    if given and all(isinstance(value, Mapping) for value in given):
        labels = list(dict.fromkeys(label for value in given for label in value))
        if not all(isinstance(x, (int, float)) for value in given for x in value.values()):
            return None
        return [None if v is None else np.array([v.get(label, np.nan) for label in labels]) for v in values], labels
    if not given or not all(isinstance(value, (np.ndarray, list)) for value in given):
        return None
    try:
        arrays = [None if value is None else np.asarray(value, dtype=np.float64) for value in values]
    except (TypeError, ValueError):  # objects, or parts of several shapes
        return None
    found = {array.shape for array in arrays if array is not None}
    return (arrays, None) if len(found) == 1 and 0 not in found.pop() else None


def _names(name: str, axes: int, shapes: Shapes) -> List[str]:
    known = shapes.get(name, ())
    if name in shapes and axes == len(known):
        return list(known)
    if name in shapes and axes == len(known) + 1:
        return ["head", *known]
    return [f"{name}_{i}" for i in range(axes)]
