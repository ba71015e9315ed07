"""The netCDF-4 model of a file in Python: a snapshot of names, shapes and types."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

import numpy as np

from ._errors import ArgumentError, UnsupportedError

_NUMBERS = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")


@dataclass(frozen=True)
class ModelGroup:
    path: str
    parent: int


@dataclass(frozen=True)
class ModelDimension:
    name: str
    group: int
    length: int
    unlimited: bool
    anonymous: bool


@dataclass(frozen=True)
class ModelVariable:
    name: str
    group: int
    type: str
    dimensions: tuple[int, ...]
    no_fill: bool
    first_path: str  # First path, if this is a further hard link to a dataset; else empty.


class Model:
    """Result of EngineFile.model(), with look-up functions."""

    def __init__(self, described: Any) -> None:
        groups, dimensions, variables, self.netcdf4 = described
        self.groups = [ModelGroup(*entry) for entry in groups]
        self.dimensions = [ModelDimension(*entry) for entry in dimensions]
        self.variables = [ModelVariable(*entry) for entry in variables]
        self._group_at = {group.path: at for at, group in enumerate(self.groups)}
        self._variable_at = {(v.group, v.name): at for at, v in enumerate(self.variables)}

    def group_at(self, path: str) -> Optional[int]:
        return self._group_at.get(path)

    def variable_at(self, group: int, name: str) -> Optional[int]:
        return self._variable_at.get((group, name))

    def dimension_at(self, group: int, name: str) -> Optional[int]:
        """Find a dimension in this group or its parents."""
        while True:
            for at, dimension in enumerate(self.dimensions):
                if dimension.group == group and dimension.name == name:
                    return at
            if group == 0:
                return None
            group = self.groups[group].parent

    def shape_of(self, variable: ModelVariable) -> tuple[int, ...]:
        return tuple(self.dimensions[at].length for at in variable.dimensions)


def joined(group: str, name: str) -> str:
    """Return the path of `name` in a group; an absolute name is returned unchanged.

    >>> joined("/", "u"), joined("/g", "h/u"), joined("/g", "/u")
    ('/u', '/g/h/u', '/u')
    """
    path = name if name.startswith("/") else f"{group.rstrip('/')}/{name}"
    return path.rstrip("/") or "/"


def netcdf_path(path: str) -> str:
    """Return the netCDF-4 name of a dataset. netCDF-4 renames a variable that has the name of a
    dimension but is not its coordinate.

    >>> netcdf_path("/g/_nc4_non_coord_n")
    '/g/n'
    """
    group, _, name = path.rpartition("/")
    return f"{group}/{name.removeprefix('_nc4_non_coord_')}"


def dtype_of(type_name: str) -> np.dtype[Any]:
    """Return NumPy's type for a model type: text is object (str), one character S1."""
    if type_name in _NUMBERS:
        return np.dtype(type_name)
    return np.dtype("S1") if type_name == "char" else np.dtype(object)


def type_of(dtype: Any) -> str:
    """Return the model type for a dtype given by a user.

    >>> type_of("float32"), type_of(int), type_of(str), type_of("S1")
    ('f4', 'i8', 'text', 'char')
    """
    if dtype is str or (isinstance(dtype, str) and dtype in ("text", "str", "string")):
        return "text"
    wanted = np.dtype(dtype)
    name = str(wanted.str[1:])
    if wanted.kind in "iuf" and name in _NUMBERS:
        return name
    if wanted.kind == "S" and wanted.itemsize <= 1:
        return "char"
    if wanted.kind in "OU" or wanted.char == "T":
        return "text"
    raise UnsupportedError(f"netCDF-4 variables of {wanted} are not supported; "
                           f"types are {', '.join(_NUMBERS)}, S1 and str")


Encoded = tuple[str, int, Any]


def encode_attribute(name: str, value: Any) -> Encoded:
    """Convert an attribute's value to (type, number of values, bytes or texts).

    >>> encode_attribute("units", "m")
    ('char', 1, b'm')
    >>> encode_attribute("names", ["a", "b"])
    ('text', 2, ['a', 'b'])
    """
    if isinstance(value, str):
        data = value.encode("utf-8", "surrogateescape")
        return ("char", len(data), data) if value.isascii() else ("text", 1, [value])
    if isinstance(value, bytes):
        return "char", len(value), value
    array = np.asarray(value)
    if array.dtype.kind in "UOT":
        texts = array.ravel().tolist()
        if not all(isinstance(text, str) for text in texts):
            raise ArgumentError(f"attribute {name!r}: a value of type {type(value).__name__} is "
                                "neither text nor numbers")
        return "text", len(texts), texts
    if array.dtype == bool:
        array = array.astype("i1")
    if array.dtype.kind not in "iuf" or array.dtype.str[1:] not in _NUMBERS:
        raise ArgumentError(f"attribute {name!r}: netCDF-4 does not support type {array.dtype}")
    array = np.ascontiguousarray(array.ravel(), dtype=array.dtype.newbyteorder("="))
    return array.dtype.str[1:], array.size, array.tobytes()


def decode_attribute(type_name: str, n_values: int, value: Any) -> Any:
    """Convert an attribute back to str, list of str, NumPy scalar or array; bytes for unknown
    types.

    >>> decode_attribute(*encode_attribute("levels", [1.5, 2.5]))
    array([1.5, 2.5])
    """
    if type_name == "text":
        return value[0] if len(value) == 1 else list(value)
    if type_name == "char":
        return value.decode("utf-8", "surrogateescape").rstrip("\0")
    if type_name == "other":
        return value
    array = np.frombuffer(value, dtype=type_name, count=n_values)
    return array[0] if n_values == 1 else array.copy()
