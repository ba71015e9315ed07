"""report: one HTML page on the effects of compression on the variables of a file, or on arrays.

verify() makes the verdicts by comparing both files chunk by chunk. The figures come from a second
pass over the changed variables, in boxes of whole chunks. It needs the memory of a few boxes,
however large the files are. _report_page makes the page, _figures draws.
"""

from __future__ import annotations

import contextlib
import math
import os
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from ._errors import ArgumentError, BoundError, CopyError, TailraceError
from ._file import File, path_of
from ._geography import Coordinates, Places, coordinates_of, place_text
from ._keywords import with_hints
from ._measures import (
    Effects,
    Numbers,
    Shells,
    Values,
    as_stored,
    axes_text,
    counted,
    fill_among,
    space_axes,
)
from ._model import netcdf_path
from ._printable import html_text, printable, warn
from ._progress import Progress
from ._settings import bound_option
from ._tools import FieldVerdict, Verification, verify
from ._variable import Variable

_BOX_BYTES = 8 << 20
_MEMORY_BYTES = 64 << 20
_SPECTRUM_VALUES = 1 << 21
_MAP_CELLS = (360, 480)
_LINE_CELLS = 800


class Histogram:
    """Signed errors in 99 bins around 0; the range triples whenever an error lies outside."""

    N_BINS = 99

    def __init__(self, limit: float) -> None:
        #: The outermost bins end at -limit and limit; 0: only zeros so far.
        self.limit = limit if math.isfinite(limit) else 0.0
        self.counts: npt.NDArray[np.int64] = np.zeros(self.N_BINS, np.int64)
        self.n_lost = 0  #: Values that only one side has as a number.

    def add(self, errors: Numbers) -> None:
        finite = np.isfinite(errors)
        self.n_lost += int(errors.size - finite.sum())
        errors = errors[finite]
        if errors.size == 0:
            return
        largest = float(np.abs(errors).max())
        if self.limit == 0 and largest > 0:
            zeros = int(self.counts.sum())
            self.limit = largest
            self.counts[self.N_BINS // 2] = zeros
        while largest > self.limit > 0:
            inner = self.counts.reshape(-1, 3).sum(axis=1)
            self.counts[:] = 0
            at = (self.N_BINS - inner.size) // 2
            self.counts[at:at + inner.size] = inner
            self.limit *= 3
        width = 2 * self.limit / self.N_BINS
        if width == 0:
            self.counts[self.N_BINS // 2] += errors.size
            return
        bins = np.floor((errors + self.limit) / width).astype(np.int64)
        self.counts += np.bincount(np.clip(bins, 0, self.N_BINS - 1), minlength=self.N_BINS)

    @property
    def edges(self) -> Numbers:
        return np.linspace(-self.limit, self.limit, self.N_BINS + 1)


@dataclass(frozen=True)
class Drawn:
    """Data for the figures of a variable whose values changed."""

    histogram: Histogram
    error_map: Numbers  #: Largest |error| per cell of a slice (1-D: of a line); NaN: none.
    value_maps: tuple[Numbers, Numbers]  #: Original and decoded value in each cell's middle.
    slice_text: str  #: Description of the slice.
    map_dims: tuple[str, ...]
    map_shape: tuple[int, ...]  #: Values along the slice's dimensions.
    places: Optional[Places]  #: Latitude and longitude of the cells; None: the data have none.
    wave_numbers: Numbers
    powers: tuple[Numbers, Numbers, Numbers]  #: Original, decoded, and their difference.
    box_text: str  #: Description of the box for the spectra.
    axes_text: str  #: Dimensions along which gradients and spectra run.


@dataclass(frozen=True)
class VariableReport:
    """Report on one variable."""

    path: str
    verdict: FieldVerdict
    kept: Optional[bool]  #: Within the bound; None: the bound is unknown.
    shape: tuple[int, ...]
    dtype: str
    chunks: Optional[tuple[int, ...]]
    codec: str
    bound: str  #: Bound as requested, "rel=0.001"; "exact"; "none known".
    absolute_bound: Optional[float]  #: Unit of the values; None: pointwise, or none known.
    pointwise_bound: Optional[float]
    max_error: float
    psnr_db: Optional[float]  #: None: exactly equal, or without a range.
    ratio: Optional[float]  #: None: arrays, which are not stored.
    n_beyond_bound: int
    effects: Optional[Effects] = None  #: Moments of all values; None: nothing changed.
    near: Optional[Effects] = None  #: Gradients and spectra of the box that the page names.
    drawn: Optional[Drawn] = None
    remark: str = ""
    units: str = ""
    attributes: dict[str, str] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        return self.kept is False


class Report(Mapping[str, VariableReport]):
    """Result of report(): a mapping of its variables; true if all bounds hold."""

    def __init__(self, path: str, variables: Sequence[VariableReport],
                 problems: Sequence[str], doubts: Sequence[str] = ()) -> None:
        self.path = path
        #: Sentences on bounds that hold but mean little; see Verification.doubts.
        self.doubts = list(doubts)
        #: Other problems: variables that only one side has, different shapes, ...
        self.problems = list(problems)
        self._variables = {one.path: one for one in variables}

    @property
    def ok(self) -> bool:
        """True if every variable exists, and every value is within its bound."""
        return not self.problems and not any(one.failed for one in self._variables.values())

    def check(self) -> Report:
        """Return self, or raise BoundError, or CopyError if no value is beyond its bound. Warns of
        doubts."""
        if not self.ok:
            failed = any(one.failed for one in self._variables.values())
            raise (BoundError if failed else CopyError)(repr(self))
        for doubt in self.doubts:
            warn(doubt)
        return self

    def __bool__(self) -> bool:
        return self.ok

    def __getitem__(self, path: str) -> VariableReport:
        return self._variables[path if path in self._variables else f"/{path}"]

    def __iter__(self) -> Iterator[str]:
        return iter(self._variables)

    def __len__(self) -> int:
        return len(self._variables)

    def __repr__(self) -> str:
        failed = [one for one in self._variables.values() if one.failed]
        lines = [f"{self.path}: {len(self)} variables, "
                 + ("all within their bounds" if self.ok else "NOT all within their bounds")]
        lines += [f"  {one.path}: {one.n_beyond_bound:,} values beyond the bound {one.bound}, "
                  f"largest error {one.max_error:.4g}" for one in failed]
        lines += [f"  {line}" for line in (*self.problems, *self.doubts)]
        return "\n".join(map(printable, lines))

    def _repr_html_(self) -> str:
        from ._report_page import summary_table
        return (f"<div>{html_text(repr(self).partition(chr(10))[0])}"
                f"{summary_table(list(self._variables.values()), links=False)}</div>")


@with_hints
def report(
    original: Any, compressed: Any, path: Any = "report.html", *, bound: Optional[str] = None,
    abs: Optional[float] = None, rel: Optional[float] = None, pw_rel: Optional[float] = None,
    psnr: Optional[float] = None, only: Sequence[str] = (), exclude: Sequence[str] = (),
    title: Optional[str] = None, figures: bool = True, progress: Progress = None,
) -> Report:
    """Write one HTML page that shows the effects of compression, to attach to a paper.

    original, compressed: two files (accepted by verify()), two arrays, or mappings of arrays by
    name (such as a Dataset). For each variable the page shows shape, type, chunks, codec, bound,
    ratio, largest error against the bound, and PSNR. If values changed and matplotlib is installed,
    it also shows a histogram of errors, a map of them on the middle slice, and spectra. The page is
    self-contained. Each variable must keep the bound given here, else the bound recorded in the
    compressed file; a variable with neither that differs gets no verdict. As in verify(), a bound
    for all variables does not apply to integers and to variables recorded as exact. only, exclude:
    globs of paths (default: all). figures=False: only tables.

    Files are read in boxes of whole chunks, so memory does not grow with them. A value beyond its
    bound raises no exception, but is shown at the top of the page; check() of the result raises it.
    @error ArgumentError  arrays that do not match.

    >>> import numpy as np, tempfile, os
    >>> u = np.sin(np.linspace(0, 9, 4096)).reshape(64, 64)

    >>> path = os.path.join(tempfile.mkdtemp(), "report.html")
    >>> made = report(u, np.round(u, 2), path, abs=0.006)
    >>> made.ok, made["data"].kept, made["data"].max_error <= 0.005
    (True, True, True)
    """
    from ._report_page import write_page
    target = path_of(path, writes=True)
    bounds = bound_option(bound=bound, abs=abs, rel=rel, pw_rel=pw_rel, psnr=psnr)
    if not isinstance(figures, bool):
        raise TypeError(f"figures is {figures!r:.60}, must be True or False")
    with contextlib.ExitStack() as stack:
        names = (_given_name(original, "original"), _given_name(compressed, "compressed"))
        folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="tailrace_report_"))
        first, second = _as_files(original, compressed, folder)
        only = only or _only_of(original, compressed)
        stored = _is_path(compressed)
        # Variables that a file stores exactly must stay exact; arrays have no such record.
        held: dict[str, Any] = ({"bound": bounds or None} if stored else
                                {"per_variable": {"*": f"bound={bounds}"} if bounds else None})
        found = verify(first, second, only=only, exclude=exclude, progress=progress,
                       values_only=True, **held)
        sources = stack.enter_context(_opened(first)), stack.enter_context(_opened(second))
        variables = [_variable_report(verdict, sources, stored or bool(bounds), stored=stored)
                     for verdict in found.values()]
        problems = _problems(found, variables)
        made = Report(target, variables, problems, found.doubts)
        write_page(made, names, title, figures, _sizes(original, compressed))
    return made


# --- the compared data ----------------------------------------------------------------------------


def _is_path(given: Any) -> bool:
    return isinstance(given, (str, bytes, os.PathLike))


def _given_name(given: Any, otherwise: str) -> str:
    if _is_path(given):
        return path_of(given)
    name = getattr(given, "name", None)
    return f"array {name}" if isinstance(name, str) and name else f"{otherwise} in memory"


def _sizes(*given: Any) -> list[Optional[int]]:
    return [os.path.getsize(path_of(one)) if _is_path(one) else None for one in given]


def _as_files(original: Any, compressed: Any, folder: str) -> tuple[str, str]:
    """Write arrays to files, which verify() can read; return paths of files unchanged."""
    paths = [path_of(given) if _is_path(given) else os.path.join(folder, name)
             for given, name in ((original, "original.nc"), (compressed, "compressed.nc"))]
    alone = None  # Name of an array without one.
    for given, other in ((original, compressed), (compressed, original)):
        if not _is_path(given) and not isinstance(given, Mapping):
            alone = alone or _name_for(given, other)
    known = paths[1] if _is_path(compressed) else ""  # A file with the stored form of the values.
    for given, path in zip((original, compressed), paths):
        if _is_path(given):
            known = path
        elif _is_xarray(given):
            from ._xarray_write import write_exactly
            named = given if isinstance(given, Mapping) else given.rename((alone or "").strip("/"))
            write_exactly(named, path, known if _is_readable(known) else "")
            known = path
        else:
            arrays = given if isinstance(given, Mapping) else {alone: given}
            with File(path, "w") as file:
                for key, array in arrays.items():
                    _store(file, str(key), array)
    return paths[0], paths[1]


def _is_xarray(given: Any) -> bool:
    xarray = sys.modules.get("xarray")
    return xarray is not None and isinstance(given, (xarray.Dataset, xarray.DataArray))


def _is_readable(path: str) -> bool:
    """True for a file that this package reads; False for classic netCDF and .npy."""
    try:
        with File(path):
            return True
    except (TailraceError, OSError):
        return False


def _only_of(original: Any, compressed: Any) -> Sequence[str]:
    """Return the name of a DataArray: its coordinates are not compared."""
    for given, other in ((original, compressed), (compressed, original)):
        if _is_xarray(given) and not isinstance(given, Mapping):
            return (_name_for(given, other).strip("/"),)
    return ()


def _name_for(array: Any, other: Any) -> str:
    """Return a name for a single array: that of the object that it is compared with."""
    names: list[str] = []
    if isinstance(other, Mapping):
        names = [str(key) for key in other]
    elif _is_path(other) and not path_of(other).endswith(".npy"):
        with File(path_of(other)) as file:
            names = [path for path, one in _all_variables(file)
                     if one.shape == tuple(np.shape(array)) and one.dtype.kind in "fiu"]
    own = getattr(array, "name", None)
    own = own.rpartition("/")[2] if isinstance(own, str) else ""
    if len(names) > 1 and own not in [name.strip("/") for name in names]:
        raise ArgumentError(f"an array is compared with {len(names)} variables ("
                            f"{', '.join(names[:5])}); give a mapping {{name: array}}")
    if own and (not names or own in [name.strip("/") for name in names]):
        return own
    return names[0] if names else "data"


def _store(file: File, name: str, array: Any) -> None:
    fill = None
    if isinstance(array, np.ma.MaskedArray):
        fill = array.fill_value
        array = array.filled(fill)
    if not hasattr(array, "shape") or not hasattr(array, "dtype"):
        array = np.asarray(array)
    with as_stored(array) as attrs:
        _write(file, name, array, attrs, fill_among(attrs) if fill is None else fill)


def _write(file: File, name: str, array: Any, attrs: Any, fill: Any) -> None:
    units = attrs.get("units") if hasattr(attrs, "get") else None
    dims = [f"{name.strip('/').replace('/', '_')}_{at}" for at in range(len(array.shape))]
    file.create_variable(name, dims, data=array, codec="none", fill_value=fill,
                         attrs={"units": units} if isinstance(units, str) else None)
    file._may_need_filters = False


@contextlib.contextmanager
def _opened(path: str) -> Iterator[dict[str, Any]]:
    """Return the arrays of a file by path, as stored; {} if only verify() can read it."""
    if path.endswith(".npy"):
        yield {"": np.load(path, mmap_mode="r")}
        return
    try:
        file = _opened_with_little(path)
    except TailraceError:
        file = None  # Classic netCDF.
    if file is not None:
        with file:
            yield dict(_all_variables(file))
        return
    try:
        import netCDF4
    except ImportError:
        yield {}
        return
    with netCDF4.Dataset(path) as classic:
        classic.set_auto_maskandscale(False)
        yield {f"/{name}": variable for name, variable in classic.variables.items()}


def _opened_with_little(path: str) -> File:
    """Open a file with a small chunk cache, because boxes are read once. Large chunks need more
    memory."""
    file = File(path)
    largest = max((math.prod(one.chunks or ()) * one.dtype.itemsize
                   for _, one in _all_variables(file)), default=0)
    if largest > _MEMORY_BYTES // 16:
        return file
    file.close()
    return File(path, options=f"memory={_MEMORY_BYTES}")


def _all_variables(group: Any) -> Iterator[tuple[str, Variable]]:
    for variable in group.variables.values():
        yield variable.path, variable
    for inner in group.groups.values():
        yield from _all_variables(inner)


def _problems(found: Verification, variables: Sequence[VariableReport]) -> list[str]:
    problems = list(found.problems)
    if not variables and not problems:
        problems.append("there is no variable of numbers to compare")
    return problems


# --- one variable ---------------------------------------------------------------------------------


def _variable_report(verdict: FieldVerdict, sources: tuple[dict[str, Any], dict[str, Any]],
                     judged: bool, *, stored: bool) -> VariableReport:
    details = verdict.details
    originals, compressed = sources
    path = netcdf_path(verdict.path)
    second = compressed.get(path)
    first = originals.get(path, originals.get(""))
    mode = details["bound_mode"]
    changed = (verdict.max_error != 0 or verdict.n_beyond_bound or details["n_special_changed"])
    known = (judged or mode != "none") and (mode != "none" or details["absolute_bound"] is not None
                        or details["pointwise_bound"] is not None)
    requested = "exact" if mode == "none" else f"{mode}={details['bound_asked']:.6g}"
    chunks = getattr(second, "chunks", None)
    attributes, units, fill = _attributes_of(second)
    report = {
        "path": path, "verdict": verdict, "kept": verdict.kept if known or not changed else None,
        "shape": tuple(details["shape"]), "dtype": details["dtype"],
        "chunks": tuple(chunks) if isinstance(chunks, tuple) else None,
        "codec": _codec_of(verdict, second) if stored else "",
        "bound": requested if known else "none known",
        "absolute_bound": verdict.absolute_bound if known and mode != "pw_rel" else None,
        "pointwise_bound": details["pointwise_bound"], "max_error": _number(verdict.max_error),
        "psnr_db": verdict.psnr_db, "ratio": verdict.ratio if stored else None,
        "n_beyond_bound": verdict.n_beyond_bound, "units": units, "attributes": attributes}
    if not changed:
        return VariableReport(**report, remark="every value is equal to the last bit")
    if first is None or second is None or tuple(first.shape) != tuple(second.shape):
        return VariableReport(**report, remark="no figures: the original can be compared, but not "
                                               "be read here (netCDF4 is not installed)")
    relative = details["pointwise_bound"]
    limit = relative or report["absolute_bound"] or 0.0
    effects, near, drawn = _look_at(first, second, fill, bool(relative), limit,
                                    getattr(second, "dims", None), coordinates_of(second))
    return VariableReport(**report, effects=effects, near=near, drawn=drawn)


def _codec_of(verdict: FieldVerdict, stored: Any) -> str:
    """Return the codec of a stored variable. Exact variables need not record theirs."""
    if verdict.codec in ("", "none") and isinstance(stored, Variable):
        return stored.codec or "none"
    return verdict.codec


def _number(value: Optional[float]) -> float:
    return math.inf if value is None else float(value)


def _attributes_of(variable: Any) -> tuple[dict[str, str], str, Any]:
    if not isinstance(variable, Variable):
        return {}, "", None
    found = dict(variable.attrs.items())
    shown = {name: str(value) for name, value in found.items()
             if not name.startswith(("tailrace_", "_Netcdf4", "DIMENSION_LIST", "REFERENCE_LIST"))}
    units = found.get("units", "")
    return shown, units if isinstance(units, str) else "", fill_among(found)


def boxes(shape: Sequence[int], chunks: Optional[Sequence[int]], item_bytes: int,
          bytes_max: int = _BOX_BYTES) -> Iterator[tuple[slice, ...]]:
    """Yield boxes of whole chunks, each of at most about bytes_max (but at least one chunk).

    >>> [box[0] for box in boxes((5, 4), (2, 4), 4, 64)]
    [slice(0, 4, None), slice(4, 5, None)]
    """
    if not shape:
        yield ()
        return
    extents = [min(n, length) for n, length in zip(chunks or [1] * len(shape), shape)]
    for axis in reversed(range(len(shape))):
        n_bytes = max(1, math.prod(extents) * item_bytes)
        extents[axis] = min(shape[axis], extents[axis] * max(1, bytes_max // n_bytes))
    grid = [range(0, length, n) for length, n in zip(shape, extents)]
    for start in np.ndindex(*[len(one) for one in grid]):
        yield tuple(slice(one[at], min(one[at] + n, length))
                    for one, at, n, length in zip(grid, start, extents, shape))


def _errors(first: Values, second: Values, fill: Any, relative: bool) -> Numbers:
    """Return decoded minus original, or its fraction of the original if that is bounded. NaN if the
    original is not a number and was preserved, infinite if only one side is a number."""
    known = counted(first, fill)
    with np.errstate(all="ignore"):
        errors: Numbers = second.astype(np.float64) - first.astype(np.float64)
        if relative:
            errors = np.where(errors == 0, 0.0, errors / np.abs(first.astype(np.float64)))
    same = (first == second) | (np.isnan(first) & np.isnan(second))
    errors[known & ~np.isfinite(errors)] = np.inf
    errors[~known] = np.where(same[~known], np.nan, np.inf)
    return errors


def _look_at(first: Any, second: Any, fill: Any, relative: bool, limit: float,
             dims: Optional[tuple[str, ...]], coordinates: Coordinates
             ) -> tuple[Effects, Optional[Effects], Drawn]:
    if not second.shape:
        first, second, dims = np.reshape(first[...], 1), np.reshape(second[...], 1), ("value",)
    shape = tuple(int(n) for n in second.shape)
    item_bytes = np.dtype(second.dtype).itemsize
    chunks = second.chunks if isinstance(second, Variable) else None
    effects = Effects((), fill, bound=0.0 if relative else limit)
    histogram = Histogram(limit)
    for box in boxes(shape, chunks, item_bytes):
        one, other = np.asarray(first[box]), np.asarray(second[box])
        effects.add(one, other)
        errors = _errors(one, other, fill, relative)
        histogram.add(errors[~np.isnan(errors)])
    names = dims or tuple(f"dim_{at}" for at in range(len(shape)))
    long_axes = [at for at, n in enumerate(shape) if n > 1]
    middle = [slice(n // 2, n // 2 + 1) for n in shape]
    map_axes = coordinates.axes(names, shape) or long_axes[-2:]
    error_map, value_maps, steps = _map_of(first, second, fill, relative, map_axes, middle)
    along = space_axes(shape)
    near, shells, difference, box_text = _spectra_of(first, second, fill, along, middle, names)
    cut = [place_text(second, name, part.start)
           for at, (name, part) in enumerate(zip(names, middle)) if at not in map_axes]
    places = coordinates.places([names[at] for at in map_axes], steps)
    drawn = Drawn(histogram, error_map, value_maps, f"at {', '.join(cut)}" if cut else "all values",
                  tuple(names[at] for at in map_axes), tuple(shape[at] for at in map_axes), places,
                  shells.wave_numbers, (near.power, near.power_decoded, difference), box_text,
                  axes_text(along, names))
    return effects, near, drawn


def _map_of(first: Any, second: Any, fill: Any, relative: bool, axes: Sequence[int],
            middle: Sequence[slice]
            ) -> tuple[Numbers, tuple[Numbers, Numbers], list[int]]:
    """Return the largest |error| of each cell of the middle slice, and the values in its middle,
    read cell by cell; and the lengths of a cell."""
    shape = second.shape
    axes = list(axes)
    if not axes:  # A single value.
        one, other = np.asarray(first[...]), np.asarray(second[...])
        errors = np.abs(_errors(one, other, fill, relative))
        return errors.reshape(-1), (_shown(one, fill), _shown(other, fill)), []
    room = [_LINE_CELLS] if len(axes) == 1 else list(_MAP_CELLS)
    steps = [-(-shape[axis] // cells) for axis, cells in zip(axes, room)]
    found: Numbers = np.full([-(-shape[axis] // step) for axis, step in zip(axes, steps)], np.nan)
    values = found.copy(), found.copy()
    # Boxes of whole cells.
    for box in boxes([shape[axis] for axis in axes], steps, np.dtype(second.dtype).itemsize):
        key = list(middle)
        for axis, part in zip(axes, box):
            key[axis] = part
        extents = [part.stop - part.start for part in box]
        pair = [np.asarray(side[tuple(key)]).reshape(extents) for side in (first, second)]
        errors = np.abs(_errors(pair[0], pair[1], fill, relative))
        for axis, step in enumerate(steps):
            errors = np.fmax.reduceat(errors, np.arange(0, errors.shape[axis], step), axis=axis)
        cells = tuple(slice(part.start // step, part.start // step + n)
                      for part, step, n in zip(box, steps, errors.shape))
        found[cells] = errors
        middles = np.ix_(*[np.minimum(np.arange(0, n, step) + step // 2, n - 1)
                           for n, step in zip(extents, steps)])
        for side, into in zip(pair, values):
            into[cells] = _shown(side[middles], fill)
    return found, values, steps


def _shown(values: Values, fill: Any) -> Numbers:
    """Return values for a map; NaN: not a number, or fill."""
    return np.where(counted(values, fill), values.astype(np.float64), np.nan)


def _spectra_of(first: Any, second: Any, fill: Any, axes: Sequence[int], middle: Sequence[slice],
                names: Sequence[str]) -> tuple[Effects, Shells, Numbers, str]:
    """Return gradients and spectra of a box in the middle that fits into memory: of all maps if
    possible, else of as many as fit, else of a part of one map."""
    shape = second.shape
    extents = {axis: shape[axis] for axis in axes}
    while math.prod(extents.values()) > _SPECTRUM_VALUES:
        longest = max(extents, key=lambda axis: extents[axis])
        extents[longest] = (extents[longest] + 1) // 2
    for axis in reversed([at for at in range(len(shape)) if at not in axes]):
        room = _SPECTRUM_VALUES // math.prod(extents.values())
        extents[axis] = min(shape[axis], max(1, room))
    key = list(middle)
    for axis, n in extents.items():
        start = (shape[axis] - n) // 2
        key[axis] = slice(start, start + n)
    one, other = np.asarray(first[tuple(key)]), np.asarray(second[tuple(key)])
    shells = Shells([extents[axis] for axis in axes])
    near = Effects(tuple(axes), fill, shells)
    near.add(one, other)
    difference = near.power_of_errors(one, other)
    parts = [f"{name} {part.start}" + (f" to {part.stop - 1}" if part.stop - part.start > 1 else "")
             for name, part, n in zip(names, key, shape) if n > 1]
    whole = all(part.stop - part.start == n for part, n in zip(key, shape))
    return near, shells, difference, "all values" if whole else f"the box {', '.join(parts)}"

