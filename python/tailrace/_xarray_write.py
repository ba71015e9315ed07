"""Datasets and DataTrees of xarray into files: made, added to, appended to, overwritten in part.

All that can be wrong with what was asked is found before the file is opened; what fails later
leaves an older file as it was, since nothing is committed before close().
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Optional, Union

import numpy as np
import xarray as xr
from xarray.coding import strings

from . import _file
from ._encoding import (BOUNDS, NETCDF, OWN, SILENT, check_keys, nearest, storage_keywords,
                        stored_bound)
from ._errors import ArgumentError, NotFoundError, text_of
from ._group import Group
from ._progress import Progress
from ._variable import Variable

try:
    from xarray.backends.common import ensure_dtype_not_object as _typed_texts
except ImportError:  # Older ones do that while they encode.
    _typed_texts = None  # type: ignore[assignment]

Encodings = Optional[Mapping[Any, Mapping[str, Any]]]

#: What xarray itself turns into attributes and stored values.
_CF = ("_FillValue", "missing_value", "dtype", "scale_factor", "add_offset", "_Unsigned", "units",
       "calendar", "coordinates", "grid_mapping", "char_dim_name", "_Encoding", "bounds",
       "climatology", "cell_measures", "formula_terms", "ancillary_variables", "geometry",
       "node_coordinates", "node_count", "part_node_count", "interior_ring")
#: Of these, the ones that stay as they are when a variable of a file gets more values.
_KEPT = ("_FillValue", "missing_value", "scale_factor", "add_offset", "_Unsigned")
#: Texts of fixed length become arrays of characters, as in netCDF4.
_TEXTS: tuple[Any, ...] = (strings.EncodedStringCoder(allows_unicode=True),  # type: ignore
                           strings.CharacterArrayCoder())
_MODES = {"w": "w", "x": "x", "w-": "x", "a": "a", "a-": "a", "r+": "a"}


@dataclass
class Prepared:
    """A variable as it goes into the file."""

    values: Any  # As stored: an array, or what gives the parts of one.
    dims: tuple[str, ...]
    dtype: Any
    attributes: dict[str, Any]
    fill: Any
    keywords: dict[str, Any]  # Of create_variable().

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.values.shape)


class PackedParts:
    """A packed variable under a bound, encoded part by part, each compared with what it was."""

    def __init__(self, name: str, source: xr.Variable, encoded: xr.Variable, bound: float) -> None:
        self._name, self._source, self._bound = name, source, bound
        self._scale = float(np.asarray(encoded.attrs.get("scale_factor", 1.0)))
        self._offset = float(np.asarray(encoded.attrs.get("add_offset", 0.0)))
        self.dtype = encoded.dtype
        self.shape = encoded.shape

    def __getitem__(self, key: Any) -> np.ndarray[Any, Any]:
        part = self._source[key] if self.shape else self._source
        part = xr.Variable(part.dims, np.asarray(part.data), self._source.attrs,
                           self._source.encoding)
        with np.errstate(invalid="ignore"):
            stored = np.asarray(xr.conventions.encode_cf_variable(part, name=self._name).data)
            given = np.asarray(part.data, "f8")
            error = np.abs(self._unpacked(stored) - given)
        worst = np.nanmax(error, initial=0.0) if error.size else 0.0
        # A unit of rounding more: division and product are not exact.
        if worst > self._bound + np.nanmax(np.abs(given), initial=0.0) * 2.0**-50:
            at = np.unravel_index(np.nanargmax(error), error.shape)
            raise ArgumentError(
                f"variable {self._name!r}: {given[at]!r} does not fit {self.dtype} with "
                f"scale_factor {self._scale!r} and add_offset {self._offset!r} within "
                f"{self._bound!r}: it would read as {self._unpacked(stored)[at]!r}")
        return stored

    def _unpacked(self, stored: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        unsigned = str(self._source.encoding.get("_Unsigned", "false")).lower() == "true"
        if unsigned and stored.dtype.kind == "i":
            stored = stored.view(f"u{stored.dtype.itemsize}")
        values: np.ndarray[Any, Any] = stored.astype("f8") * self._scale + self._offset
        return values

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> np.ndarray[Any, Any]:
        return self[...]


# --- what is asked --------------------------------------------------------------------------------


def as_dataset(data: Any) -> xr.Dataset:
    """A Dataset, or a DataArray as to_netcdf() stores it."""
    if isinstance(data, xr.Dataset):
        return data
    if not isinstance(data, xr.DataArray):
        raise TypeError(f"a Dataset or DataArray of xarray is needed, not {type(data).__name__}")
    if data.name is None:
        return data.to_dataset(name="__xarray_dataarray_variable__")
    if data.name in data.coords or data.name in data.dims:
        dataset = data.to_dataset(name="__xarray_dataarray_variable__")
        dataset.attrs["__xarray_dataarray_name__"] = data.name
        return dataset
    return data.to_dataset()


def checked_encoding(dataset: xr.Dataset, encoding: Any) -> dict[str, dict[str, Any]]:
    """encoding= as a dict of dicts, its variables and keys known."""
    if encoding is None:
        return {}
    if not isinstance(encoding, Mapping):
        raise TypeError(f"encoding is {encoding!r:.60}, must be a mapping of variables' names")
    for name, keys in encoding.items():
        if name not in dataset.variables:
            hint = nearest(name, map(str, dataset.variables))
            raise ArgumentError(f"encoding names {name!r}, which the dataset lacks{hint}")
        if not isinstance(keys, Mapping):
            raise TypeError(f"encoding of {name!r} is {keys!r:.60}, must be a mapping")
        where = f"encoding of {name!r}"
        check_keys(where, keys, (*_CF, "fill_value", *OWN, *NETCDF, *SILENT))
        if keys.get("dtype") is not None and keys["dtype"] is not str:
            try:
                np.dtype(keys["dtype"])
            except TypeError:
                raise TypeError(f"{where}: dtype is {keys['dtype']!r}, which is no type of "
                                "NumPy") from None
        for key in ("scale_factor", "add_offset"):
            number = keys.get(key)
            if number is not None and not np.issubdtype(np.asarray(number).dtype, np.number):
                raise TypeError(f"{where}: {key} is {number!r}, must be a number")
        if keys.get("scale_factor") is not None and not float(np.asarray(keys["scale_factor"])):
            raise ArgumentError(f"{where}: scale_factor is 0")
    return {str(name): dict(keys) for name, keys in encoding.items()}


def checked_unlimited(dataset: xr.Dataset, asked: Any) -> set[str]:
    if asked is None:
        given = dataset.encoding.get("unlimited_dims", ())
        found = {given} if isinstance(given, str) else set(given)
        if found - set(dataset.dims):
            warnings.warn(f"Unlimited dimension(s) {found - set(dataset.dims)!r} declared in "
                          "'dataset.encoding', but not part of current dataset dimensions",
                          UserWarning, stacklevel=5)
        return {str(name) for name in found if name in dataset.dims}
    names = {asked} if isinstance(asked, str) else set(asked)
    for name in names:
        if name not in dataset.dims:
            hint = nearest(name, map(str, dataset.dims))
            raise ArgumentError(f"Unlimited dimension(s) {name!r} declared in "
                                "'unlimited_dims-kwarg', but not part of current dataset "
                                f"dimensions{hint}")
    return {str(name) for name in names}


def _check_names(dataset: xr.Dataset) -> None:
    for name in (*dataset.variables, *dataset.dims):
        if not isinstance(name, str):
            raise TypeError(f"{name!r} is the name of a variable or dimension, which must be a "
                            "string or None (of a DataArray)")
        if not name:
            raise ArgumentError("a name is empty; the string must be length 1 or greater")
        if "/" in name:
            raise ArgumentError(f"{name!r}: Forward slashes '/' are not allowed in names, where "
                                "they stand for groups; rename() it")


# --- encoding -------------------------------------------------------------------------------------


def prepare(dataset: xr.Dataset, encoding: dict[str, dict[str, Any]], unlimited: set[str],
            kept: Mapping[str, dict[str, Any]], options: str
            ) -> tuple[dict[str, Prepared], dict[str, Any]]:
    """The variables and attributes as they go into the file.

    kept: of variables that the file has, by what they are encoded there. options: of the file.
    """
    dataset = dataset.copy(deep=False)
    keywords: dict[str, dict[str, Any]] = {}
    for key, variable in dataset.variables.items():
        name = str(key)
        if name in encoding:
            keys = encoding[name]
            if "fill_value" in keys:
                keys["_FillValue"] = keys.pop("fill_value")
            keywords[name] = {key: value for key, value in keys.items() if key not in _CF}
            variable.encoding = {key: value for key, value in keys.items() if key in _CF}
        else:
            keywords[name] = _inherited(variable, unlimited, options)
            variable.encoding = {key: value for key, value in variable.encoding.items()
                                 if key not in (*NETCDF, *OWN)}
        if name in kept:
            variable.encoding.update(kept[name])
    variables, attributes = xr.conventions.encode_dataset_coordinates(dataset)
    sources = {name: variable.copy(deep=False) for name, variable in variables.items()}
    for name, variable in sources.items():
        variable.encoding = dict(variables[name].encoding)
    encoded, attributes = xr.conventions.cf_encoder(variables, attributes)
    prepared = {
        str(name): _prepared(dataset, str(name), variable, sources[name], keywords[name],
                             name in encoding, unlimited)
        for name, variable in encoded.items()}
    return prepared, _without_ours(attributes)


def _inherited(variable: xr.Variable, unlimited: set[str], options: str) -> dict[str, Any]:
    """What a variable's own encoding asks for: chunks that still fit, deflate. Not codecs and
    bounds of the file that it came from, which say nothing about this one."""
    encoding = variable.encoding
    keys: dict[str, Any] = {}
    chunks = encoding.get("chunksizes")
    if chunks is not None and "chunk" not in options and len(chunks) == variable.ndim:
        fits = all(chunk <= length or str(dim) in unlimited
                   for chunk, length, dim in zip(chunks, variable.shape, variable.dims))
        if fits and encoding.get("original_shape", variable.shape) == variable.shape:
            keys["chunksizes"] = tuple(chunks)
    by_options = any(word in options for word in ("codec", "bound", "target"))
    if not by_options and (encoding.get("zlib") or encoding.get("compression") in ("zlib", "gzip")):
        keys.update({key: encoding[key] for key in ("complevel", "shuffle") if key in encoding},
                    zlib=True)
    return keys


def _without_ours(attributes: Mapping[Any, Any]) -> dict[str, Any]:
    return {key: value for key, value in attributes.items()
            if not str(key).startswith("tailrace_")}


def _prepared(dataset: xr.Dataset, name: str, encoded: xr.Variable, source: xr.Variable,
              keywords: dict[str, Any], asked: bool, unlimited: set[str]) -> Prepared:
    where = f"encoding of {name!r}"
    if _typed_texts is not None:
        encoded = _typed_texts(encoded, name=name)
    unused = sorted(set(encoded.encoding) - {"dtype", "_FillValue", *SILENT})
    if asked and unused:
        raise ArgumentError(f"{where}: {unused[0]} says nothing of values of {source.dtype}")
    for coder in _TEXTS:
        encoded = coder.encode(encoded, name=name)
    if encoded.dtype.kind == "S" and encoded.dtype.itemsize > 1:  # dtype=str asks for that.
        texts = np.char.decode(np.asarray(encoded.data), "utf-8").astype(object)
        encoded = xr.Variable(encoded.dims, texts, encoded.attrs, encoded.encoding)
    attributes = _without_ours(encoded.attrs)
    fill = attributes.pop("_FillValue", None)
    dtype: Any = encoded.dtype if encoded.dtype.kind not in "OUT" else str
    if dtype == bool:
        dtype, attributes["dtype"] = "i1", "bool"
    values = encoded.data
    digits = keywords.get("least_significant_digit")
    words = storage_keywords(where, keywords, encoded.shape,
                             [str(dim) in unlimited for dim in encoded.dims])
    if digits is not None:
        attributes["least_significant_digit"] = digits
    packing = {"scale_factor", "add_offset"} & set(source.encoding)
    integers = encoded.dtype.kind in "iu" and source.dtype.kind == "f"
    if packing or integers:
        stored = np.dtype(encoded.dtype)
        bound = stored_bound(where, words, float(np.asarray(source.encoding.get("scale_factor")
                                                            or 1.0)), 0.0, stored)
        if bound is not None and integers:
            values = PackedParts(name, source, encoded, bound)
        elif bound is None:
            words.setdefault("bound", "none")  # One of `options` is of values, not of these.
    if name in dataset.coords and not any(key in words for key in (*BOUNDS, "bound")):
        words["bound"] = "none"
        words.setdefault("codec", "deflate")
    if dtype is str or not encoded.dims:
        words = {}  # HDF5 stores texts and single values without filters.
    return Prepared(values, tuple(map(str, encoded.dims)), dtype, attributes, fill, words)


def kept_encoding(variable: Variable, new: xr.Variable) -> dict[str, Any]:
    """By what a variable of the file is encoded, for more values of it."""
    attrs = dict(variable.attrs)
    # Without a fill value there is none, rather than xarray's NaN.
    found: dict[str, Any] = {"_FillValue": None}
    found.update({key: attrs[key] for key in _KEPT if key in attrs})
    timed = new.dtype.kind in "mM" or (new.dtype.kind == "O"
                                       and "since" in str(attrs.get("units")))
    if timed:
        found.update({key: attrs[key] for key in ("units", "calendar") if key in attrs})
    stored = variable.dtype
    if stored.kind in "iuf" and new.dtype.kind != "b" and (
            timed or {"scale_factor", "add_offset"} & set(found)
            or stored.kind == new.dtype.kind == "f" or np.can_cast(new.dtype, stored)):
        found["dtype"] = stored
    return found


def _same_attribute(key: str, ours: Any, theirs: Any) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    if key == "units" and "since" in str(ours) and "since" in str(theirs):
        (step, _, since), (other_step, _, other) = (str(units).partition(" since ")
                                                    for units in (ours, theirs))
        try:
            return step == other_step and bool(np.datetime64(since.strip().replace(" ", "T", 1))
                                               == np.datetime64(other.strip().replace(" ", "T", 1)))
        except ValueError:
            return bool(ours == theirs)
    one, other_one = np.asarray(ours), np.asarray(theirs)
    return bool(np.array_equal(one, other_one, equal_nan=one.dtype.kind == "f"
                               and other_one.dtype.kind == "f"))


def check_fits(name: str, variable: Variable, prepared: Prepared) -> None:
    """Are more values of a variable encoded as those that the file has?"""
    if variable.dims != prepared.dims:
        raise ArgumentError(f"variable {name!r} has the dimensions {variable.dims} in the file, "
                            f"{prepared.dims} in the dataset")
    wanted = np.dtype(object) if prepared.dtype is str else np.dtype(prepared.dtype)
    if variable.dtype != wanted:
        raise ArgumentError(f"variable {name!r} is stored as {variable.dtype} in the file, which "
                            f"the dataset's {wanted} does not fit; astype() converts it")
    attrs = dict(variable.attrs)
    given = {**prepared.attributes, "_FillValue": prepared.fill}
    timed = "since" in str(given.get("units"))
    for key in (*_KEPT, *(("units", "calendar") if timed else ())):
        ours, theirs = given.get(key), attrs.get(key)
        if not _same_attribute(key, ours, theirs):
            raise ArgumentError(f"variable {name!r} is stored with {key} = {theirs!r} in the file, "
                                f"the dataset's values ask for {ours!r}")


# --- where it goes --------------------------------------------------------------------------------


Region = Union[None, str, Mapping[Any, Any]]


def write_dataset(
    data: Any, path: Any, mode: Optional[str] = None, *, encoding: Encodings = None,
    group: Optional[str] = None, unlimited_dims: Union[None, str, Iterable[Hashable]] = None,
    append_dim: Optional[str] = None, region: Region = None,
    format: Optional[str] = None, options: str = "", progress: Progress = None,  # noqa: A002
) -> None:
    """See tailrace.write_dataset.

    >>> import tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "t.nc")
    >>> t = xr.Dataset({"t": (("y", "x"), np.linspace(0, 30, 600).reshape(20, 30))},
    ...                {"y": np.arange(20.0)})
    >>> write_dataset(t, path, encoding={"t": {"abs": 0.01}})
    >>> from tailrace._xarray import TailraceBackend
    >>> with xr.open_dataset(path, engine=TailraceBackend) as back:
    ...     bool(abs(back.t - t.t).max() <= 0.01), bool((back.y == t.y).all())
    (True, True)
    """
    dataset = as_dataset(data)
    opening = _opening_mode(mode, append_dim, region)
    _check_format(format)
    place = "/" if group is None else "/" + text_of("group", group).strip("/")
    where = os.path.expanduser(_file.path_of(path))
    if mode == "r+" and not os.path.exists(where):
        raise NotFoundError(f"{where} is not there, which mode 'r+' adds to")
    writer = _Writer(dataset, place, encoding, unlimited_dims, append_dim, region, options)
    if opening == "a" and os.path.exists(where):
        with _file.open(where, "r") as file:
            writer.look_at(file)
    writer.prepare()
    with _file.open(where, opening, options=options) as file:
        writer.write(file, progress)


def write_datatree(
    tree: Any, path: Any, mode: str = "w", *,
    encoding: Optional[Mapping[str, Mapping[Any, Mapping[str, Any]]]] = None,
    unlimited_dims: Optional[Mapping[str, Any]] = None, write_inherited_coords: bool = False,
    format: Optional[str] = None, options: str = "", progress: Progress = None,  # noqa: A002
) -> None:
    """See tailrace.write_datatree."""
    if not hasattr(xr, "DataTree") or not isinstance(tree, xr.DataTree):
        raise TypeError(f"a DataTree of xarray is needed, not {type(tree).__name__}")
    opening = _opening_mode(mode, None, None)
    _check_format(format)
    where = os.path.expanduser(_file.path_of(path))
    for what, given in (("encoding", encoding), ("unlimited_dims", unlimited_dims)):
        if given is not None and not isinstance(given, Mapping):
            raise TypeError(f"{what} is {given!r:.60}, must be a mapping of groups")
        for name in given or {}:
            if name not in tree.groups:
                hint = nearest(name, tree.groups)
                raise ArgumentError(f"{what} names {name!r}, no group of the tree{hint}")
    writers = []
    for node in tree.subtree:
        at_root = node is tree
        dataset = node.to_dataset(inherit=write_inherited_coords or at_root)
        writers.append(_Writer(dataset, "/" if at_root else node.path,
                               (encoding or {}).get(node.path),
                               (unlimited_dims or {}).get(node.path), None, None, options))
    if opening == "a" and os.path.exists(where):
        with _file.open(where, "r") as file:
            for writer in writers:
                writer.look_at(file)
    for writer in writers:
        writer.prepare()
    with _file.open(where, opening, options=options) as file:
        for writer in writers:
            writer.write(file, progress)


def _check_format(format: Optional[str]) -> None:  # noqa: A002
    if format is not None and str(format).upper() != "NETCDF4":
        raise ArgumentError(f"format is {format!r}; Tailrace writes NETCDF4")


def _opening_mode(mode: Any, append_dim: Any, region: Any) -> str:
    adding = append_dim is not None or region is not None
    if mode is None:
        mode = "a" if adding else "w"
    if not isinstance(mode, str) or mode not in _MODES:
        raise ArgumentError(f"mode is {mode!r}, must be one of {', '.join(_MODES)}")
    if append_dim is not None and region is not None:
        raise ArgumentError("give append_dim or region, not both")
    if adding and _MODES[mode] != "a":
        name = "append_dim" if append_dim is not None else "region"
        raise ArgumentError(f"{name} needs mode 'a', not {mode!r}")
    return _MODES[mode]


class _Writer:
    """One dataset on its way into one group."""

    def __init__(self, dataset: xr.Dataset, place: str, encoding: Encodings, unlimited: Any,
                 append_dim: Optional[str], region: Region, options: str
                 ) -> None:
        _check_names(dataset)
        if append_dim is not None and append_dim not in dataset.dims:
            hint = nearest(append_dim, map(str, dataset.dims))
            raise ArgumentError(f"append_dim is {append_dim!r}, no dimension of the dataset{hint}")
        self._dataset = dataset
        self._place = place
        self._encoding = checked_encoding(dataset, encoding)
        self._unlimited = checked_unlimited(dataset, unlimited)
        self._append_dim = append_dim
        self._region = region
        self._options = text_of("options", options)
        self._starts: dict[str, int] = {}  # Where along a dimension the dataset begins.
        self._kept: dict[str, dict[str, Any]] = {}
        self._prepared: dict[str, Prepared] = {}
        self._attributes: dict[str, Any] = {}
        self._here: dict[str, tuple[str, ...]] = {}  # Variables of the file: their dimensions.

    def look_at(self, file: _file.File) -> None:
        """What the file has already."""
        try:
            group = file if self._place == "/" else file[self._place]
        except NotFoundError:
            return
        if not isinstance(group, Group):
            raise ArgumentError(f"{file.filename}: {self._place} is no group")
        here = group.variables
        self._here = {name: variable.dims for name, variable in here.items()}
        for name in self._dataset.variables:
            if name in here:
                if name in self._encoding:
                    raise ArgumentError(f"encoding of {name!r}: {file.filename} has the variable "
                                        "already, and it stays stored as it is")
                self._kept[str(name)] = kept_encoding(here[str(name)],
                                                      self._dataset.variables[name])
        lengths = _lengths(group)
        if self._append_dim is not None:
            self._place_appended(file.filename, lengths)
        if self._region is not None:
            self._place_region(group, lengths)

    def _place_appended(self, path: str, lengths: Mapping[str, tuple[int, bool]]) -> None:
        dim = str(self._append_dim)
        along = {name for name, dims in self._here.items() if dim in dims}
        if dim not in lengths:
            return  # A file without it: it is made now.
        length, unlimited = lengths[dim]
        if not unlimited:
            raise ArgumentError(f"{path}: dimension {dim!r} is {length} long and cannot grow; a "
                                f"file written with unlimited_dims=[{dim!r}] can")
        given = {str(name) for name, v in self._dataset.variables.items() if dim in v.dims}
        if along != given:
            name = sorted(along ^ given)[0]
            lacks = "the dataset" if name in along else path
            raise ArgumentError(f"append_dim: {lacks} has no {name!r}, whose values along {dim!r} "
                                "would be missing")
        self._starts[dim] = length

    def _place_region(self, group: Group, lengths: Mapping[str, tuple[int, bool]]) -> None:
        region = self._region
        if isinstance(region, str) and region == "auto":
            region = {dim: "auto" for dim in self._dataset.dims}
        if not isinstance(region, Mapping):
            raise TypeError(f"region is {region!r}, must be \"auto\" or a mapping of dimensions to "
                            "slices")
        for dim, part in region.items():
            if dim not in lengths or dim not in self._dataset.dims:
                raise ArgumentError(f"region names {dim!r}, no dimension of both the dataset and "
                                    "the file")
            length, given = lengths[dim][0], self._dataset.sizes[dim]
            start, stop = (self._found(group, str(dim), given) if part == "auto"
                           else _bounds_of(str(dim), part, length))
            if stop - start != given:
                raise ArgumentError(f"region: {dim!r} is {given} long in the dataset, the slice is "
                                    f"{stop - start}")
            self._starts[str(dim)] = start
        for name, variable in self._dataset.variables.items():
            if name not in self._here:
                raise ArgumentError(f"region: the file has no variable {name!r}")
            if not set(region) & set(variable.dims):
                raise ArgumentError(f"region: {name!r} has none of the dimensions {list(region)}; "
                                    f"drop_vars({name!r}) leaves it as it is")

    def _found(self, group: Group, dim: str, given: int) -> tuple[int, int]:
        """Where the dataset's coordinate lies in the file's."""
        if dim not in group.variables or dim not in self._dataset.indexes:
            raise ArgumentError(f"region: {dim!r} has no coordinate to be found by")
        variable = group.variables[dim]
        raw = xr.Variable(variable.dims, variable[...], dict(variable.attrs))
        stored = xr.conventions.decode_cf_variable(dim, raw).to_index()
        at = stored.get_indexer(self._dataset.indexes[dim])
        if not given or (at < 0).any() or (np.diff(at) != 1).any():
            raise ArgumentError(f"region: the values of {dim!r} do not follow each other in the "
                                "file")
        return int(at[0]), int(at[0]) + given

    def prepare(self) -> None:
        """Encode and check; nothing is written yet."""
        unlimited = set(self._unlimited)
        if self._append_dim is not None:
            unlimited.add(self._append_dim)
        if self._region is not None and not self._starts:
            raise NotFoundError("region: there is no file with such variables to write into")
        self._unlimited = unlimited
        self._prepared, self._attributes = prepare(self._dataset, self._encoding, unlimited,
                                                   self._kept, self._options)

    def write(self, file: _file.File, progress: Progress) -> None:
        group = file if self._place == "/" else file.require_group(self._place)
        adding = bool(self._starts)
        if not adding:
            group.attrs.update(self._attributes)
        lengths = _lengths(group)
        for dim in self._unlimited:
            if dim not in lengths:
                group.create_dimension(dim, None)
        for name, variable in self._prepared.items():
            self._make_dimensions(group, name, variable)
            if name in self._here:
                self._overwrite(group.variables[name], name, variable, progress)
            else:
                self._create(group, name, variable, progress)

    def _make_dimensions(self, group: Group, name: str, variable: Prepared) -> None:
        for dim, length in zip(variable.dims, variable.shape):
            lengths = _lengths(group)
            if dim in self._starts or dim in self._unlimited:
                continue
            if dim not in lengths:
                group.create_dimension(dim, int(length))
            elif lengths[dim][0] != length:
                if dim not in group.dimensions:
                    group.create_dimension(dim, int(length))  # Another one than the parent's.
                    continue
                raise ArgumentError(f"variable {name!r}: Unable to update size for existing "
                                    f"dimension {dim!r}: it is {lengths[dim][0]} long in the "
                                    f"file, {length} in the dataset")

    def _create(self, group: Group, name: str, variable: Prepared, progress: Progress) -> None:
        made = group.create_variable(name, variable.dims, variable.dtype,
                                     fill_value=variable.fill, attrs=variable.attributes,
                                     **variable.keywords)
        made.write(variable.values, progress=progress)

    def _overwrite(self, there: Variable, name: str, variable: Prepared, progress: Progress
                   ) -> None:
        check_fits(name, there, variable)
        key = tuple(slice(self._starts[dim], self._starts[dim] + length) if dim in self._starts
                    else slice(0, length) for dim, length in zip(variable.dims, variable.shape))
        for dim, length, part in zip(there.dims, there.shape, key):
            if dim not in self._starts and part.stop != length:
                raise ArgumentError(f"variable {name!r}: dimension {dim!r} is {length} long in the "
                                    f"file, {part.stop} in the dataset")
        moved = any(dim in self._starts for dim in variable.dims)
        if self._starts and not moved and np.array_equal(there[...], np.asarray(variable.values)):
            return  # Coordinates beside those that grow.
        if not self._starts:
            there.attrs.update(variable.attributes)
        there.write(variable.values, progress=progress, at=key)


def _bounds_of(dim: str, part: Any, length: int) -> tuple[int, int]:
    if not isinstance(part, slice) or part.step not in (None, 1):
        raise TypeError(f"region: {dim!r} is {part!r}, must be \"auto\" or a slice of step 1")
    start, stop, _ = part.indices(length)
    if (part.stop is not None and part.stop > length) or start > stop:
        raise ArgumentError(f"region: {part!r} is outside {dim!r}, which is {length} long")
    return start, stop


def _lengths(group: Group) -> dict[str, tuple[int, bool]]:
    """Dimensions that a group sees: its own and those above it."""
    found: dict[str, tuple[int, bool]] = {}
    while True:
        for name, dimension in group.dimensions.items():
            found.setdefault(name, (len(dimension), dimension.unlimited))
        if group.path == "/":
            return found
        group = group.parent
