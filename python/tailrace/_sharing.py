"""Sharing of files: what their readers need, and files that need no plug-in.

The engine records in a file which filters its readers need, and File.close() logs it.
make_portable() replaces a file by one that every HDF5 reads.
"""

from __future__ import annotations

import logging
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from typing import Any, Optional

from ._attributes import Attributes
from ._errors import ArgumentError, BoundError, CopyError, UnsupportedError
from ._file import File, path_of
from ._group import Group
from ._losses import losses_of
from ._printable import printable
from ._progress import Progress
from ._tools import verify
from ._variable import Variable

_LOG = logging.getLogger("tailrace")
_reported: set[str] = set()

#: Attribute that records what the file's readers need.
NEED = "tailrace_readers_need"
#: Filters of every HDF5 build: deflate, shuffle, fletcher32, szip, nbit, scaleoffset.
_OF_HDF5 = range(1, 7)
#: Bookkeeping attributes of the netCDF-4 library and Tailrace, which every file gets afresh.
_BOOKKEEPING = ("_NCProperties", "_Netcdf4Dimid", "_Netcdf4Coordinates", "_nc3_strict",
                "_FillValue")


def _variables(group: Group) -> Iterator[Variable]:
    yield from group.variables.values()
    for inner in group.groups.values():
        yield from _variables(inner)


def _needs_filters(file: File) -> bool:
    """True if readers of an open file need filters that not every HDF5 has."""
    stored = (variable._file._storage(variable._position) for variable in _variables(file))
    return any(number not in _OF_HDF5
               for each in stored if each is not None for number, _, _ in each.filters)


def log_what_readers_need(path: str) -> None:
    """Log what readers of a closed file need, as the engine has recorded it; once per process as a
    warning. On one rank."""
    try:
        with File(path) as written:
            need = str(written.attrs.get(NEED, ""))
    except Exception:  # noqa: BLE001 - the file is complete, and the log is optional.
        return
    if need:
        _LOG.log(logging.INFO if need in _reported else logging.WARNING, "%s: %s", path, need)
        _reported.add(need)


# --- a file that needs nothing --------------------------------------------------------------------


class Portable(Mapping[str, Optional[float]]):
    """Result of make_portable(). By variable the bound of its values against those first written,
    in the variable's unit. 0: exact; infinite: unknown; None: a fraction of each value
    (`pointwise`)."""

    def __init__(self, path: str, bounds: Mapping[str, Optional[float]],
                 pointwise: Mapping[str, float], n_bytes: tuple[int, int]) -> None:
        self.path = path
        self.pointwise = dict(pointwise)
        self.bytes_before, self.bytes_now = n_bytes
        self._bounds = dict(bounds)

    def __getitem__(self, name: str) -> Optional[float]:
        return self._bounds[name if name in self._bounds else f"/{name}"]

    def __iter__(self) -> Iterator[str]:
        return iter(self._bounds)

    def __len__(self) -> int:
        return len(self._bounds)

    def __repr__(self) -> str:
        lines = [f"{printable(self.path)}: {self.bytes_before} bytes, now {self.bytes_now}, for "
                 "every HDF5"]
        for name, bound in self.items():
            kept = (f"within {self.pointwise[name]:g} of each value" if bound is None
                    else f"within {bound:g}" if bound else "exactly")
            lines.append(f"  {printable(name)}: {kept}")
        return "\n".join(lines)


def make_portable(path: Any, output: Any = None, *, loosen: float = 0.0,
                  progress: Progress = None) -> Portable:
    """Replace a file by one that needs no plug-in; with output=, write another file instead.

    The values are those that the file returns now, to the last bit, stored by deflate, so its
    bounds stay true. The new file is much larger, unless loosen= is given. It lets the values of
    each bounded variable change once more, by at most this fraction of the bound. loosen=1 doubles
    the bound, by the codec "portable". The file is replaced once the new one is complete and has
    been compared with it; a failure leaves the file as it is.
    @returns the bounds that hold now.

    >>> import numpy as np, tailrace
    >>> path = os.path.join(tempfile.mkdtemp(), "u.nc")
    >>> with tailrace.open(path, "w") as file:
    ...     _ = file.create_variable("u", "x", data=np.arange(5e3) / 7, abs=0.25, codec="trz")
    >>> make_portable(path, loosen=1)["u"]
    0.5
    """
    if isinstance(loosen, bool) or not isinstance(loosen, (int, float)) or not 0 <= loosen < 1e6:
        raise ArgumentError(f"loosen is {loosen!r}, must be a number >= 0")
    given = os.path.realpath(path_of(path))
    target = given if output is None else os.path.realpath(path_of(output))
    with File(given) as source:
        _check_can_be_copied(source)
        bounds, pointwise = _bounds_of(source, loosen)
        if output is None and not _needs_filters(source) and not loosen:
            n_bytes = os.path.getsize(given)
            return Portable(given, bounds, pointwise, (n_bytes, n_bytes))
        folder = tempfile.mkdtemp(prefix=".portable_", dir=os.path.dirname(target))
        made = os.path.join(folder, os.path.basename(target))
        try:
            with File(made, "w") as copy:
                _copy_group(source, copy, loosen, progress)
            _compare(given, made)
            with File(made, "a") as copy:
                _record(source, copy, bounds, pointwise, loosen)
            shutil.copymode(given, made)
            n_bytes_both = (os.path.getsize(given), os.path.getsize(made))
            os.replace(made, target)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    return Portable(target, bounds, pointwise, n_bytes_both)


def _check_can_be_copied(source: File) -> None:
    model = source._model()
    otherwise = "`tailrace repack IN -o OUT --codec portable` carries all of HDF5 over"
    if any(dimension.anonymous for dimension in model.dimensions) or not model.netcdf4:
        raise UnsupportedError(f"{source.filename} is not a netCDF-4 file; {otherwise}")
    for variable in _variables(source):
        if variable._model.type == "other":
            raise UnsupportedError(f"{variable.path}: values of type {variable.dtype} cannot be "
                                   f"written; {otherwise}")
    owners: list[Any] = [source, *_groups(source), *_variables(source)]
    for owner in owners:
        for name, (type_name, _, _) in owner.attrs._entries().items():
            if type_name == "other" and name not in _BOOKKEEPING:
                raise UnsupportedError(f"{owner.path}: attribute {name!r} has a type that cannot "
                                       f"be written; {otherwise}")


def _groups(group: Group) -> Iterator[Group]:
    for inner in group.groups.values():
        yield inner
        yield from _groups(inner)


def _bounds_of(source: File, loosen: float) -> tuple[dict[str, Optional[float]], dict[str, float]]:
    bounds: dict[str, Optional[float]] = {}
    pointwise: dict[str, float] = {}
    for variable in _variables(source):
        mode = str(variable.attrs.get("tailrace_bound_mode", "none"))
        bounds[variable.path] = 0.0
        if mode == "pw_rel":
            share = float(variable.attrs["tailrace_bound_asked"])
            more = share * loosen  # A fraction of a value that already has an error of that
                                   # fraction.
            bounds[variable.path] = None
            pointwise[variable.path] = share + more + share * more
        elif mode == "unknown":
            bounds[variable.path] = float("inf")
        elif mode != "none":
            bound = float(variable.attrs.get("tailrace_absolute_bound", 0.0))
            bounds[variable.path] = bound * (1 + loosen)
    return bounds, pointwise


def _codec_for(variable: Variable, loosen: float) -> dict[str, Any]:
    mode = str(variable.attrs.get("tailrace_bound_mode", "none"))
    exact = {"codec": "deflate", "bound": "none"}
    if not loosen or mode in ("none", "unknown") or variable.dtype.kind != "f":
        return exact
    if mode == "pw_rel":
        return {"codec": "portable",
                "pw_rel": float(variable.attrs["tailrace_bound_asked"]) * loosen}
    bound = float(variable.attrs.get("tailrace_absolute_bound", 0.0)) * loosen
    return {"codec": "portable", "abs": bound} if 0 < bound < float("inf") else exact


def _own_attributes(attrs: Attributes) -> dict[str, Any]:
    return {name: value for name, value in attrs.items()
            if name not in _BOOKKEEPING and not name.startswith("tailrace_")}


def _copy_group(source: Group, copy: Group, loosen: float, progress: Progress) -> None:
    copy.attrs.update(_own_attributes(source.attrs))
    for name, dimension in source.dimensions.items():
        copy.create_dimension(name, None if dimension.unlimited else len(dimension))
    for name, variable in source.variables.items():
        keywords: dict[str, Any] = {}
        dtype: Any = str if variable._model.type == "text" else variable.dtype
        if variable.ndim and dtype is not str:
            keywords = _codec_for(variable, loosen)
            if variable.chunks:
                keywords["chunks"] = variable.chunks
        made = copy.create_variable(name, variable.dims, dtype,
                                    fill_value=variable.attrs.get("_FillValue"),
                                    attrs=_own_attributes(variable.attrs), **keywords)
        if not variable.ndim:
            made[...] = variable[...]
        elif variable.size:
            for part in variable._parts(variable.shape):
                made[part] = variable[part]
    for name, group in source.groups.items():
        _copy_group(group, copy.create_group(name), loosen, progress)


def _compare(given: str, made: str) -> None:
    """Check that every value, text and attribute of the copy is right, within the loosened bounds.

    A dataset without a fill value gets netCDF's, which has no effect, because all values are
    written.
    """
    found = verify(given, made)
    structure = found.document["structure"] or {"n_failing": 0, "differences": []}
    fills = sum(one["fails"] and one["aspect"] == "fill value"
                and "is HDF5's default in the original" in one["text"]
                for one in structure["differences"])
    kept = all(verdict.kept for verdict in found.values())
    if not kept or structure["n_failing"] > fills or len(found.problems) > fills:
        kind = CopyError if kept else BoundError
        raise kind(f"{given} was not changed, since its copy differs\n{found!r}")


def _record(source: File, copy: File, bounds: Mapping[str, Optional[float]],
            pointwise: Mapping[str, float], loosen: float) -> None:
    """Record earlier losses in the copy, too."""
    for variable in _variables(source):
        mode = str(variable.attrs.get("tailrace_bound_mode", "none"))
        if mode == "none":
            continue
        path, attrs = variable.path, copy[variable.path].attrs
        attrs["tailrace_bound_mode"] = mode
        if "tailrace_codec" not in attrs:  # Encoded exactly: the file would record only that.
            attrs["tailrace_codec"] = "deflate"
        _record_losses(variable, copy[variable.path], loosen)
        if mode == "unknown":
            for name in ("tailrace_bound_asked", "tailrace_absolute_bound"):
                attrs.pop(name, None)
        elif mode == "pw_rel":
            attrs["tailrace_bound_asked"] = pointwise[path]
            attrs.pop("tailrace_absolute_bound", None)
        else:
            attrs["tailrace_bound_asked"] = (
                float(variable.attrs["tailrace_bound_asked"]) * (1 + loosen)
                if mode in ("abs", "rel") else variable.attrs["tailrace_bound_asked"])
            attrs["tailrace_absolute_bound"] = bounds[path]
        if not loosen and "tailrace_guard" in variable.attrs:
            attrs["tailrace_guard"] = variable.attrs["tailrace_guard"]


def _record_losses(source: Variable, copy: Variable, loosen: float) -> None:
    losses = str(source.attrs.get("tailrace_losses", ""))
    more = [f"{mode}={bound!r}" for mode, bound in _codec_for(source, loosen).items()
            if mode in ("abs", "pw_rel")]
    if losses or more:
        copy.attrs["tailrace_losses"] = " then ".join([losses or losses_of(source), *more])
