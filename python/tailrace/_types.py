"""Compound, enum and other types of fixed size: converts the engine's description to NumPy types.

The dtypes equal h5py's, so that its check_enum_dtype() accepts them. An enum is its integers, with
the names in the dtype's metadata; the enum {FALSE, TRUE} is bool. A compound of two floats r and i
is complex. Strings of fixed length inside compounds are bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Optional

import numpy as np


def described_dtype(description: str) -> Optional[np.dtype[Any]]:
    """Return the dtype for a description; None if NumPy has no such type.

    >>> described_dtype('{"kind": "number", "numpy": ">f4"}')
    dtype('>f4')
    >>> described_dtype('{"kind": "enum", "numpy": "|i1", "values": [["a", 0], ["b", 5]]}').metadata
    mappingproxy({'enum': {'a': 0, 'b': 5}})
    >>> described_dtype("") is None
    True
    """
    if not description:
        return None
    try:
        return _dtype(json.loads(description))
    except (TypeError, ValueError):
        return None  # Overlapping members or duplicate names, which NumPy cannot represent.


def enum_of(dtype: np.dtype[Any]) -> Optional[dict[str, int]]:
    """Return the names of an enum's values; None for other types."""
    metadata: Mapping[Any, Any] = dtype.metadata or {}
    return dict(metadata["enum"]) if "enum" in metadata else None


def _dtype(described: Any) -> np.dtype[Any]:
    kind: str = described["kind"]
    result: np.dtype[Any]
    if kind == "number":
        result = np.dtype(described["numpy"])
        return result
    if kind == "string":
        return np.dtype(f"S{described['bytes']}")
    if kind == "array":
        result = np.dtype((_dtype(described["of"]), tuple(described["shape"])))
        return result
    if kind == "enum":
        values = dict(described["values"])
        if values == {"FALSE": 0, "TRUE": 1} and described["numpy"] == "|i1":
            return np.dtype(bool)
        result = np.dtype(described["numpy"], metadata={"enum": values})
        return result
    members = described["members"]
    names = [member["name"] for member in members]
    types = [_dtype(member["of"]) for member in members]
    if names == ["r", "i"] and types[0] == types[1] and types[0].kind == "f":
        n_bytes = types[0].itemsize
        at = [member["at"] for member in members]
        if n_bytes > 2 and at == [0, n_bytes] and described["bytes"] == 2 * n_bytes:
            return np.dtype(f"{types[0].byteorder}c{2 * n_bytes}")
    return np.dtype({"names": names, "formats": types,
                     "offsets": [member["at"] for member in members],
                     "itemsize": described["bytes"]})
