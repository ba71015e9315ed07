"""The accessor `tailrace` of xarray's objects: ds.tailrace.to_netcdf("small.nc", rel=1e-3).

xarray has no entry points for accessors. register() therefore runs when this package is imported
after xarray, or else at the end of xarray's import. Importing this package does not import xarray.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Optional, Union

from ._information import Axes, Bits, BitTable, bits, bits_of_dataset
from ._plugins import observe_imports
from ._progress import Progress
from ._report import Report, report
from ._suggest import (SAMPLE_BYTES, Bounds, BoundTable, BoundTables, suggest_bound, suggest_bounds)
from ._tools import Encodings, Path, Region, write_dataset, write_datatree

_NAME = "tailrace"


class _Accessor:
    def __init__(self, data: Any) -> None:
        self._data = data

    def to_netcdf(
        self, path: Path, mode: Optional[str] = None, *, abs: Optional[float] = None,
        rel: Optional[float] = None, pw_rel: Optional[float] = None,
        psnr: Optional[float] = None, bound: Optional[str] = None, codec: Optional[str] = None,
        encoding: Encodings = None, group: Optional[str] = None,
        unlimited_dims: Union[None, str, Iterable[Hashable]] = None,
        append_dim: Optional[str] = None, region: Region = None, format: Optional[str] = None,
        options: str = "", compute: bool = True, progress: Progress = None, again: bool = False,
    ) -> Any:
        """Store this object as netCDF-4 within bounds: tailrace.write_dataset() with the same
        arguments.

        abs, rel, pw_rel, psnr, bound, codec: for all variables of numbers; coordinates stay exact.
        encoding: {"t": {"abs": 0.01}}, for single variables. compute=False: check the request now,
        and return a dask.delayed.Delayed that writes.
        """
        return write_dataset(
            self._data, path, mode, abs=abs, rel=rel, pw_rel=pw_rel, psnr=psnr, bound=bound,
            codec=codec, encoding=encoding, group=group, unlimited_dims=unlimited_dims,
            append_dim=append_dim, region=region, format=format, options=options, compute=compute,
            progress=progress, again=again)

    def report(
        self, compressed: Any, path: Any = "report.html", *, bound: Optional[str] = None,
        abs: Optional[float] = None, rel: Optional[float] = None, pw_rel: Optional[float] = None,
        psnr: Optional[float] = None, only: Sequence[str] = (), exclude: Sequence[str] = (),
        title: Optional[str] = None, figures: bool = True, progress: Progress = None,
    ) -> Report:
        """Write one HTML page that compares this object, the original, with `compressed`, a file or
        an object of xarray: tailrace.report() with the same arguments."""
        return report(
            self._data, compressed, path, bound=bound, abs=abs, rel=rel, pw_rel=pw_rel, psnr=psnr,
            only=only, exclude=exclude, title=title, figures=figures, progress=progress)


class DataArrayAccessor(_Accessor):
    """Accessor of a DataArray."""

    def suggest_bound(
        self, *, abs: Bounds = None, rel: Bounds = None, pw_rel: Bounds = None,
        psnr: Bounds = None, codec: str = "trz", chunks: Optional[Sequence[int]] = None,
        fill_value: Any = None, axes: Axes = None,
        sample_bytes: int = SAMPLE_BYTES,
    ) -> BoundTable:
        """Measure the effects of several bounds: tailrace.suggest_bound() with the same
        arguments."""
        return suggest_bound(self._data, abs=abs, rel=rel, pw_rel=pw_rel, psnr=psnr, codec=codec,
                             chunks=chunks, fill_value=fill_value, axes=axes,
                             sample_bytes=sample_bytes)

    def bits(self, information: float = 0.99, *, axis: Axes = None, fill_value: Any = None,
             sample_bytes: int = SAMPLE_BYTES) -> Bits:
        """Return the number of mantissa bits that hold this share of the information:
        tailrace.bits() with the same arguments."""
        return bits(self._data, information, axis=axis, fill_value=fill_value,
                    sample_bytes=sample_bytes)


class DatasetAccessor(_Accessor):
    """Accessor of a Dataset."""

    def suggest_bound(
        self, *, abs: Bounds = None, rel: Bounds = None, pw_rel: Bounds = None,
        psnr: Bounds = None, codec: str = "trz", sample_bytes: int = SAMPLE_BYTES,
    ) -> BoundTables:
        """Measure the effects of several bounds on each data variable of float32 or float64.

        Packed variables, masks, ids and others that stay exact under a bound for all are left out.
        The arguments are those of tailrace.suggest_bound(). @returns a mapping of the names to
        tables; its encoding() is the argument of to_netcdf().
        """
        return suggest_bounds(self._data, abs=abs, rel=rel, pw_rel=pw_rel, psnr=psnr, codec=codec,
                              sample_bytes=sample_bytes)

    def bits(self, information: float = 0.99, *, axis: Axes = None) -> BitTable:
        """Return tailrace.bits() of each data variable that suggest_bound() measures. @returns a
        mapping of the names to the results; its encoding() is the argument of to_netcdf()."""
        return bits_of_dataset(self._data, information, axis)


class DataTreeAccessor:
    """Accessor of a DataTree."""

    def __init__(self, tree: Any) -> None:
        self._tree = tree

    def to_netcdf(
        self, path: Path, mode: str = "w", *, abs: Optional[float] = None,
        rel: Optional[float] = None, pw_rel: Optional[float] = None,
        psnr: Optional[float] = None, bound: Optional[str] = None, codec: Optional[str] = None,
        encoding: Optional[Mapping[str, Mapping[Any, Mapping[str, Any]]]] = None,
        unlimited_dims: Optional[Mapping[str, Any]] = None, write_inherited_coords: bool = False,
        format: Optional[str] = None, options: str = "", compute: bool = True,
        progress: Progress = None, again: bool = False,
    ) -> Any:
        """Store this tree as netCDF-4 within bounds: tailrace.write_datatree() with the same
        arguments."""
        return write_datatree(
            self._tree, path, mode, abs=abs, rel=rel, pw_rel=pw_rel, psnr=psnr, bound=bound,
            codec=codec, encoding=encoding, unlimited_dims=unlimited_dims,
            write_inherited_coords=write_inherited_coords, format=format, options=options,
            compute=compute, progress=progress, again=again)


def register() -> None:
    """Register the accessors with xarray, if it is imported and lacks them."""
    xarray: Any = sys.modules.get("xarray")
    for kind, function, accessor in (
            ("Dataset", "register_dataset_accessor", DatasetAccessor),
            ("DataArray", "register_dataarray_accessor", DataArrayAccessor),
            ("DataTree", "register_datatree_accessor", DataTreeAccessor)):
        known = hasattr(xarray, function)  # False without xarray, or in old versions
        if known and getattr(getattr(xarray, kind), _NAME, None) is not accessor:
            getattr(xarray, function)(_NAME)(accessor)


def whenever_xarray_comes() -> None:
    """Register the accessors now, or at the end of xarray's import."""
    observe_imports(("xarray",), register, "register the accessor")
    register()
