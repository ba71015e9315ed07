"""verify and info: the output of the command line program, as Python objects."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable, Mapping, Sequence
from html import escape
from typing import Any, NamedTuple, Optional, Union

from ._engine_loader import communicator, engine
from ._errors import BoundError, CopyError, text_of
from ._file import path_of
from ._keywords import with_hints
from ._printable import warn
from ._progress import Progress, progress_bar
from ._settings import bound_option, option_text

Path = Union[str, os.PathLike[str]]


class FieldVerdict(NamedTuple):
    """Result of the comparison for one variable."""

    path: str
    codec: str
    kept: bool
    max_error: float
    absolute_bound: Optional[float]
    psnr_db: Optional[float]  # None: exactly equal.
    ratio: float
    n_values: int
    n_beyond_bound: int
    details: dict[str, Any]


class Verification(Mapping[str, FieldVerdict]):
    """The verdict on a compressed file: a mapping of its variables' paths; true if all bounds
    hold and nothing else differs."""

    def __init__(self, document: dict[str, Any], text: str) -> None:
        self.document = document
        self.problems: list[str] = document["problems"]
        #: Sentences on bounds that hold but mean little: undeclared fill values, broad
        #: distributions.
        self.doubts: list[str] = document["doubts"]
        self.n_failed: int = document["n_failed"]
        #: True if all values are within their bounds, whatever else differs.
        self.values_kept: bool = document["values_kept"]
        self._text = text
        self._fields = {entry["path"]: _verdict(entry) for entry in document["fields"]}

    @property
    def ok(self) -> bool:
        return self.n_failed == 0

    def check(self) -> Verification:
        """Return self, or raise an error with the complete table. Warns of doubts.

        BoundError if a value is beyond its bound, else CopyError.
        """
        if not self.ok:
            kept = all(verdict.kept for verdict in self.values())
            raise (CopyError if kept else BoundError)(self._text)
        for doubt in self.doubts:
            warn(doubt)
        return self

    def __bool__(self) -> bool:
        return self.ok

    def __getitem__(self, path: str) -> FieldVerdict:
        return self._fields[path if path in self._fields else f"/{path}"]

    def __iter__(self) -> Any:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self._text)}</pre>"


def _verdict(entry: dict[str, Any]) -> FieldVerdict:
    stored = entry["encoded_bytes"]
    ratio = entry["raw_bytes"] / stored if stored else float("inf")
    return FieldVerdict(entry["path"], entry["codec"], entry["kept"], entry["max_error"],
                        entry["absolute_bound"], entry["psnr_db"], ratio, entry["n_values"],
                        entry["n_beyond_bound"], entry)


@with_hints
def verify(original: Path, compressed: Path, *, bound: Optional[str] = None,
           abs: Optional[float] = None, rel: Optional[float] = None,
           pw_rel: Optional[float] = None, psnr: Optional[float] = None,
           per_variable: Optional[Mapping[str, str]] = None, only: Sequence[str] = (),
           exclude: Sequence[str] = (), ignore: Sequence[str] = (),
           ignore_attributes: Sequence[str] = (), values_only: bool = False, comm: Any = None,
           progress: Progress = None) -> Verification:
    """Compare a compressed file with its original: does every value keep its bound?

    Compares all number variables by path, chunk by chunk, on threads of this process or, with comm=
    (collective), of all its ranks. Each variable must keep the bound given here, else the bound
    recorded in the compressed file; without either it must be equal. per_variable: {"temp*":
    "bound=abs=1"}. The original may be HDF5, netCDF-4, netCDF classic or .npy. Of two HDF5 files
    everything else is compared, too: objects, links, types, fill values, orders, attributes.
    ignore, ignore_attributes: globs of objects and of attributes that may differ (default: none).
    values_only: compare only values, of files that are not copies of each other.
    @returns the verdict; its check() raises BoundError, or CopyError if only other things differ.
    """
    handle = communicator(comm)
    bounds = bound_option(bound=bound, abs=abs, rel=rel, pw_rel=pw_rel, psnr=psnr)
    fields = [f"{glob}:{text}" for glob, text in (per_variable or {}).items()]
    with progress_bar(progress, "verifying") as show_progress:
        document, text = engine().verify(
            original=path_of(original), compressed=path_of(compressed), bound=bounds,
            per_field=fields, only=_globs("only", only), exclude=_globs("exclude", exclude),
            ignore=_globs("ignore", ignore),
            ignore_attributes=_globs("ignore_attributes", ignore_attributes),
            values_only=values_only, comm=handle,
            progress=show_progress if progress else None)
    return Verification(document, text)


def _globs(what: str, names: Any) -> list[str]:
    if isinstance(names, str):
        return [names]
    if not isinstance(names, Iterable):
        raise TypeError(f"{what} is {names!r:.60}, must be a list of names")
    return [text_of(what, name) for name in names]


class Info(dict[str, Any]):
    """The output of `tailrace info --json`; shown as its table. Its "fields" are a list, each with
    `ratio` in addition; info["/t"] is the field of that path."""

    text = ""

    def __repr__(self) -> str:
        return self.text

    def __missing__(self, path: str) -> dict[str, Any]:
        for field in self["fields"]:
            if isinstance(path, str) and field["path"] in (path, f"/{path}"):
                return dict(field)
        raise KeyError(path)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.text)}</pre>"


def info(path: Path, *, chunks_of: str = "") -> Info:
    """Return variables, codecs, bounds, sizes and ratios of a file, without reading values.

    chunks_of: also list the chunks of the variables that match this glob (default: none).
    """
    document, text = engine().info(path_of(path), text_of("chunks_of", chunks_of))
    found = Info(document)
    for field in found.get("fields", []):
        stored = field["stored_bytes"]
        field["ratio"] = field["raw_bytes"] / stored if stored else None
    found.text = text
    return found


#: By variable, keywords of to_netcdf() and create_variable().
Encodings = Optional[Mapping[Any, Mapping[str, Any]]]
#: "auto", or slices by dimension.
Region = Union[None, str, Mapping[Any, Any]]


@with_hints
def write_dataset(
    dataset: Any, path: Path, mode: Optional[str] = None, *, abs: Optional[float] = None,
    rel: Optional[float] = None, pw_rel: Optional[float] = None, psnr: Optional[float] = None,
    bound: Optional[str] = None, codec: Optional[str] = None, encoding: Encodings = None,
    group: Optional[str] = None, unlimited_dims: Union[None, str, Iterable[Hashable]] = None,
    append_dim: Optional[str] = None, region: Region = None, format: Optional[str] = None,
    options: str = "", compute: bool = True, progress: Progress = None, again: bool = False,
) -> Any:
    """Store an xarray Dataset or DataArray as netCDF-4 within bounds, like Dataset.to_netcdf().

    mode: "w" replaces a file, "x" refuses to, "a" adds variables and overwrites existing ones.
    One of abs, rel, pw_rel, psnr, bound, and codec: for all variables of numbers that `encoding`
    gives no other; default: exact, by deflate. Integers, packed values, and variables that locate
    others (coordinates, bounds of cells, masks, ...) stay exact.
    encoding: by variable, the keywords that to_netcdf() accepts for netCDF4 and h5netcdf
    (chunksizes, _FillValue, dtype, scale_factor, add_offset, zlib, complevel, shuffle, compression,
    ...) and those of create_variable(): {"t": {"abs": 0.01}}. A bound applies to the values as they
    are read, even if they are packed. group, unlimited_dims: those of to_netcdf().
    append_dim="time": append the values along it to those of the file. region={"time": slice(10,
    20)} or "auto": overwrite a part of them. Both like in to_zarr(). options (of tailrace.open) and
    progress are accepted, too.
    compute=False: check the request now, and return a dask.delayed.Delayed that writes; default:
    write now.
    again: allow a bound for values read from a lossy file; the sum of the bounds is recorded.
    Default False: ArgumentError, since errors add up.

    dask arrays are computed and written piece by piece. If anything fails, an older file stays as
    it was.
    """
    from . import _xarray_write
    options = _with_bounds(options, bound, abs, rel, pw_rel, psnr, codec)
    requested = bound_option(bound=bound, abs=abs, rel=rel, pw_rel=pw_rel, psnr=psnr)
    return _xarray_write.write_dataset(
        dataset, path, mode, requested=requested, encoding=encoding, group=group,
        unlimited_dims=unlimited_dims, append_dim=append_dim, region=region, format=format,
        options=options, compute=compute, progress=progress, again=again)


@with_hints
def write_datatree(
    tree: Any, path: Path, mode: str = "w", *, abs: Optional[float] = None,
    rel: Optional[float] = None, pw_rel: Optional[float] = None, psnr: Optional[float] = None,
    bound: Optional[str] = None, codec: Optional[str] = None,
    encoding: Optional[Mapping[str, Mapping[Any, Mapping[str, Any]]]] = None,
    unlimited_dims: Optional[Mapping[str, Any]] = None, write_inherited_coords: bool = False,
    format: Optional[str] = None, options: str = "", compute: bool = True,
    progress: Progress = None, again: bool = False,
) -> Any:
    """Store an xarray DataTree, a group for each node, like DataTree.to_netcdf().

    encoding and unlimited_dims: by group, the arguments of write_dataset(): {"/model": {"t":
    {"abs": 0.01}}}. The other arguments are those of write_dataset(). If anything fails, an older
    file stays as it was.
    """
    from . import _xarray_write
    options = _with_bounds(options, bound, abs, rel, pw_rel, psnr, codec)
    requested = bound_option(bound=bound, abs=abs, rel=rel, pw_rel=pw_rel, psnr=psnr)
    return _xarray_write.write_datatree(
        tree, path, mode, requested=requested, encoding=encoding, unlimited_dims=unlimited_dims,
        write_inherited_coords=write_inherited_coords, format=format, options=options,
        compute=compute, progress=progress, again=again)


def _with_bounds(options: str, bound: Optional[str], abs: Optional[float], rel: Optional[float],
                 pw_rel: Optional[float], psnr: Optional[float], codec: Optional[str]) -> str:
    """Return the options of a file with a bound and a codec for all its variables."""
    return option_text("", codec=codec, bound=bound, abs=abs, rel=rel, pw_rel=pw_rel, psnr=psnr,
                       chunks=None, options=text_of("options", options), settings={})
