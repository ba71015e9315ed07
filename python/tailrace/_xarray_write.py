"""Writes Datasets and DataTrees of xarray into files: creates, adds, appends, overwrites parts.

All errors in the request are found before the file is opened. A later failure leaves an older file
as it was, since nothing is committed before close().
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Optional, Union

import numpy as np
import xarray as xr
from xarray.coding import strings

from . import _file
from ._checked_parts import CheckedParts, same_attribute
from ._encoding import (BOUNDS, OWN, SILENT, bound_of, check_keys, storage_keywords,
                        stored_bound)
from ._errors import ArgumentError, NotFoundError, UnknownNameError, text_of
from ._group import Group
from ._keywords import NETCDF, nearest
from ._losses import losses_of, refuse
from ._model import joined
from ._printable import warn
from ._progress import Progress
from ._rounding import rounding_of
from ._tools import Encodings, Region
from ._variable import Variable

try:
    from xarray.backends.common import ensure_dtype_not_object as _typed_texts
except ImportError:  # Older versions do this while they encode.
    _typed_texts = None  # type: ignore[assignment]

#: Keys that xarray itself converts to attributes and stored values.
_CF = ("_FillValue", "missing_value", "dtype", "scale_factor", "add_offset", "_Unsigned", "units",
       "calendar", "coordinates", "grid_mapping", "char_dim_name", "_Encoding", "bounds",
       "climatology", "cell_measures", "formula_terms", "ancillary_variables", "geometry",
       "node_coordinates", "node_count", "part_node_count", "interior_ring")
#: Keys of these that stay unchanged when a variable of a file gets more values.
_KEPT = ("_FillValue", "missing_value", "scale_factor", "add_offset", "_Unsigned")
#: Texts of fixed length become arrays of characters, as in netCDF4.
_TEXTS: tuple[Any, ...] = (strings.EncodedStringCoder(allows_unicode=True),  # type: ignore
                           strings.CharacterArrayCoder())
_MODES = {"w": "w", "x": "x", "w-": "x", "a": "a", "a-": "a", "r+": "a"}


@dataclass
class Prepared:
    """A variable in its form for the file."""

    values: Any  # In stored form: an array, or an object that yields its parts.
    dims: tuple[str, ...]
    dtype: Any
    attributes: dict[str, Any]
    fill: Any
    keywords: dict[str, Any]  # Arguments of create_variable().
    timed: bool = False  # Dates or durations before they were encoded.
    lossy: bool = False  # A bound is requested, or a target.

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.values.shape)


# --- the request ----------------------------------------------------------------------------------


def as_dataset(data: Any) -> xr.Dataset:
    """Return a Dataset; a DataArray is converted like in to_netcdf()."""
    if isinstance(data, xr.Dataset):
        return data
    if not isinstance(data, xr.DataArray):
        raise TypeError(f"expected a Dataset or DataArray of xarray, not {type(data).__name__}")
    if data.name is None:
        return data.to_dataset(name="__xarray_dataarray_variable__")
    if data.name in data.coords or data.name in data.dims:
        dataset = data.to_dataset(name="__xarray_dataarray_variable__")
        dataset.attrs["__xarray_dataarray_name__"] = data.name
        return dataset
    return data.to_dataset()


def checked_encoding(dataset: xr.Dataset, encoding: Any) -> dict[str, dict[str, Any]]:
    """Return encoding= as a dict of dicts, with its variables and keys checked."""
    if encoding is None:
        return {}
    if not isinstance(encoding, Mapping):
        raise TypeError(f"encoding is {encoding!r:.60}, must be a mapping of variables' names")
    for name, keys in encoding.items():
        if name not in dataset.variables:
            hint = nearest(name, map(str, dataset.variables))
            raise UnknownNameError(f"encoding names {name!r}, which the dataset lacks{hint}")
        if not isinstance(keys, Mapping):
            raise ArgumentError(f"encoding of {name!r} is {keys!r:.60}, must be castable to a dict")
        where = f"encoding of {name!r}"
        check_keys(where, keys, (*_CF, "fill_value", *OWN, *NETCDF, *SILENT))
        if keys.get("dtype") is not None and keys["dtype"] is not str:
            try:
                np.dtype(keys["dtype"])
            except TypeError:
                raise TypeError(f"{where}: dtype is {keys['dtype']!r}, which is not a type of "
                                "NumPy") from None
        for key in ("scale_factor", "add_offset"):
            number = keys.get(key)
            if number is not None and not np.issubdtype(np.asarray(number).dtype, np.number):
                raise TypeError(f"{where}: {key} is {number!r}, must be a number")
            if number is not None and not np.isfinite(number).all():
                raise ArgumentError(f"{where}: {key} is {number!r}, must be finite")
        if keys.get("scale_factor") is not None and not float(np.asarray(keys["scale_factor"])):
            raise ArgumentError(f"{where}: scale_factor is 0")
        stored = keys.get("dtype")
        if stored is None and not {"scale_factor", "add_offset"} & set(keys):
            stored = dataset.variables[name].dtype
        if stored not in (None, str) and np.dtype(stored).kind in "iu":
            _check_fills(where, keys, np.dtype(stored))
    return {str(name): dict(keys) for name, keys in encoding.items()}


def _check_fills(where: str, keys: Mapping[str, Any], stored: np.dtype[Any]) -> None:
    least, most = np.iinfo(stored).min, np.iinfo(stored).max
    if keys.get("_Unsigned") is not None:  # read as the other kind of integers
        least, most = -(2 ** (8 * stored.itemsize - 1)), 2 ** (8 * stored.itemsize) - 1
    for key in ("_FillValue", "fill_value", "missing_value"):
        fill = keys.get(key)
        if fill is None:
            continue
        number = np.asarray(fill)
        if number.dtype.kind not in "iuf":
            raise TypeError(f"{where}: {key} is {fill!r}, must be a number")
        if not all(float(one).is_integer() and least <= one <= most for one in number.flat):
            raise ArgumentError(f"{where}: {key} is {fill!r}, which does not fit {stored}")


def checked_unlimited(dataset: xr.Dataset, requested: Any) -> set[str]:
    if requested is None:
        given = dataset.encoding.get("unlimited_dims", ())
        found = {given} if isinstance(given, str) else set(given)
        if found - set(dataset.dims):
            warn(f"Unlimited dimension(s) {found - set(dataset.dims)!r} declared in "
                 "'dataset.encoding', but not part of current dataset dimensions", UserWarning)
        return {str(name) for name in found if name in dataset.dims}
    names = {requested} if isinstance(requested, str) else set(requested)
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
            raise ArgumentError(f"a name is {name!r}; the string must be length 1 or greater")
        if "/" in name:
            raise ArgumentError(f"{name!r}: Forward slashes '/' are not allowed in names, where "
                                "they separate groups; rename() it")


# --- encoding -------------------------------------------------------------------------------------


def prepare(dataset: xr.Dataset, encoding: dict[str, dict[str, Any]], unlimited: set[str],
            kept: Mapping[str, dict[str, Any]], options: str, again: bool, lossy_here: set[str]
            ) -> tuple[dict[str, Prepared], dict[str, Any]]:
    """Return the variables and attributes in their form for the file.

    kept: encoding of variables that the file already has. options: those of the file. again: values
    that are lossy already may lose more. lossy_here: lossy variables of the file.
    """
    losses = {str(name): losses_of(variable) for name, variable in dataset.variables.items()}
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
    for name, variable in variables.items():
        has = {key for key, value in variable.encoding.items() if value is not None}
        if (variable.dtype.kind in "iu" and "dtype" in has and has & {"scale_factor", "add_offset"}
                and has & {"_FillValue", "missing_value"}):
            encoding = variable.encoding  # xarray fails to pack integers with a fill
            variables[name] = variable.astype("f8", keep_attrs=True)
            variables[name].encoding = encoding
    sources = {name: variable.copy(deep=False) for name, variable in variables.items()}
    encoded, attributes = xr.conventions.cf_encoder(variables, attributes)
    for name, variable in sources.items():  # only now bounds of times have units
        variable.encoding = dict(variables[name].encoding)
    prepared = {
        str(name): _prepared(dataset, str(name), variable, sources[name], keywords[name],
                             name in encoding, name in kept, unlimited, options)
        for name, variable in encoded.items()}
    for name, one in prepared.items():
        if losses.get(name):
            _declare_losses(name, one, losses[name], again, name in kept, name in lossy_here)
    return prepared, _without_ours(attributes)


def _declare_losses(name: str, variable: Prepared, losses: str, again: bool, kept: bool,
                    lossy_here: bool) -> None:
    """Record losses of the values in the file; reject a bound on top of them without again=True."""
    where = f"variable {name!r}"
    if kept:
        if lossy_here:
            raise refuse(where, losses, "write them into a new variable with again=True, or append "
                         "files without loss by `tailrace concat`; drop_encoding() if they are new")
        return
    if variable.lossy and not again:
        raise refuse(where, losses, "give again=True, which records the sum of the bounds; "
                     "drop_encoding() if they are new")
    if not variable.dims or variable.dtype is str or np.dtype(variable.dtype).kind != "f":
        return  # Its dataset has no chunks, or values of another type.
    if not variable.lossy and losses == "unknown":
        return  # Attributes that record an earlier rounding are copied.
    more = variable.keywords.get("options")
    variable.keywords["options"] = f"{more + ',' if more else ''}earlier-loss={losses}"


def _inherited(variable: xr.Variable, unlimited: set[str], options: str) -> dict[str, Any]:
    """Return the storage of a variable's own encoding: chunks that still fit, and deflate. Codecs
    and bounds of the file that it came from are ignored."""
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
        keys.update({key: encoding[key] for key in ("complevel", "shuffle", "fletcher32")
                     if key in encoding},
                    zlib=True)
    return keys


def _without_ours(attributes: Mapping[Any, Any]) -> dict[str, Any]:
    return {key: value for key, value in attributes.items()
            if not str(key).startswith("tailrace_")}


def _prepared(dataset: xr.Dataset, name: str, encoded: xr.Variable, source: xr.Variable,
              keywords: dict[str, Any], requested: bool, kept: bool, unlimited: set[str],
              options: str) -> Prepared:
    where = f"encoding of {name!r}"
    if _typed_texts is not None:
        encoded = _typed_texts(encoded, name=name)
    unused = sorted(set(encoded.encoding) - {"dtype", "_FillValue", *SILENT})
    if requested and unused:
        raise ArgumentError(f"{where}: {unused[0]} does not apply to values of {source.dtype}")
    for coder in _TEXTS:
        encoded = coder.encode(encoded, name=name)
    if encoded.dtype.kind == "S" and encoded.dtype.itemsize > 1:  # dtype=str requests that
        texts = np.char.decode(np.asarray(encoded.data), "utf-8").astype(object)
        encoded = xr.Variable(encoded.dims, texts, encoded.attrs, encoded.encoding)
    attributes = _without_ours(encoded.attrs)
    fill = attributes.pop("_FillValue", None)
    dtype: Any = encoded.dtype if encoded.dtype.kind not in "OUT" else str
    if dtype == bool:
        dtype, attributes["dtype"] = "i1", "bool"
    values = encoded.data
    digits = keywords.get("least_significant_digit")
    chosen = storage_keywords(where, keywords, encoded.shape,
                              [str(dim) in unlimited for dim in encoded.dims])
    if digits is not None:
        attributes["least_significant_digit"] = digits
    packing = {key for key in ("scale_factor", "add_offset") if key in source.encoding}
    stored = np.dtype(encoded.dtype)
    numbers = stored.kind in "iuf" and source.dtype.kind in "iuf"
    rounds = bool(packing) or (numbers and stored.kind in "iu" and source.dtype.kind == "f")
    if name in dataset.coords and not any(key in chosen for key in (*BOUNDS, "bound")):
        chosen["bound"] = "none"
        chosen.setdefault("codec", "deflate")
    lossy = numbers and (bound_of(where, chosen)[1] is not None or (
        "bound" in options and chosen.get("bound") != "none"))
    bound = None
    if rounding_of(where, chosen, stored if numbers else str) is not None:
        lossy = True
    if rounds:
        scale = float(np.asarray(source.encoding.get("scale_factor") or 1.0))
        bound = stored_bound(where, chosen, scale, 0.0, stored)
        if bound is None:
            chosen.setdefault("bound", "none")  # a bound in `options` is for values, not for these
            bound = abs(scale) / 2 if lossy and stored.kind in "iu" else None
    differs = numbers and (rounds or stored != source.dtype)
    if kept and stored.kind in "iuf":
        marks = [np.asarray(one, "f8") for one in (attributes.get("missing_value"), fill)
                 if one is not None]
        if _is_time(source) or differs or (numbers and not all(np.isnan(one).all()
                                                               for one in marks)):
            values = CheckedParts(name, source, encoded)
    elif lossy:
        if differs:
            values = CheckedParts(name, source, encoded, bound)
        if "missing_value" in attributes:
            fill = _fill_of(where, attributes["missing_value"], fill, stored)
    if dtype is str or not encoded.dims:
        chosen = {}  # HDF5 stores texts and single values without filters
    aimed = numbers and "target" in options and chosen.get("bound") != "none"
    return Prepared(values, tuple(map(str, encoded.dims)), dtype, attributes, fill, chosen,
                    _is_time(source), bool(chosen) and bool(lossy or aimed))


def _fill_of(where: str, missing: Any, fill: Any, stored: np.dtype[Any]) -> Any:
    """Return the fill value under a bound, which keeps no other value exactly."""
    marks = np.unique(np.asarray(missing))
    marks = marks[~np.isnan(marks)] if marks.dtype.kind == "f" else marks
    named = fill is not None and not np.isnan(np.asarray(fill, "f8"))
    if not marks.size:
        return fill
    if marks.size > 1 or (named and marks[0] != fill):
        raise ArgumentError(f"{where}: missing_value {missing!r} and _FillValue {fill!r}: with "
                            "a bound, only one value, _FillValue, can mark missing values")
    return marks[0].astype(stored)


def _is_time(variable: xr.Variable) -> bool:
    if variable.dtype.kind != "O":
        return variable.dtype.kind in "mM"
    first = variable[(0,) * variable.ndim].values.item() if variable.size else None
    return type(first).__module__.startswith("cftime")


def kept_encoding(variable: Variable, new: xr.Variable) -> dict[str, Any]:
    """Return the encoding of a variable of the file, for more values of it."""
    attrs = {**_of_bounded(variable), **variable.attrs}
    # Without a fill value set None, to avoid xarray's default NaN.
    found: dict[str, Any] = {"_FillValue": None}
    found.update({key: attrs[key] for key in _KEPT if key in attrs})
    # Values that were read undecoded have these keys as attributes, and are not encoded again.
    found = {key: value for key, value in found.items() if key not in new.attrs}
    timed = _is_time(new)
    if timed and "units" in attrs:
        found["units"] = attrs["units"]
        if "since" in str(attrs["units"]):
            found["calendar"] = attrs.get("calendar", "standard")
    stored = variable.dtype
    if stored.kind in "iuf" and new.dtype.kind != "b" and (
            timed or {"scale_factor", "add_offset"} & set(found)
            or stored.kind == new.dtype.kind == "f" or np.can_cast(new.dtype, stored)):
        found["dtype"] = stored
    return found


def _of_bounded(variable: Variable) -> dict[str, Any]:
    """Return unit and calendar of the variable of which this one holds the bounds of cells."""
    for other in variable._file[variable.path.rpartition("/")[0] or "/"].variables.values():
        attrs = dict(other.attrs)
        if variable.name in (attrs.get("bounds"), attrs.get("climatology")):
            return {key: attrs[key] for key in ("units", "calendar") if key in attrs}
    return {}


def check_fits(name: str, variable: Variable, prepared: Prepared) -> None:
    """Check that more values of a variable are encoded like those in the file."""
    if variable.dims != prepared.dims:
        raise ArgumentError(f"variable {name!r} has the dimensions {variable.dims} in the file, "
                            f"{prepared.dims} in the dataset")
    wanted = np.dtype(object) if prepared.dtype is str else np.dtype(prepared.dtype)
    if variable.dtype != wanted:
        raise ArgumentError(f"variable {name!r} is stored as {variable.dtype} in the file, which "
                            f"the dataset's {wanted} does not fit; astype() converts it")
    attrs = dict(variable.attrs)
    given = {**prepared.attributes, "_FillValue": prepared.fill}
    durations = [str(of.get("dtype")).startswith("timedelta64") for of in (given, attrs)]
    keys: tuple[str, ...] = _KEPT
    # Times in other units are different numbers. Not every writer records that values are
    # durations.
    if prepared.timed or any(durations) or any("since" in str(of.get("units"))
                                               for of in (given, attrs)):
        keys = (*_KEPT, "units", "calendar")
    if not (durations[0] and (durations[1] or "dtype" not in attrs)):
        keys = (*keys, "dtype")
    for key in keys:
        ours, theirs = given.get(key), attrs.get(key)
        if not same_attribute(key, ours, theirs):
            hint = ""
            if prepared.timed and key == "units" and theirs is not None:
                hint = (f"; a file that is made with encoding={{{name!r}: {{'units': {ours!r}}}}} "
                        "takes them")
            raise ArgumentError(f"variable {name!r} is stored with {key} = {theirs!r} in the file, "
                                f"the values of the dataset need {ours!r}{hint}")


# --- the target -----------------------------------------------------------------------------------


class _Later:
    """A function with its arguments, for dask.delayed: it sees neither a collection nor a dict that
    it would compute in advance."""

    def __init__(self, function: Callable[..., object], *arguments: Any, **keywords: Any) -> None:
        self._function, self._arguments, self._keywords = function, arguments, keywords

    def __call__(self) -> None:
        self._function(*self._arguments, **self._keywords)

    def delayed(self) -> Any:
        """Return the dask.delayed.Delayed. @error ImportError  dask is not installed."""
        try:
            from dask.delayed import delayed
        except ImportError as failure:
            raise ImportError("compute=False needs dask, which is not installed: pip install dask"
                              ) from failure
        return delayed(self, pure=False, traverse=False)(
            dask_key_name=f"tailrace-write-{secrets.token_hex(8)}")


def write_dataset(
    data: Any, path: Any, mode: Optional[str] = None, *, encoding: Encodings = None,
    group: Optional[str] = None, unlimited_dims: Union[None, str, Iterable[Hashable]] = None,
    append_dim: Optional[str] = None, region: Region = None,
    format: Optional[str] = None, options: str = "", compute: bool = True,  # noqa: A002
    progress: Progress = None, again: bool = False, requested: str = "",
) -> Any:
    """Implementation of tailrace.write_dataset. requested: the bound for all variables, which is a
    part of `options`, too.

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
    where = os.path.expanduser(_file.path_of(path, writes=True))
    if mode == "r+" and not os.path.exists(where):
        raise NotFoundError(f"{where} does not exist; mode 'r+' needs an existing file")
    writer = _Writer(dataset, place, encoding, unlimited_dims, append_dim, region, options, again)
    if opening == "a" and os.path.exists(where):
        with _file.open(where, "r") as file:
            writer.look_at(file, requested)
    writer.prepare()
    if not checked_compute(compute):
        return _Later(write_dataset, dataset, os.path.abspath(where), mode, encoding=encoding,
                      group=group, unlimited_dims=unlimited_dims, append_dim=append_dim,
                      region=region, options=options, progress=progress, again=again,
                      requested=requested).delayed()
    with _file.open(where, opening, options=options) as file:
        writer.write(file, progress)
    return None


def write_exactly(data: Any, path: str, like: str = "") -> None:
    """Write all values without loss and compression. like: a file whose variables determine the
    stored form (type, packing, fill value, unit of time) of those of the same names."""
    writer = _Writer(as_dataset(data), "/", None, None, None, None, "codec=none", True)
    if like:
        with _file.open(like) as file:
            writer.take_forms(file)
    writer.prepare()
    writer.declare_losses()
    with _file.open(path, "w", options="codec=none") as file:
        writer.write(file, None)
        file._may_need_filters = False  # only this package reads the file


def checked_compute(compute: Any) -> bool:
    if not isinstance(compute, (bool, np.bool_)):
        raise TypeError(f"compute is {compute!r:.60}, must be True or False")
    return bool(compute)


def write_datatree(
    tree: Any, path: Any, mode: str = "w", *,
    encoding: Optional[Mapping[str, Mapping[Any, Mapping[str, Any]]]] = None,
    unlimited_dims: Optional[Mapping[str, Any]] = None, write_inherited_coords: bool = False,
    format: Optional[str] = None, options: str = "", compute: bool = True,  # noqa: A002
    progress: Progress = None, again: bool = False, requested: str = "",
) -> Any:
    """Implementation of tailrace.write_datatree."""
    if not hasattr(xr, "DataTree") or not isinstance(tree, xr.DataTree):
        raise TypeError(f"expected a DataTree of xarray, not {type(tree).__name__}")
    opening = _opening_mode(mode, None, None)
    _check_format(format)
    where = os.path.expanduser(_file.path_of(path, writes=True))
    for what, given in (("encoding", encoding), ("unlimited_dims", unlimited_dims)):
        if given is not None and not isinstance(given, Mapping):
            raise TypeError(f"{what} is {given!r:.60}, must be a mapping of groups")
        for name in given or {}:
            if name not in tree.groups:
                hint = nearest(name, tree.groups)
                raise ArgumentError(f"{what} names {name!r}, which is not a group of the tree"
                                    f"{hint}")
    writers = []
    for node in tree.subtree:
        at_root = node is tree
        dataset = node.to_dataset(inherit=write_inherited_coords or at_root)
        writers.append(_Writer(dataset, "/" if at_root else node.path,
                               (encoding or {}).get(node.path),
                               (unlimited_dims or {}).get(node.path), None, None, options, again))
    if opening == "a" and os.path.exists(where):
        with _file.open(where, "r") as file:
            for writer in writers:
                writer.look_at(file, requested)
    for writer in writers:
        writer.prepare()
    if not checked_compute(compute):
        return _Later(write_datatree, tree, os.path.abspath(where), mode, encoding=encoding,
                      unlimited_dims=unlimited_dims, write_inherited_coords=write_inherited_coords,
                      options=options, progress=progress, again=again,
                      requested=requested).delayed()
    with _file.open(where, opening, options=options) as file:
        for writer in writers:
            writer.write(file, progress)
    return None


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
    """Writes one dataset into one group."""

    def __init__(self, dataset: xr.Dataset, place: str, encoding: Encodings, unlimited: Any,
                 append_dim: Optional[str], region: Region, options: str, again: bool
                 ) -> None:
        _check_names(dataset)
        if append_dim is not None and text_of("append_dim", append_dim) not in dataset.dims:
            hint = nearest(append_dim, map(str, dataset.dims))
            raise ArgumentError(f"append_dim is {append_dim!r}, not a dimension of the dataset"
                                f"{hint}")
        self._dataset = dataset
        self._place = place
        self._encoding = checked_encoding(dataset, encoding)
        self._unlimited = checked_unlimited(dataset, unlimited)
        self._append_dim = append_dim
        self._region = region
        self._options = text_of("options", options)
        self._again = again
        self._lossy_here: set[str] = set()  # Lossy variables of the file.
        self._starts: dict[str, int] = {}  # Position of the dataset along a dimension.
        self._made: set[str] = set()  # Dimensions created or extended by this dataset.
        self._kept: dict[str, dict[str, Any]] = {}
        self._prepared: dict[str, Prepared] = {}
        self._attributes: dict[str, Any] = {}
        self._here: dict[str, tuple[str, ...]] = {}  # Dimensions of the file's variables.

    def look_at(self, file: _file.File, requested: str = "") -> None:
        """Read the existing variables and dimensions of the group. requested: a bound for all
        variables, which lossy variables of the file must have."""
        try:
            group = file if self._place == "/" else file[self._place]
        except NotFoundError:
            return
        if not isinstance(group, Group):
            raise ArgumentError(f"{file.filename}: {self._place} is not a group")
        here = group.variables
        self._here = {name: variable.dims for name, variable in here.items()}
        self._lossy_here = {name for name, variable in here.items() if losses_of(variable)}
        for name in self._dataset.variables:
            if name in here:
                has = here[str(name)].bound
                if name in self._encoding and not _only_bound(self._encoding[name], has):
                    raise ArgumentError(f"encoding of {name!r}: the variable exists in "
                                        f"{file.filename}, and its encoding cannot change")
                if requested and has not in ("", "none", _as_recorded(requested)):
                    raise ArgumentError(f"variable {name!r} has the bound {has} in "
                                        f"{file.filename}, which cannot change to {requested}; "
                                        "leave out the bound to append within the file's")
                self._kept[str(name)] = kept_encoding(here[str(name)],
                                                      self._dataset.variables[name])
        lengths = _lengths(group)
        if self._append_dim is not None:
            self._place_appended(group, lengths)
        if self._region is not None:
            self._place_region(group, lengths)

    def take_forms(self, file: _file.File) -> None:
        """Take the stored form of variables from those of the same names in a file."""
        here = file.variables
        self._kept = {str(name): kept_encoding(here[str(name)], variable)
                      for name, variable in self._dataset.variables.items() if name in here}

    def declare_losses(self) -> None:
        """Record in new variables the losses that their values have."""
        for name, prepared in self._prepared.items():
            losses = losses_of(self._dataset.variables.get(name))
            if losses:
                _declare_losses(name, prepared, losses, True, False, False)

    def _place_appended(self, group: Group, lengths: Mapping[str, tuple[int, bool]]) -> None:
        dim, path = str(self._append_dim), group._file.filename
        along = {name for name, dims in self._here.items() if dim in dims}
        if dim not in group.dimensions and not along:
            return  # The group lacks it: it is created now, even if another group has one.
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
        others = _others_along(group, dim, given)
        if others:
            raise ArgumentError(f"append_dim: {others[0]} of {path} shares {dim!r}, and its values "
                                "there would be missing")
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
                raise ArgumentError(f"region names {dim!r}, which is not a dimension of both the "
                                    "dataset and the file")
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
        """Return the position of the dataset's coordinate in the file's."""
        if dim not in group.variables or dim not in self._dataset.indexes:
            raise ArgumentError(f"region: {dim!r} has no coordinate that gives the position; "
                                "give a slice")
        variable = group.variables[dim]
        raw = xr.Variable(variable.dims, variable[...], dict(variable.attrs))
        stored = xr.conventions.decode_cf_variable(dim, raw).to_index()
        if not stored.is_unique:
            raise ArgumentError(f"region: values of {dim!r} in the file are not unique; give a "
                                "slice")
        at = stored.get_indexer(self._dataset.indexes[dim])
        if not given or (at < 0).any() or (np.diff(at) != 1).any():
            raise ArgumentError(f"region: the values of {dim!r} are not contiguous in the file")
        return int(at[0]), int(at[0]) + given

    def prepare(self) -> None:
        """Encode and check; writes nothing yet."""
        unlimited = set(self._unlimited)
        if self._append_dim is not None:
            unlimited.add(self._append_dim)
        if self._region is not None and not self._starts:
            raise NotFoundError("region: the file or its group does not exist, so it has no "
                                "variables to write into")
        self._unlimited = unlimited
        self._prepared, self._attributes = prepare(self._dataset, self._encoding, unlimited,
                                                   self._kept, self._options, self._again,
                                                   self._lossy_here)

    def write(self, file: _file.File, progress: Progress) -> None:
        group = file if self._place == "/" else file.require_group(self._place)
        adding = bool(self._starts)
        if not adding:
            group.attrs.update(self._attributes)
        for variable in self._prepared.values():
            for dim, length in zip(variable.dims, variable.shape):
                self._make_dimension(group, dim, int(length))
        for name, variable in self._prepared.items():
            if name in self._here:
                self._overwrite(group.variables[name], name, variable, progress)
            else:
                self._create(group, name, variable, progress)

    def _make_dimension(self, group: Group, dim: str, length: int) -> None:
        """Find or create a dimension of this length; no other variable may become longer by it."""
        if dim in self._starts or dim in self._made:
            return
        model = group._file._model()
        found, grows = model.dimension_at(group._position, dim), dim in self._unlimited
        there = None if found is None else model.dimensions[found]
        if there is not None and there.group != group._position and not any(
                v.group == group._position and found in v.dimensions for v in model.variables):
            # A dimension of a parent group is shared only if that changes nothing for its
            # variables.
            if dim == self._append_dim or there.length != length or (
                    grows and not there.unlimited):
                there = None
        if there is None:
            group.create_dimension(dim, None if grows else length)
            self._made.add(dim)
        elif there.length != length:
            others = _others_along(group, dim, self._prepared)
            if not there.unlimited or length < there.length or others:
                also = f", where {others[0]} lies along it" if others else ""
                raise ArgumentError("Unable to update size for existing dimension "
                                    f"{dim!r}: it is {there.length} long in the file{also}, "
                                    f"{length} in the dataset")
            self._made.add(dim)

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
            if dim not in self._starts and dim not in self._made and part.stop != length:
                raise ArgumentError(f"variable {name!r}: dimension {dim!r} is {length} long in the "
                                    f"file, {part.stop} in the dataset")
        moved = any(dim in self._starts for dim in variable.dims)
        if self._starts and not moved and np.array_equal(there[...], np.asarray(variable.values)):
            return  # coordinates of other dimensions than the growing ones
        if self._starts and not moved and variable.dims == (name,):
            raise ArgumentError(f"append_dim or region: {name!r} has other values in the file; "
                                f"drop_vars({name!r}) leaves them as they are")
        if not self._starts:
            there.attrs.update(variable.attributes)
        if self._append_dim is not None and there.dims == variable.dims == (name,) and moved:
            _remark_on_order(there, self._starts[name], np.asarray(variable.values))
        there.write(variable.values, progress=progress, at=key)


def _remark_on_order(there: Variable, n_before: int, new: np.ndarray[Any, Any]) -> None:
    """Warn of appended values of a coordinate that the file has already, or that turn back."""
    before = np.asarray(there[:n_before])
    if not n_before or not new.size or {before.dtype.kind, new.dtype.kind} - set("iuf"):
        return
    where = f"{there._file.filename}: coordinate {there.path}"
    units = there.attrs.get("units", "")
    unit = f" {units}" if isinstance(units, str) and units else ""
    known = new[np.isin(new, before)]
    if known.size:
        warn(f"{where}: {known.size} of {new.size} appended values are in the file already, the "
             f"first is {known[0]:g}{unit}")
        return
    steps = np.diff(np.concatenate([before.astype("f8"), new.astype("f8")]))
    if not ((steps > 0).all() or (steps < 0).all()):
        warn(f"{where} is not monotonic: {new[0]:g} to {new[-1]:g} are appended after "
             f"{before[-1]:g}{unit}")


def _only_bound(encoding: Mapping[str, Any], has: str) -> bool:
    """True if the encoding only repeats the bound that a variable has."""
    mode, number = bound_of("", encoding)
    others = {key for key, value in encoding.items() if value is not None} - {*BOUNDS, "bound"}
    return not others and number is not None and _as_recorded(f"{mode}={number!r}") == has


def _as_recorded(bound: str) -> str:
    """Return a bound in the form of Variable.bound.

    >>> _as_recorded("abs=0.0100"), _as_recorded("none")
    ('abs=0.01', 'none')
    """
    mode, _, number = bound.partition("=")
    try:
        return f"{mode.strip()}={float(number):g}"
    except ValueError:
        return bound


def _bounds_of(dim: str, part: Any, length: int) -> tuple[int, int]:
    if not isinstance(part, slice) or part.step not in (None, 1):
        raise TypeError(f"region: {dim!r} is {part!r}, must be \"auto\" or a slice of step 1")
    start, stop, _ = part.indices(length)
    if (part.stop is not None and part.stop > length) or start > stop:
        raise ArgumentError(f"region: {part!r} is outside {dim!r}, which is {length} long")
    return start, stop


def _others_along(group: Group, dim: str, given: Iterable[str]) -> list[str]:
    """Return paths of variables of any group on a dimension, without those of this group in
    `given`."""
    model = group._file._model()
    found = model.dimension_at(group._position, dim)
    return [joined(model.groups[v.group].path, v.name) for v in model.variables
            if found in v.dimensions and not (v.group == group._position and v.name in given)]


def _lengths(group: Group) -> dict[str, tuple[int, bool]]:
    """Return the dimensions visible in a group: its own and its parents'."""
    found: dict[str, tuple[int, bool]] = {}
    while True:
        for name, dimension in group.dimensions.items():
            found.setdefault(name, (len(dimension), dimension.unlimited))
        if group.path == "/":
            return found
        group = group.parent
