"""Losses that values have before they are written: found from their origin, and refused.

Errors add up. Values of a lossy file that are stored within a bound again have an error of up to
the sum of both bounds. That needs again=True, and the file then records the sum.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ._engine_loader import engine
from ._errors import ArgumentError


def losses_of(source: Any) -> str:
    """Return the losses of values in the syntax of the engine's option earlier-loss; "" if none is
    known.

    It knows those of a tailrace.Variable, of h5py's datasets, and of xarray's objects. The latter
    must have been read from a file and still have its encoding or attributes.
    """
    if getattr(getattr(source, "dtype", None), "kind", "") != "f":
        return ""
    filters: list[int] = []
    if hasattr(source, "_engine_filters"):
        filters = source._engine_filters()
        stated = dict(source.attrs)
    else:
        stated = {}
        for given in (getattr(source, "encoding", None), getattr(source, "attrs", None)):
            stated.update(given if isinstance(given, Mapping) else {})
    notes = {name: value for name, value in map(_note, stated.items())
             if name.startswith("tailrace_")}
    losses: str = engine().losses_in(notes, filters)
    if losses:
        return losses
    rounded = any(_states_rounding(name, value) for name, value in stated.items())
    return "unknown" if rounded else ""


def _note(item: tuple[Any, Any]) -> tuple[str, Any]:
    name, value = item
    if isinstance(value, bytes):  # h5py's type for texts of fixed length.
        value = value.decode("utf-8", "replace")
    return str(name), value if isinstance(value, str) else _number(value)


def _number(value: Any) -> Any:
    array = np.asarray(value)
    return float(array.ravel()[0]) if array.size == 1 and array.dtype.kind in "iuf" else None


def _states_rounding(name: Any, value: Any) -> bool:
    number = _number(value)
    return number is not None and bool(engine().states_rounding(str(name), number))


def refuse(where: str, losses: str, how: str) -> ArgumentError:
    """Return the error for lossy values that a variable might make more lossy."""
    return ArgumentError(
        f"{where}: its values are already lossy ({losses}) and would lose more. Take them from the "
        f"original, store them exactly (bound=\"none\"), or {how}")
