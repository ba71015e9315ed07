"""xarray's engine "tailrace": xr.open_dataset(path, engine="tailrace"), lazy, and in dask's chunks.

Also write_dataset(), which stores a Dataset with codecs and bounds. xarray finds this file by the
package's entry point and decodes CF conventions itself (masks, scales, times).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Optional, Union

import numpy as np
import xarray as xr
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

from . import _file
from ._errors import ArgumentError
from ._group import Group
from ._progress import Progress
from ._variable import Variable

Path = Union[str, os.PathLike[str]]

#: Attributes by which netCDF-4 and Tailrace keep books; no part of the data.
_BOOKKEEPING = ("_NCProperties", "_Netcdf4Dimid", "_Netcdf4Coordinates", "_nc3_strict")


class LazyValues(BackendArray):
    """A variable whose values are read when xarray or dask asks for them."""

    def __init__(self, variable: Variable) -> None:
        self.variable = variable
        self.shape = variable.shape
        self.dtype = variable.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(
            key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    def _read(self, key: tuple[Any, ...]) -> Any:
        return self.variable[key]


def _xarray_variable(variable: Variable) -> xr.Variable:
    attributes = {name: value for name, value in variable.attrs.items()
                  if name not in _BOOKKEEPING}
    chunks = variable.chunks
    encoding: dict[str, Any] = {
        "dtype": variable.dtype, "codec": variable.codec,
        "original_shape": variable.shape,
    }
    if chunks:
        encoding["chunksizes"] = chunks
        encoding["preferred_chunks"] = dict(zip(variable.dims, chunks))
    return xr.Variable(variable.dims, indexing.LazilyIndexedArray(LazyValues(variable)), attributes,
                       encoding)


def _fits_xarray(variable: Variable) -> bool:
    """Not what cannot be read, nor elements that are arrays themselves."""
    if variable._model.type != "other":
        return True
    dtype = variable._described()
    return dtype is not None and dtype.subdtype is None


class TailraceBackend(BackendEntrypoint):
    """What xarray calls for engine="tailrace"."""

    description = "Open netCDF-4 and HDF5 files with parallel decoding, any filter plug-in"
    open_dataset_parameters = ("filename_or_obj", "drop_variables", "group", "options")

    def open_dataset(  # type: ignore[override]
        self, filename_or_obj: Path, *, mask_and_scale: Any = True, decode_times: Any = True,
        concat_characters: Any = True, decode_coords: Any = True,
        drop_variables: Union[str, Iterable[str], None] = None, use_cftime: Any = None,
        decode_timedelta: Any = None, group: Optional[str] = None, options: str = "",
    ) -> xr.Dataset:
        """options: those of tailrace.open for reading ("threads=2,memory=1GB")."""
        file = _file.open(filename_or_obj, "r", options=options)
        try:
            return self._decoded(file, group, drop_variables, {
                "mask_and_scale": mask_and_scale, "decode_times": decode_times,
                "concat_characters": concat_characters, "decode_coords": decode_coords,
                "use_cftime": use_cftime, "decode_timedelta": decode_timedelta})
        except BaseException:
            file.close()
            raise

    def _decoded(self, file: _file.File, group: Optional[str],
                 drop_variables: Union[str, Iterable[str], None],
                 how: dict[str, Any]) -> xr.Dataset:
        place = file[group] if group else file
        if not isinstance(place, Group):
            raise ArgumentError(f"{file.filename}: {group} is no group")
        dropped = {drop_variables} if isinstance(drop_variables, str) else set(drop_variables or ())
        variables = {name: _xarray_variable(variable) for name, variable in place.variables.items()
                     if name not in dropped and _fits_xarray(variable)}
        attributes = {name: value for name, value in place.attrs.items()
                      if name not in _BOOKKEEPING}
        given = {key: value for key, value in how.items() if value is not None}
        decoded, global_attributes, coordinates = xr.conventions.decode_cf_variables(
            variables, attributes, **given)
        dataset = xr.Dataset(decoded, attrs=global_attributes)
        dataset = dataset.set_coords(coordinates.intersection(decoded))
        unlimited = {name for name, dimension in place.dimensions.items() if dimension.unlimited}
        dataset.encoding = {"source": os.path.abspath(file.filename),
                            "unlimited_dims": unlimited}
        dataset.set_close(file.close)
        return dataset

    def guess_can_open(self, filename_or_obj: Any) -> bool:
        """Never by itself: other engines know netCDF-4, too."""
        return False


def write_dataset(dataset: xr.Dataset, path: Path, *,
                  encoding: Optional[Mapping[str, Mapping[str, Any]]] = None, mode: str = "w",
                  unlimited_dims: Iterable[str] = (), options: str = "", progress: Progress = None
                  ) -> None:
    """Store a Dataset as netCDF-4. dask arrays are computed and written piece by piece.

    encoding: per variable, keywords of create_variable: {"t": {"abs": 0.01, "chunks": "1MiB"}}.
    Coordinates stay exact whatever `options` say for all variables.

    >>> import tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "t.nc")
    >>> t = xr.Dataset({"t": (("y", "x"), np.linspace(0, 30, 600).reshape(20, 30))},
    ...                {"y": np.arange(20.0)})
    >>> write_dataset(t, path, encoding={"t": {"abs": 0.01}})
    >>> with xr.open_dataset(path, engine=TailraceBackend) as back:
    ...     bool(abs(back.t - t.t).max() <= 0.01), bool((back.y == t.y).all())
    (True, True)
    """
    wanted = dict(encoding or {})
    unknown = set(wanted) - set(dataset.variables)
    if unknown:
        raise ArgumentError(f"encoding names {sorted(map(str, unknown))}, which the dataset lacks")
    variables, attributes = xr.conventions.encode_dataset_coordinates(dataset)
    unlimited = set(unlimited_dims) | set(dataset.encoding.get("unlimited_dims", ()))
    with _file.open(path, mode, options=options) as file:
        file.attrs.update(attributes)
        for name, length in dataset.sizes.items():
            if str(name) not in file.dimensions:
                file.create_dimension(str(name), None if name in unlimited else int(length))
        for name, variable in variables.items():
            encoded = xr.conventions.encode_cf_variable(variable, name=name)
            keywords = dict(wanted.get(str(name), {}))
            if name in dataset.coords and not keywords:
                keywords = {"codec": "deflate", "bound": "none"}
            _store(file, str(name), encoded, keywords, progress)


def _store(file: _file.File, name: str, encoded: xr.Variable, keywords: dict[str, Any],
           progress: Progress) -> None:
    # How the file that it came from was stored says nothing about this one.
    attributes = {key: value for key, value in encoded.attrs.items()
                  if not str(key).startswith("tailrace_")}
    fill = keywords.pop("fill_value", attributes.pop("_FillValue", None))
    dtype: Any = encoded.dtype if encoded.dtype.kind not in "OU" else str
    if dtype == bool:
        dtype = "i1"
        attributes["dtype"] = "bool"
    variable = file.create_variable(name, tuple(map(str, encoded.dims)), dtype, fill_value=fill,
                                    attrs=attributes, **keywords)
    variable.write(encoded.data, progress=progress)
