"""Parameters of the codec as an HDF5 filter's client data (cd_values), and its use in h5py."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from typing import Any, Optional, Union

import numpy as np
import numpy.typing as npt

from . import _native, _plugins
from ._bound_width import check_bound_width
from ._errors import ArgumentError, text_of
from ._filter_reference import FilterReference
from ._keywords import TRZ, given, with_hints

#: The engine's options of two words have a hyphen, settings of codecs an underscore.
_HYPHENATED = {key.replace("-", "_"): key for key in (
    "allow-wide-bound", "earlier-loss", "follow-external", "plugin-path", "spill-folder")}
#: Enough for all settings together with a book.
_WORDS_MAX = 8192


def counted_values(array: Any, fill: Optional[float] = None) -> npt.NDArray[Any]:
    """Return the finite values that are not fill."""
    values = np.asarray(array).ravel()
    if fill is not None:
        values = values[values != np.asarray(fill).astype(values.dtype)]
    # Most arrays are finite, and then two passes over them suffice.
    if values.dtype.kind == "f" and not np.isfinite(values.sum(dtype="f8")):
        values = values[np.isfinite(values)]
    return values


def value_range(array: Any, fill: Optional[float] = None) -> tuple[float, float]:
    """Return the least and greatest of the finite values that are not fill; (0, 0) if no value
    is."""
    values = counted_values(array, fill)
    if values.size == 0:
        return 0.0, 0.0
    return float(values.min()), float(values.max())


def bound_text(
    abs: Optional[float], rel: Optional[float], pw_rel: Optional[float], psnr: Optional[float],
    data: Any, fill: Optional[float], allow_wide_bound: bool = False,
) -> str:
    """Return the one given bound in the codec's syntax: absolute, pointwise or none."""
    modes = {"abs": abs, "rel": rel, "pw_rel": pw_rel, "psnr": psnr}
    given = {key: value for key, value in modes.items() if value is not None}
    if not given:
        return ""
    if len(given) > 1:
        raise _native.TrzError(f"trz: give one bound, not {' and '.join(given)}")
    (mode, value), = given.items()
    value = as_number(mode, value)
    if mode in ("abs", "pw_rel"):
        return f"{mode}={value!r}"
    if not (value > 0 and math.isfinite(value)):
        raise _native.TrzError(f"trz: {mode} must be finite and > 0, got {value!r}")
    if mode == "rel" and value >= 1:
        raise _native.TrzError(f"trz: rel must be < 1, got {value!r}; with 1 or more, every value "
                               "may become any other")
    if data is None:
        raise _native.TrzError(
            f"trz: {mode} is relative to the range of the field, which a filter does not see; "
            "give the array too (data=), or give abs"
        )
    values = counted_values(data, fill)
    least, greatest = value_range(values)
    bound = (greatest - least) * (value if mode == "rel" else 10.0 ** (-value / 20.0))
    refused = check_bound_width(f"{mode}={value:g}", values, bound, allow_wide_bound)
    if refused:
        raise _native.TrzError(f"trz: {refused}")
    return f"abs={bound!r}" if bound > 0 and math.isfinite(bound) else ""


@with_hints
def cd_values(
    *, abs: Optional[float] = None, rel: Optional[float] = None, pw_rel: Optional[float] = None,
    psnr: Optional[float] = None, data: Any = None, fill: Optional[float] = None,
    book: Optional[bytes] = None, allow_wide_bound: bool = False, preset: Optional[str] = None,
    predictor: Optional[str] = None, dimension: Optional[int] = None, spline: Optional[str] = None,
    last_axis: Union[int, str, None] = None, lossless: Optional[bool] = None,
    coarse: Optional[int] = None, refine: Optional[int] = None,
) -> tuple[int, ...]:
    """Return the filter's client data for one of the bounds (none: exact) and the codec's settings.

    abs: the largest change of any value. pw_rel: the largest change as a fraction of the value.
    rel, psnr: relative to the range of `data`, without `fill`. Data with an extreme that must be an
    undeclared fill value are refused, unless allow_wide_bound is set. book: shared Huffman codes
    from train_book(), stored in the client data.
    Settings: preset ("default", "fast", "ratio", "max"); predictor ("auto", "none", "lorenzo",
    "interpolation"); dimension (1 to 4); spline ("linear", "cubic", "natural"); last_axis (0 to 2,
    or "joint"); lossless (True, False); coarse (0 to 3 coarser views at each chunk's beginning);
    refine (0 to 8 bit planes at its end).

    >>> cd_values(abs=0.5, preset="fast")
    (257, 1, 0, 1071644672)
    """
    settings = given(locals(), TRZ)
    parts = [bound_text(abs, rel, pw_rel, psnr, data, fill, allow_wide_bound)]
    for key, value in settings.items():
        word = {True: "on", False: "off"}[value] if isinstance(value, bool) else value
        if key not in ("coarse", "refine") or value != 0:
            parts.append(f"{key}={word}")
    text = ",".join(part for part in parts if part)
    words = (ctypes.c_uint32 * _WORDS_MAX)()
    n_words = _native.call("trz_cd_values", text.encode(), _native.book_argument(book), words,
                           _WORDS_MAX)
    return tuple(words[:n_words])


class Trz(FilterReference):
    """The filter for h5py's create_dataset, as keywords or as `compression`.

    Accepts the arguments of cd_values(); the fill value is the dataset's (`fillvalue=`).

    >>> dict(Trz(abs=0.5))
    {'compression': 481, 'compression_opts': (257, 0, 0, 1071644672)}
    """

    filter_id = _native.FILTER_ID

    @with_hints
    def __init__(
        self, *, abs: Optional[float] = None, rel: Optional[float] = None,
        pw_rel: Optional[float] = None, psnr: Optional[float] = None, data: Any = None,
        fill: Optional[float] = None, book: Optional[bytes] = None,
        allow_wide_bound: bool = False,
        preset: Optional[str] = None, predictor: Optional[str] = None,
        dimension: Optional[int] = None, spline: Optional[str] = None,
        last_axis: Union[int, str, None] = None, lossless: Optional[bool] = None,
        coarse: Optional[int] = None, refine: Optional[int] = None,
    ) -> None:
        self.filter_options = cd_values(
            abs=abs, rel=rel, pw_rel=pw_rel, psnr=psnr, data=data, fill=fill, book=book,
            allow_wide_bound=allow_wide_bound, **given(locals(), TRZ))


def register() -> bool:
    """Register the filter trz with all HDF5s of this process. Imports h5py; returns False without
    it.

    Most users leave this alone: importing this package does it, and importing h5py, netCDF4 or
    PyTables repeats it. Call it after importing another package that contains an HDF5.
    """
    _plugins.import_h5py()
    return serve()


def serve() -> bool:
    """Register without importing h5py."""
    if not _plugins.register([_native.library]):
        return False
    import h5py
    h5py.filters.FilterRefBase.register(Trz)
    return True


def as_number(mode: str, value: Any) -> float:
    """Return the value of a bound, or raise a TypeError that names the bound which is not a
    number."""
    try:
        return float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{mode} is {value!r:.60}, must be a number") from None


def bound_option(
    *, bound: Optional[str] = None, abs: Optional[float] = None, rel: Optional[float] = None,
    pw_rel: Optional[float] = None, psnr: Optional[float] = None,
) -> str:
    """Return one bound in the engine's syntax; "" for none.

    >>> bound_option(rel=1e-4)
    'rel=0.0001'
    """
    numbers = {"abs": abs, "rel": rel, "pw_rel": pw_rel, "psnr": psnr}
    given = [f"{mode}={as_number(mode, value)!r}" for mode, value in numbers.items()
             if value is not None]
    if bound is not None:
        given.append(text_of("bound", bound))
    if len(given) > 1:
        raise ArgumentError(f"give one bound, not {' and '.join(given)}")
    return given[0] if given else ""


def option_text(
    name: str, *, codec: Optional[str], bound: Optional[str], abs: Optional[float],
    rel: Optional[float], pw_rel: Optional[float], psnr: Optional[float],
    chunks: Union[str, Sequence[int], None], options: str, settings: Mapping[str, Any],
) -> str:
    """Return the arguments of create_variable(), or of open(), in the engine's option syntax.

    >>> option_text("u", codec="zstd", bound=None, abs=None, rel=1e-3, pw_rel=None, psnr=None,
    ...             chunks=(8, 64), options="", settings={"level": 5})
    'codec=zstd,level=5,bound=rel=0.001,chunk=8x64'
    """
    parts: list[str] = []
    if codec is not None:
        parts.append(f"codec={codec}")
    for key, value in settings.items():
        word = {True: "on", False: "off"}[value] if isinstance(value, bool) else value
        parts.append(f"{_HYPHENATED.get(key, key)}={word}")
    bounds = bound_option(bound=bound, abs=abs, rel=rel, pw_rel=pw_rel, psnr=psnr)
    if bounds:
        parts.append(f"bound={bounds}")
    if isinstance(chunks, str):
        parts.append(f"chunk={chunks}")
    elif chunks is not None:
        if min(chunks, default=0) < 1:
            raise ArgumentError(f"{name}: chunks are {tuple(chunks)}, must be >= 1")
        # "64x" is a shape of one dimension; "64" would be a number of bytes.
        shape = "x".join(str(int(extent)) for extent in chunks)
        parts.append(f"chunk={shape}{'x' if len(chunks) == 1 else ''}")
    if options:
        parts.append(options)
    return ",".join(parts)
