"""suggest_bound: effects of error bounds on a field, and the sizes, as a table and as a plot.

Every row is measured: the codec encodes the values into a temporary file, and the decoded values
are compared. Of a large array a sample of whole chunks is measured; sizes and effects are then
those of the sample.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Optional, Union, overload

import numpy as np

from ._bound_width import BELOW_SHARE_MAX
from ._engine_loader import engine
from ._errors import ArgumentError
from ._file import File
from ._keywords import CODECS, given, with_hints
from ._measures import (
    SHELL_CHANGE_MAX,
    Axes,
    Effects,
    Numbers,
    Shells,
    Values,
    as_stored,
    axes_text,
    bytes_text,
    fill_among,
    percent_text,
    ratio_text,
    shape_text,
    share,
    space_axes,
)
from ._printable import html_text, printable
from ._settings import as_number
from ._tools import info

Bounds = Union[float, Sequence[float], None]

#: Default limits of BoundTable.suggest().
_LIMITS = {"mean": 1e-3, "std": 1e-2, "gradient": 0.05, "spectrum": 0.5}
_REL_DEFAULT = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
SAMPLE_BYTES = 32 << 20
_CHUNK_BYTES = 1 << 20
_PASS_BYTES = 32 << 20


@dataclass(frozen=True)
class BoundEffect:
    """Effects of one bound on a field, all measured on the decoded values."""

    bound: str  #: Bound as requested, "rel=0.001".
    absolute_bound: Optional[float]  #: Unit of the values; None: pointwise (pw_rel).
    raw_bytes: int  #: Size of the values that were encoded.
    encoded_bytes: int  #: Size of their encoded chunks.
    max_error: float  #: Largest difference, unit of the values.
    psnr_db: Optional[float]  #: None: exactly equal.
    mean_change: float  #: Change of the mean, unit of the values.
    mean_shift: float  #: Change of the mean, as a share of the standard deviation.
    std_change: float  #: Change of the standard deviation, as a share of it.
    gradient_error: float  #: RMS error of differences of neighbours, as a share of their RMS.
    spectrum_kept: float  #: Share of the wave numbers up to which power is within 5 %.
    below: float  #: Share of the nonzero values that are smaller than the absolute bound.
    power: Numbers = field(repr=False, compare=False)  #: Per shell of BoundTable.wave_numbers.

    @property
    def ratio(self) -> float:
        return self.raw_bytes / self.encoded_bytes if self.encoded_bytes else math.inf


class BoundTable(Sequence[BoundEffect]):
    """Result of suggest_bound(): a sequence of rows; prints as a table, and has plot()."""

    def __init__(self, rows: Sequence[BoundEffect], about: dict[str, Any]) -> None:
        self._rows = tuple(rows)
        self.name: str = about["name"]
        self.shape: tuple[int, ...] = about["shape"]
        self.dtype: np.dtype[Any] = about["dtype"]
        self.codec: str = about["codec"]
        self.units: str = about["units"]
        #: Encoded values: all, or a description of the sample of chunks.
        self.sample: str = about["sample"]
        #: Number of compared values, and of NaN, infinities and fill values, which stay as they
        #: are.
        self.n_values: int = about["n_values"]
        self.n_special: int = about["n_special"]
        self.mean: float = about["mean"]
        self.std: float = about["std"]
        self.range: tuple[float, float] = about["range"]
        #: An extreme that must be an undeclared fill value, by the rule that refuses such a field
        #: under rel= and psnr= when it is written. None: no such value.
        self.unnamed_fill: Optional[float] = about["unnamed_fill"]
        #: Fill value that was left out: given, or the data's; None: none.
        self.fill_value: Any = about["fill_value"]
        #: Dimensions along which gradients and spectra run.
        self.axes: tuple[int, ...] = about["axes"]
        self.dims: tuple[str, ...] = tuple(about["dims"])  #: Their names; () if they have none.
        #: Middles of the shells of the spectra, in cycles per grid spacing (at most 0.5).
        self.wave_numbers: Numbers = about["wave_numbers"]
        #: Power of the original in each shell; rows have that of the decoded values.
        self.power: Numbers = about["power"]

    @overload
    def __getitem__(self, key: int) -> BoundEffect: ...

    @overload
    def __getitem__(self, key: slice) -> Sequence[BoundEffect]: ...

    def __getitem__(self, key: Union[int, slice]) -> Union[BoundEffect, Sequence[BoundEffect]]:
        return self._rows[key]

    def __len__(self) -> int:
        return len(self._rows)

    def suggest(self, *, mean: float = 1e-3, std: float = 1e-2, gradient: float = 0.05,
                spectrum: float = 0.5) -> BoundEffect:
        """Return the row of the greatest ratio among those within these limits.

        mean: its change in standard deviations; std: its change as a share; gradient: RMS error as
        a share. spectrum: share of the wave numbers up to which power must be within 5 %. Never a
        bound that more than a quarter of the values are smaller than.
        @error ArgumentError  no row is within the limits; it names the nearest row and its misses.
        """
        limits = {"mean": mean, "std": std, "gradient": gradient, "spectrum": spectrum}
        found = None if self.unnamed_fill is not None else self._fitting(**limits)
        if found is None:
            raise ArgumentError(self._why_none(limits))
        return found

    def _fitting(self, **limits: float) -> Optional[BoundEffect]:
        good = [row for row in self._rows if not _misses(row, {**_LIMITS, **limits})]
        return max(good, key=lambda row: row.ratio, default=None)

    def _why_none(self, limits: dict[str, float]) -> str:
        """Say which row comes nearest to the limits, and what to try."""
        if self.unnamed_fill is not None:
            return printable(f"{self.name}: {unnamed_fill_text(self.unnamed_fill)}; no bound is "
                             "suggested")
        nearest = min(self._rows, key=lambda row: (_excess(_misses(row, limits), limits),
                                                   -row.ratio))
        misses = _misses(nearest, limits)
        finest = min(self._rows, key=lambda row: row.max_error)
        mode, _, number = finest.bound.partition("=")
        finer = f"{float(number) + 20:g}" if mode == "psnr" else f"{float(number) / 10:g}"
        looser = [f"{name}={_rounded_up(miss):g}" for name, miss in misses.items()
                  if name != "spectrum" and math.isfinite(miss) and name in limits]
        more = f", or greater limits: suggest({', '.join(looser)})" if looser else ""
        said = "; ".join(_miss_text(name, value, limits, self.fill_value is None)
                         for name, value in misses.items())
        return printable(f"{self.name}: none of the bounds {self._rows[0].bound} to "
                         f"{self._rows[-1].bound} is within the limits. The nearest is "
                         f"{nearest.bound}: {said}. Try smaller bounds: suggest_bound(..., "
                         f"{mode}={finer}){more}")

    # --- for people -------------------------------------------------------------------------------

    def _head(self) -> list[str]:
        unit = f" {printable(self.units)}" if self.units else ""
        lines = [f"{printable(self.name)}: {self.dtype} {shape_text(self.shape)}, codec "
                 f"{self.codec}; {self.sample}",
                 f"mean {self.mean:.4g}{unit}, standard deviation {self.std:.4g}{unit}, from "
                 f"{self.range[0]:.4g} to {self.range[1]:.4g}{unit}"]
        if self.n_special:
            lines.append(f"{self.n_special:,} values are NaN, infinite or fill: stored exactly, "
                         "and left out here")
        if self.unnamed_fill is not None:
            lines.append(unnamed_fill_text(self.unnamed_fill))
        return lines

    def _foot(self) -> list[str]:
        found = self._fitting()
        lines = ["mean: its change in standard deviations; grad.: RMS error of differences; spec.:",
                 f"wave numbers up to which power is within {100 * SHELL_CHANGE_MAX:.0f} %; both",
                 *_folded(f"along {printable(axes_text(self.axes, self.dims))}")]
        if self.unnamed_fill is not None:
            return lines
        great = [row.bound for row in self._rows if row.below > BELOW_SHARE_MAX]
        if great:
            lines += [f"more than a quarter of the values are smaller than the bound {great[-1]}"]
            if self.fill_value is None:
                lines += ["if the field has a fill value, pass it as fill_value="]
        if found is None:
            return [*lines, "suggested: none of these; try smaller bounds"]
        return [*lines, f"suggested: {found.bound}, the greatest ratio with mean within 0.1 %, std "
                        "1 %,", "gradients 5 %, and half of the spectrum kept"]

    def _cells(self) -> Iterator[tuple[str, ...]]:
        for row in self._rows:
            yield (row.bound, bytes_text(row.encoded_bytes), ratio_text(row.ratio),
                   f"{row.max_error:.2e}", percent_text(row.mean_shift, sign=True),
                   percent_text(row.std_change, sign=True), percent_text(row.gradient_error),
                   percent_text(row.spectrum_kept))

    def __str__(self) -> str:
        rows = [_COLUMNS, *self._cells()]
        widths = [max(len(row[at]) for row in rows) for at in range(len(_COLUMNS))]
        gap = "  " if sum(widths) + 2 * len(widths) - 2 <= _WIDTH else " "
        lines = [gap.join(text.ljust(width) if at == 0 else text.rjust(width)
                          for at, (text, width) in enumerate(zip(row, widths)))
                 for row in rows]
        head = (line for text in self._head() for line in _folded(text))
        return "\n".join([*head, "", *lines, "", *self._foot()])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        found = self._fitting()
        head = "".join(f"<th>{html_text(name)}</th>" for name in _COLUMNS)
        body = ""
        for row, cells in zip(self._rows, self._cells()):
            bold = row is found and self.unnamed_fill is None
            style = ' style="font-weight:bold"' if bold else ""
            body += f"<tr{style}>{''.join(f'<td>{html_text(cell)}</td>' for cell in cells)}</tr>"
        lines = "<br>".join(map(html_text, self._head()))
        return (f"<div>{lines}<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
                f"<small>{'<br>'.join(map(html_text, self._foot()))}</small></div>")

    def plot(self) -> Any:
        """Draw ratio, changes and spectra in one figure. @returns its three matplotlib Axes.

        @error ImportError  matplotlib is not installed.
        """
        from ._figures import plot_bounds
        return plot_bounds(self)


def unnamed_fill_text(value: float) -> str:
    return (f"{value:g} seems to be an undeclared fill value: pass fill_value={value:g}, since it "
            "distorts these numbers")


def _misses(row: BoundEffect, limits: dict[str, float]) -> dict[str, float]:
    """Return the effects of a row that are beyond these limits, by name."""
    found = {"mean": abs(row.mean_shift), "std": abs(row.std_change),
             "gradient": row.gradient_error}
    misses = {name: value for name, value in found.items() if not value <= limits[name]}
    if not row.spectrum_kept >= limits["spectrum"]:
        misses["spectrum"] = row.spectrum_kept
    if row.below > BELOW_SHARE_MAX:
        misses["below"] = row.below
    return misses


def _excess(misses: dict[str, float], limits: dict[str, float]) -> float:
    """Return the largest factor by which an effect is beyond its limit."""
    limits = {**limits, "below": BELOW_SHARE_MAX}
    return max((share(limits[name], value) if name == "spectrum" else share(value, limits[name])
                for name, value in misses.items()), default=0.0)


def _miss_text(name: str, value: float, limits: dict[str, float], ask_for_fill: bool) -> str:
    if name == "below":
        return (f"it exceeds {percent_text(value)} % of the values"
                + (" (pass a fill value that the field has as fill_value=)" if ask_for_fill
                   else ""))
    verb, least = ("keeps", "at least ") if name == "spectrum" else ("changes by", "at most ")
    return (f"{name} {verb} {percent_text(value)} %, must be {least}"
            f"{percent_text(limits[name])} %")


def _rounded_up(value: float) -> float:
    """Round up to two digits.

    >>> _rounded_up(0.01234), _rounded_up(0.05)
    (0.013, 0.05)
    """
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return float(f"{math.ceil(value / unit - 1e-9) * unit:.3g}")


_COLUMNS = ("bound", "size", "ratio", "max error", "mean %", "std %", "grad. %", "spec. %")


_WIDTH = 80


def _folded(text: str, width: int = _WIDTH) -> Iterator[str]:
    """Split a long line into several."""
    while len(text) > width and " " in text[:width].strip():
        at = text.rindex(" ", 0, width + 1)
        yield text[:at]
        text = "  " + text[at + 1:]
    yield text


class BoundTables(dict[str, BoundTable]):
    """Tables of the variables of a dataset by name."""

    def __init__(self, tables: Iterable[tuple[str, BoundTable]] = (),
                 fills: Optional[dict[str, dict[str, Any]]] = None) -> None:
        super().__init__(tables)
        self.fills = fills or {}  #: Fill values of the source's encoding, by variable.

    def encoding(self, *, mean: float = 1e-3, std: float = 1e-2, gradient: float = 0.05,
                 spectrum: float = 0.5) -> dict[str, dict[str, Any]]:
        """Return the argument encoding= of to_netcdf() with each table's suggest() and codec, and
        the source's fill value. The limits are those of suggest().
        @error ArgumentError  no bound of a variable is within them."""
        return {name: {"bound": table.suggest(mean=mean, std=std, gradient=gradient,
                                              spectrum=spectrum).bound, "codec": table.codec,
                       **self.fills.get(name, {})}
                for name, table in self.items()}

    def __repr__(self) -> str:
        return "\n\n".join(map(str, self.values()))

    __str__ = __repr__

    def _repr_html_(self) -> str:
        return "".join(table._repr_html_() for table in self.values())


def suggest_bounds(dataset: Any, **how: Any) -> BoundTables:
    """Return suggest_bound() of each data variable that bounds apply to."""
    return BoundTables(((name, suggest_bound(array, **how)) for name, array in fields_of(dataset)),
                       fills_of(dataset))


def fields_of(dataset: Any) -> Iterator[tuple[str, Any]]:
    """Yield the data variables of xarray's dataset that a bound for all variables applies to, by
    name: float32 or float64, with values, not packed, and neither bounds of cells nor masks, ids or
    other roles that stay exact (docs/repack.md)."""
    bounds = {found.get(key) for one in dataset.variables.values()
              for found in (one.attrs, one.encoding) for key in ("bounds", "climatology")}
    names = list(dataset.variables)
    facts = [(str(name), _stated({**one.attrs, **one.encoding}), list(one.shape),
              one.dtype.kind == "f", name in dataset.coords or name in bounds)
             for name, one in dataset.variables.items()]
    roles = dict(zip(names, engine().roles(_stated(dataset.attrs), facts)))
    for name, array in dataset.data_vars.items():
        numbers = array.dtype.kind == "f" and array.dtype.itemsize in (4, 8)
        if (numbers and array.ndim and array.size and name not in bounds
                and roles[name] == "value" and not _is_packed(array)):
            yield str(name), array


def _is_packed(array: Any) -> bool:
    stored = array.encoding.get("dtype", array.dtype)
    return (any(key in found for key in ("scale_factor", "add_offset")
                for found in (array.attrs, array.encoding))
            or (stored is not str and np.dtype(stored).kind in "iu"))


def _stated(attributes: Any) -> list[tuple[str, list[str], list[float]]]:
    """Return the attributes that are texts or numbers: name, texts, numbers."""
    found: list[tuple[str, list[str], list[float]]] = []
    for name, value in attributes.items():
        if isinstance(value, (str, int, float, np.number, np.ndarray, list, tuple)):
            one = np.atleast_1d(np.asarray(value)).ravel()
            if one.dtype.kind == "U":
                found.append((str(name), [str(text) for text in one], []))
            elif one.dtype.kind in "iuf":
                found.append((str(name), [], [float(number) for number in one]))
    return found


def fills_of(dataset: Any) -> dict[str, dict[str, Any]]:
    """Return the fill value that the encoding of each data variable states, `_FillValue` before
    `missing_value`: xarray accepts only one. An argument encoding= replaces that encoding."""
    stated: dict[str, dict[str, Any]] = {}
    for name, array in dataset.data_vars.items():
        keys = [key for key in ("_FillValue", "missing_value") if key in array.encoding]
        stated[str(name)] = {key: array.encoding[key] for key in keys[:1]}
    return stated


@with_hints
def suggest_bound(
    data: Any, *, abs: Bounds = None, rel: Bounds = None, pw_rel: Bounds = None,
    psnr: Bounds = None, codec: str = "trz", chunks: Optional[Sequence[int]] = None,
    fill_value: Any = None, axes: Axes = None,
    sample_bytes: int = SAMPLE_BYTES, preset: Optional[str] = None,
    predictor: Optional[str] = None, dimension: Optional[int] = None,
    spline: Optional[str] = None, last_axis: Union[int, str, None] = None,
    lossless: Optional[bool] = None, coarse: Optional[int] = None,
    refine: Optional[int] = None, book: Optional[str] = None, level: Optional[int] = None,
    shuffle: Optional[bool] = None, engine: Optional[str] = None,
    checksum: Optional[bool] = None, rate: Optional[float] = None,
    precision: Optional[int] = None, reversible: Optional[bool] = None,
    block: Optional[int] = None, inner: Optional[str] = None, swap: Optional[bool] = None,
    missing: Optional[str] = None, cd: Optional[str] = None,
    guard: Optional[str] = None,
) -> BoundTable:
    """Encode a field within several bounds, and report the effects and the size of each.

    data: float32 or float64 of any shape, a NumPy array, a variable of a file (tailrace, h5py,
    netCDF4), or an array of xarray or dask. abs, rel, pw_rel, psnr: a bound, or several; default:
    rel of 0.1 to 1e-6. codec, with its settings as keywords, and chunks: see create_variable().
    fill_value: kept exactly and excluded from all numbers, like NaN and infinities. Default: the
    data's _FillValue or missing_value, and the masked values of a masked array. axes: dimensions
    along which gradients and spectra run, by number or name, by default the last
    two that are longer than 1.

    An array of more than sample_bytes is measured on randomly chosen whole chunks of about that
    many bytes, always the same ones. The table says so, and sizes are those of the sample. rel and
    psnr are still relative to the range of all values, which takes one pass over them.
    @error TypeError  integers and other types that are stored exactly.
    @error ValueError  no values, or an invalid bound.

    >>> import numpy as np
    >>> u = np.sin(np.linspace(0, 60, 4096)).reshape(64, 64)

    >>> table = suggest_bound(u, abs=[1e-2, 1e-4])
    >>> [row.bound for row in table], table[0].ratio > table[1].ratio > 2
    (['abs=0.01', 'abs=0.0001'], True)
    >>> table[0].max_error <= 1e-2
    True
    """
    settings = given(locals(), CODECS, ("guard",))
    if isinstance(data, np.ma.MaskedArray):
        fill_value = data.fill_value if fill_value is None else fill_value
        data = data.filled(fill_value)
    elif not hasattr(data, "shape") or not hasattr(data, "dtype"):
        data = np.asarray(data)
    bounds = _bounds_of(abs, rel, pw_rel, psnr)
    with as_stored(data) as attrs:
        name, units = name_of(data, attrs)
        check_type(name, data)
        if fill_value is None:
            fill_value = fill_among(attrs)
        if fill_value is None:
            fill_value = getattr(data, "fillvalue", None) or None  # h5py's default is 0.
        try:
            dims = [str(dim) for dim in getattr(data, "dims", ())]
            along = space_axes(data.shape, axes, dims)
        except ValueError as failure:
            raise ArgumentError(f"{name}: {failure}") from None
        sample = sample_of(name, data, chunks, sample_bytes)
        rows, about = _measure(name, data, sample, bounds, fill_value, along, codec, settings)
    return BoundTable(rows, {**about, "name": name, "units": units, "codec": codec, "axes": along,
                             "dims": dims, "fill_value": fill_value,
                             "shape": tuple(data.shape), "dtype": np.dtype(data.dtype),
                             "sample": sample.words})


def name_of(data: Any, attrs: Any) -> tuple[str, str]:
    name = getattr(data, "name", None)
    if not isinstance(name, str) or not name or hasattr(data, "dask"):
        name = "data"
    units = attrs.get("units", "") if hasattr(attrs, "get") else ""
    if isinstance(units, bytes):
        units = units.decode(errors="replace")
    return name.rpartition("/")[2] or name, units if isinstance(units, str) else ""


def check_type(name: str, data: Any) -> None:
    dtype = np.dtype(data.dtype)
    if dtype.kind in "iub":
        raise TypeError(f"{name} holds {dtype}, which is always stored exactly: bounds apply to "
                        "float32 and float64. For packed values, give the unpacked ones")
    if dtype.kind != "f" or dtype.itemsize not in (4, 8):
        raise TypeError(f"{name} holds {dtype}; bounds apply to float32 and float64")
    if len(data.shape) == 0:
        raise ArgumentError(f"{name} is a single value; bounds apply to arrays")
    if math.prod(data.shape) == 0:
        raise ArgumentError(f"{name} has shape {shape_text(data.shape)} and no values")


def _bounds_of(abs_: Bounds, rel: Bounds, pw_rel: Bounds, psnr: Bounds) -> list[tuple[str, float]]:
    found: list[tuple[str, float]] = []
    for mode, given in (("abs", abs_), ("rel", rel), ("pw_rel", pw_rel), ("psnr", psnr)):
        if given is None:
            continue
        if isinstance(given, str):
            raise TypeError(f"{mode} is {given!r:.60}, must be a number or several")
        for value in given if hasattr(given, "__iter__") else [given]:
            number = as_number(mode, value)
            if not (number > 0 and math.isfinite(number)):
                raise ArgumentError(f"{mode} is {value!r}, must be > 0 and finite")
            if mode in ("rel", "pw_rel") and number >= 1:
                raise ArgumentError(f"{mode} is {value!r}, must be < 1")
            found.append((mode, number))
    return found or [("rel", value) for value in _REL_DEFAULT]


# --- choice of the encoded values -----------------------------------------------------------------


@dataclass(frozen=True)
class _Sample:
    """Boxes of one shape: the complete array, or some of its chunks."""

    starts: list[tuple[int, ...]]
    extents: tuple[int, ...]
    chunks: Optional[tuple[int, ...]]  # Chunk shape of the boxes; None: the engine chooses.
    words: str
    whole: bool

    def blocks(self, data: Any) -> Iterator[Values]:
        for start in self.starts:
            key = tuple(slice(at, at + n) for at, n in zip(start, self.extents))
            yield _native(data[key])


def _native(values: Any) -> Values:
    found: Values = np.asarray(values)
    return np.ascontiguousarray(found, found.dtype.newbyteorder("="))


def sample_of(name: str, data: Any, chunks: Optional[Sequence[int]],
               sample_bytes: int) -> _Sample:
    shape = tuple(int(n) for n in data.shape)
    item_bytes = np.dtype(data.dtype).itemsize
    raw_bytes = math.prod(shape) * item_bytes
    if isinstance(sample_bytes, bool) or not isinstance(sample_bytes, (int, np.integer)):
        raise TypeError(f"sample_bytes is {sample_bytes!r}, must be a whole number")
    if sample_bytes < 1:
        raise ArgumentError(f"sample_bytes is {sample_bytes}, must be >= 1")
    given = None
    if chunks is not None:
        if len(chunks) != len(shape) or any(n < 1 for n in chunks):
            raise ArgumentError(f"{name}: chunks are {tuple(chunks)!r}, must be {len(shape)} "
                                "numbers >= 1")
        given = tuple(min(int(n), length) for n, length in zip(chunks, shape))
    if raw_bytes <= sample_bytes:
        return _Sample([(0,) * len(shape)], shape, given,
                       f"all {math.prod(shape):,} values ({bytes_text(raw_bytes)})", True)
    extents = given or _chunks_of(data, shape, item_bytes)
    grid = tuple(length // n for length, n in zip(shape, extents))
    n_chunks = math.prod(grid)
    n_chosen = min(n_chunks, max(1, sample_bytes // (math.prod(extents) * item_bytes)))
    # Reproducible: the same array always gives the same table.
    chosen = np.sort(np.random.default_rng(0).choice(n_chunks, n_chosen, replace=False))
    starts = [tuple(int(at) * n for at, n in zip(np.unravel_index(index, grid), extents))
              for index in chosen]
    n_bytes = n_chosen * math.prod(extents) * item_bytes
    return _Sample(starts, extents, extents,
                   f"a sample of {n_chosen:,} of {n_chunks:,} chunks of {shape_text(extents)} "
                   f"({bytes_text(n_bytes)} of {bytes_text(raw_bytes)})", False)


def _chunks_of(data: Any, shape: tuple[int, ...], item_bytes: int) -> tuple[int, ...]:
    """Return the chunk shape that the data has in its file, else boxes of about 1 MiB."""
    own = getattr(data, "chunks", None)
    if (isinstance(own, tuple) and len(own) == len(shape)
            and all(isinstance(n, (int, np.integer)) for n in own)):
        return tuple(min(int(n), length) for n, length in zip(own, shape))
    extents = list(shape)
    while math.prod(extents) * item_bytes > _CHUNK_BYTES:
        longest = extents.index(max(extents))
        extents[longest] = (extents[longest] + 1) // 2
    return tuple(extents)


def scan_of(name: str, data: Any, fill_value: Any, blocks: Optional[Sequence[Values]]) -> Any:
    """Scan the values of the blocks, or all values in one pass, by the engine."""
    dtype = np.dtype(data.dtype)
    fill = None if fill_value is None else as_number(f"{name}: fill_value", fill_value)
    scan = engine().RangeScan(dtype.itemsize == 4, fill)
    if blocks is None:
        row_bytes = max(1, math.prod(data.shape[1:]) * dtype.itemsize)
        n_rows = max(1, _PASS_BYTES // row_bytes)
        parts: Iterable[Values] = (_native(data[start:start + n_rows])
                                   for start in range(0, data.shape[0], n_rows))
    else:
        parts = blocks
    for values in parts:
        scan.add(values.reshape(-1).view(np.uint8))
    return scan


# --- measuring ------------------------------------------------------------------------------------


def _measure(
    name: str, data: Any, sample: _Sample, bounds: list[tuple[str, float]], fill_value: Any,
    axes: tuple[int, ...], codec: str, settings: dict[str, Any],
) -> tuple[list[BoundEffect], dict[str, Any]]:
    shells = Shells([sample.extents[axis] for axis in axes])
    blocks = list(sample.blocks(data))
    of_range = not sample.whole and any(mode in ("rel", "psnr") for mode, _ in bounds)
    scan = scan_of(name, data, fill_value, None if of_range else blocks)
    of_all: Optional[tuple[float, float]] = scan.range() if of_range else None
    rows: list[BoundEffect] = []
    effects = Effects(axes, fill_value, shells)
    folder = tempfile.mkdtemp(prefix="tailrace_suggest_")
    try:
        for mode, value in bounds:
            path = os.path.join(folder, "values.nc")
            requested = _as_stored(mode, value, of_all)
            absolute, n_bytes = _store(path, name, blocks, sample, requested, fill_value, codec,
                                       settings)
            effects = Effects(axes, fill_value, shells, absolute or 0.0)
            with File(path) as file:
                variable, = file.variables.values()
                for at, block in enumerate(blocks):
                    n = len(block)
                    effects.add(block, variable[at * n:(at + 1) * n])
            os.remove(path)
            rows.append(BoundEffect(
                f"{mode}={value:g}", absolute, sum(block.nbytes for block in blocks), n_bytes,
                effects.max_error, effects.psnr_db, effects.mean_change,
                effects.mean_shift, effects.std_change,
                effects.gradient_error, effects.spectrum_kept, effects.below,
                effects.power_decoded))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    n_all = sum(block.size for block in blocks)
    return rows, {"n_values": effects.n, "n_special": n_all - effects.n, "mean": effects.mean,
                  "std": effects.std, "range": of_all or effects.range,
                  "unnamed_fill": scan.undeclared_fill(),
                  "wave_numbers": shells.wave_numbers, "power": effects.power}


def _as_stored(mode: str, value: float, of_all: Optional[tuple[float, float]]
               ) -> tuple[str, float]:
    """Return the bound for the sample. A bound relative to the range of all values becomes
    absolute, like in the engine (docs/codecs.md)."""
    if of_all is None or mode not in ("rel", "psnr"):
        return mode, value
    span = of_all[1] - of_all[0]
    return "abs", span * (value if mode == "rel" else 10.0 ** (-value / 20))


def _store(path: str, name: str, blocks: list[Values], sample: _Sample,
           requested: tuple[str, float], fill_value: Any, codec: str,
           settings: dict[str, Any]) -> tuple[Optional[float], int]:
    """Encode all blocks, consecutively along the first dimension, each in separate chunks. @returns
    the absolute bound and the bytes of the chunks."""
    mode, value = requested
    bounds: dict[str, Any] = {mode: value} if value > 0 else {}
    bounds["allow_wide_bound"] = True  # the table states which bounds are wide
    extents = sample.extents
    dims = tuple(f"dim_{at}" for at in range(len(extents)))
    with warnings.catch_warnings(), File(path, "w") as file:
        warnings.simplefilter("ignore", RuntimeWarning)
        for dim, n in zip(dims, (len(blocks) * extents[0], *extents[1:])):
            file.create_dimension(dim, n)
        # HDF5 allows names that netCDF-4 does not.
        name = re.sub(r"^\W|[^\w.+ -]", "_", name)
        variable = file.create_variable(name, dims, blocks[0].dtype, codec=codec,
                                        chunks=sample.chunks, fill_value=fill_value, **bounds,
                                        **settings)
        file._may_need_filters = False  # only this function reads this file
        for at, block in enumerate(blocks):
            variable[at * len(block):(at + 1) * len(block)] = block
    stored = info(path)["fields"][0]
    absolute = None if stored["bound_mode"] == "pw_rel" else float(stored["absolute_bound"])
    return absolute, int(stored["stored_bytes"])
