"""xarray's engine "tailrace": xr.open_dataset(path, engine="tailrace"), lazy, and in dask's chunks.

xarray finds this file by the package's entry point and decodes CF conventions itself (masks,
scales, times). _xarray_write.py implements writing.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Optional, Union

import numpy as np
import xarray as xr
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.coding import strings
from xarray.core import indexing

from . import _file
from ._attributes import Attributes
from ._errors import ArgumentError, text_of
from ._group import Group
from ._printable import printable
from ._variable import Variable, coarse_slices

Path = Union[str, os.PathLike[str]]

#: Bookkeeping attributes of netCDF-4 and Tailrace, which are not part of the data.
_BOOKKEEPING = ("_NCProperties", "_Netcdf4Dimid", "_Netcdf4Coordinates", "_nc3_strict")


class LazyValues(BackendArray):
    """A variable whose values are read when xarray or dask requests them."""

    def __init__(self, variable: Variable) -> None:
        self.variable = variable
        self.shape = variable.shape
        self.dtype = _dtype_of(variable)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    def _read(self, key: tuple[Any, ...]) -> Any:
        values = self.variable[key]
        return values.astype(self.dtype) if self.dtype.fields else values


def _dtype_of(variable: Variable) -> Any:
    """Return the dtype. Texts are marked like in xarray's own engines. Compounds get this machine's
    byte order, since xarray can convert only that of plain numbers."""
    if variable._model.type == "text":
        of_text: Any = strings.create_vlen_dtype
        return of_text(str)
    return variable.dtype.newbyteorder("=") if variable.dtype.fields else variable.dtype


def _parted(attrs: Attributes) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return (attributes of the data, Tailrace's notes on their storage)."""
    entries = {name: value for name, value in attrs.items() if name not in _BOOKKEEPING}
    notes = {name: value for name, value in entries.items() if name.startswith("tailrace_")}
    return {name: value for name, value in entries.items() if name not in notes}, notes


def _filters_of(variable: Variable) -> dict[str, Any]:
    """Return HDF5's own filters as keywords of netCDF4."""
    stored = variable._file._storage(variable._position)
    if stored is None:
        return {}
    filters = {number: settings for number, _, settings in stored.filters}
    if not set(filters) <= {1, 2, 3}:
        return {}
    level = filters.get(1, (0,))
    return {"zlib": 1 in filters, "complevel": int(level[0]) if level else 0,
            "shuffle": 2 in filters, "fletcher32": 3 in filters}


def _xarray_variable(variable: Variable, source: str) -> xr.Variable:
    attributes, notes = _parted(variable.attrs)
    if variable.dtype.kind == "S" and isinstance(attributes.get("_FillValue"), str):
        attributes["_FillValue"] = np.bytes_(attributes["_FillValue"].encode())
    chunks = variable.chunks
    encoding: dict[str, Any] = {
        "dtype": str if variable._model.type == "text" else variable.dtype,
        "original_shape": variable.shape, "source": source, **_filters_of(variable), **notes,
    }
    if notes.get("tailrace_codec", "unknown") != "unknown":
        encoding["codec"] = notes["tailrace_codec"]
    if chunks:
        encoding["chunksizes"] = chunks
        encoding["preferred_chunks"] = dict(zip(variable.dims, chunks))
    return xr.Variable(variable.dims, indexing.LazilyIndexedArray(LazyValues(variable)), attributes,
                       encoding)


def _fits_xarray(variable: Variable) -> bool:
    """False for variables that cannot be read, and for elements that are arrays themselves."""
    if variable._model.type != "other":
        return True
    dtype = variable._described()
    return dtype is not None and dtype.subdtype is None


def _at_level(dataset: xr.Dataset, group: Group, level: int) -> xr.Dataset:
    """Thin out dimensions in all variables: those that some field of the most dimensions halves and
    that none keeps complete. Bounds of cells do not count as fields."""
    variables = group.variables
    bounds = {str(variable.attrs.get(name, "")) for variable in variables.values()
              for name in ("bounds", "climatology")}
    fields = [variable for name, variable in variables.items() if name not in bounds]
    most = max((variable.ndim for variable in fields), default=0)
    halved: set[str] = set()
    kept: set[str] = set()
    for variable in fields:
        slices = coarse_slices(variable, level)  # for all fields, so that a wrong level raises an
                                                 # error
        if variable.ndim < most or level == 0:
            continue
        for name, extent, part in zip(variable.dims, variable.shape, slices):
            if extent > 1:
                (halved if part.step else kept).add(name)
    parts = {name: slice(None, None, 2**level) for name in (halved - kept) & set(dataset.dims)}
    if not parts:
        return dataset
    coarser = dataset.isel(parts)
    for cut in coarser.variables.values():
        cut.encoding.pop("chunksizes", None)
        preferred = cut.encoding.get("preferred_chunks", {})
        cut.encoding["preferred_chunks"] = {
            name: -(-length // 2**level) if name in parts else length
            for name, length in preferred.items()}
    return coarser


class TailraceBackend(BackendEntrypoint):
    """Implementation of xarray's interface for engine="tailrace"."""

    description = "Open netCDF-4 and HDF5 files with parallel decoding, any filter plug-in"
    supports_groups = True

    def open_dataset(  # type: ignore[override]
        self, filename_or_obj: Path, *, mask_and_scale: Any = True, decode_times: Any = True,
        concat_characters: Any = True, decode_coords: Any = True,
        drop_variables: Union[str, Iterable[str], None] = None, use_cftime: Any = None,
        decode_timedelta: Any = None, group: Optional[str] = None, options: str = "",
        level: int = 0,
    ) -> xr.Dataset:
        """Open a file for xarray. options: those of tailrace.open for reading
        ("threads=2,memory=1GB"). level: return every 2**level-th value along the dimensions that
        coarse views halve, like Variable.coarse(). Defaults: no options, all values."""
        file = _opened(filename_or_obj, options)
        how = {"mask_and_scale": mask_and_scale, "decode_times": decode_times,
               "concat_characters": concat_characters, "decode_coords": decode_coords,
               "drop_variables": drop_variables, "use_cftime": use_cftime,
               "decode_timedelta": decode_timedelta}
        try:
            place = _group_of(file, group)
            dataset = _at_level(_decoded(place, how), place, level)
        except BaseException:
            file.close()
            raise
        dataset.set_close(file.close)
        return dataset

    def open_groups_as_dict(  # type: ignore[override]
        self, filename_or_obj: Path, *, mask_and_scale: Any = True, decode_times: Any = True,
        concat_characters: Any = True, decode_coords: Any = True,
        drop_variables: Union[str, Iterable[str], None] = None, use_cftime: Any = None,
        decode_timedelta: Any = None, group: Optional[str] = None, options: str = "",
    ) -> dict[str, xr.Dataset]:
        """Return every group from `group` on by its path; all of them share one open file."""
        file = _opened(filename_or_obj, options)
        how = {"mask_and_scale": mask_and_scale, "decode_times": decode_times,
               "concat_characters": concat_characters, "decode_coords": decode_coords,
               "drop_variables": drop_variables, "use_cftime": use_cftime,
               "decode_timedelta": decode_timedelta}
        try:
            top = _group_of(file, group)
            found: dict[str, xr.Dataset] = {}
            waiting = [top]
            while waiting:
                place = waiting.pop(0)
                waiting += place.groups.values()
                path = place.path
                if top.path != "/":
                    path = path[len(top.path):].lstrip("/") or "."
                found[path] = _decoded(place, how)
        except BaseException:
            file.close()
            raise
        still_open = set(found)

        def close(path: str) -> None:
            still_open.discard(path)
            if not still_open:
                file.close()

        for path, dataset in found.items():
            dataset.set_close(partial(close, path))
        return found

    def open_datatree(  # type: ignore[override]
        self, filename_or_obj: Path, *, mask_and_scale: Any = True, decode_times: Any = True,
        concat_characters: Any = True, decode_coords: Any = True,
        drop_variables: Union[str, Iterable[str], None] = None, use_cftime: Any = None,
        decode_timedelta: Any = None, group: Optional[str] = None, options: str = "",
    ) -> Any:
        """Return the groups as a DataTree."""
        groups = self.open_groups_as_dict(
            filename_or_obj, mask_and_scale=mask_and_scale, decode_times=decode_times,
            concat_characters=concat_characters, decode_coords=decode_coords,
            drop_variables=drop_variables, use_cftime=use_cftime,
            decode_timedelta=decode_timedelta, group=group, options=options)
        try:
            tree = xr.DataTree.from_dict(groups)
        except BaseException:
            for dataset in groups.values():
                dataset.close()
            raise
        for path, dataset in groups.items():
            tree[path].set_close(dataset._close)
        return tree

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Return False: other engines know netCDF-4, too, so xarray does not select this one."""
        return False


def _opened(path: Any, options: str) -> _file.File:
    return _file.open(_file.path_of(path), "r", options=options)


def _group_of(file: _file.File, group: Optional[str]) -> Group:
    if group is None or text_of("group", group).strip("/") == "":
        return file
    place = file[group]
    if not isinstance(place, Group):
        raise ArgumentError(f"{file.filename}: {group} is not a group")
    return place


def _decoded(place: Group, how: Mapping[str, Any]) -> xr.Dataset:
    """Return a group like xarray's own engines: coordinates set, indexes left to xarray."""
    source = os.path.abspath(place._file.filename)
    fitting = {name: variable for name, variable in place.variables.items()
               if _fits_xarray(variable)}
    variables = {name: _xarray_variable(variable, source) for name, variable in fitting.items()}
    left_out = [name for name in place.variables if name not in fitting]
    if left_out:
        warnings.warn(printable(f"{source}: left out, since their elements are lists or cannot be "
                                f"read: {', '.join(left_out)}"), RuntimeWarning, stacklevel=4)
    attributes, notes = _parted(place.attrs)
    given = {key: value for key, value in how.items() if value is not None}
    decoded, global_attributes, coordinates = xr.conventions.decode_cf_variables(
        variables, attributes, **given)
    of_coordinates = {name: variable for name, variable in decoded.items()
                      if name in coordinates or variable.dims == (name,)}
    dataset = xr.Dataset(
        {name: variable for name, variable in decoded.items() if name not in of_coordinates},
        coords=xr.Coordinates(of_coordinates, indexes={}), attrs=global_attributes)
    dataset.encoding = {"source": source,
                        "unlimited_dims": {name for name, dimension in place.dimensions.items()
                                           if dimension.unlimited}, **notes}
    return dataset
