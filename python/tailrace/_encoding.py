"""Converts the storage keywords of netCDF4, h5netcdf, h5py and xarray to Tailrace's.

storage_keywords() accepts zlib=, complevel=, chunksizes=, ... in addition to Tailrace's own keys
and returns keywords of create_variable(). It rejects unknown keys and suggests the nearest one.
stored_bound() converts a bound on values to one on the numbers that a packed variable stores.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional

import numpy as np

from ._errors import ArgumentError, UnsupportedError
from ._keywords import CODECS, NETCDF, VARIABLE, nearest

BOUNDS = ("abs", "rel", "pw_rel", "psnr")
#: Keywords of create_variable(), and further settings of the engine's codecs and fields.
OWN = ("codec", "bound", *BOUNDS, "chunks", "options", *CODECS, "book_loss", "fill", "over-time",
       *VARIABLE, *(name.replace("_", "-") for name in VARIABLE))
#: Keys that readers add to a variable's encoding for information.
SILENT = ("source", "original_shape", "preferred_chunks")

_CODECS = {"zlib": "deflate", "gzip": "deflate", "deflate": "deflate", "zstd": "zstd",
           "bzip2": "bzip2", "blosc": "blosc", "blosc_lz": "blosc", "blosc_lz4": "blosc",
           "blosc_lz4hc": "blosc", "blosc_zlib": "blosc", "blosc_zstd": "blosc"}
_SHUFFLED = ("deflate", "portable", "zstd", "lz4", "bzip2", "blosc", "blosc2")


def check_keys(where: str, keys: Iterable[Any], known: Sequence[str]) -> None:
    """Reject the first key that is not in `known`, and suggest the nearest one."""
    for key in keys:
        if key not in known and not str(key).startswith("tailrace_"):
            hint = (nearest(key, (*known, "fill_value", "attrs", "data", "dtype"))
                    or f"; known keys: {', '.join(sorted(known))}")
            raise ArgumentError(f"unexpected {where}: unknown key \"{key}\"{hint}")


def bound_of(where: str, keywords: Mapping[str, Any]) -> tuple[str, Optional[float]]:
    """Return mode and number of the given bound; ("", None) for none."""
    given = [mode for mode in BOUNDS if keywords.get(mode) is not None]
    if keywords.get("bound") is not None:
        given.append("bound")
    if not given:
        return "", None
    if len(given) > 1:
        raise ArgumentError(f"{where}: give one bound, not {' and '.join(given)}")
    mode, number = given[0], keywords[given[0]]
    if mode == "bound":
        if not isinstance(number, str):
            raise TypeError(f'{where}: bound is {number!r}, must be a string such as "abs=0.01"')
        text = number
        mode, number = (part.strip() for part in text.partition("=")[::2])
        if mode == "none":
            return mode, None
        if mode not in BOUNDS or not number:
            raise ArgumentError(f"{where}: bound is {text!r}, must be \"none\" or such as "
                                f"\"abs=0.01\"{nearest(mode, (*BOUNDS, 'none'))}")
    try:
        if isinstance(number, (bool, np.bool_)):
            raise TypeError
        value = float(number)
    except (TypeError, ValueError):
        raise TypeError(f"{where}: {mode} is {number!r}, must be a number") from None
    if not value >= 0 or math.isinf(value):
        raise ArgumentError(f"{where}: {mode} is {number!r}, must be finite and >= 0")
    return mode, value


def storage_keywords(where: str, requested: Mapping[str, Any],
                     shape: Optional[Sequence[int]] = None,
                     unlimited: Sequence[bool] = ()) -> dict[str, Any]:
    """Convert the requested keywords of a variable to those of create_variable(). None is ignored.

    >>> storage_keywords("u", {"zlib": True, "complevel": 5, "chunksizes": (8, 64)})
    {'chunks': (8, 64), 'codec': 'deflate', 'level': 5}
    >>> storage_keywords("u", {"compression": "gzip", "shuffle": False, "abs": 0.1})
    {'abs': 0.1, 'codec': 'portable', 'shuffle': False}
    >>> storage_keywords("u", {"zlib": True, "fletcher32": True})
    {'codec': 'deflate', 'checksum': True}
    """
    check_keys(where, requested, (*OWN, *NETCDF, *SILENT))
    keys = {key: value for key, value in requested.items()
            if value is not None and key not in SILENT and not key.startswith("tailrace_")}
    for key in [key for key in keys if key.startswith(("szip_", "blosc_"))]:
        del keys[key]  # settings of codecs that are refused or have fixed settings
    _refuse_what_is_not_served(where, keys)
    checked = bool(keys.pop("fletcher32", False))
    digits = keys.pop("least_significant_digit", None)
    mode, number = bound_of(where, keys)
    if keys.get("significant_digits") and (digits is not None or mode not in ("", "none")):
        raise ArgumentError(f"{where}: significant_digits and "
                            f"{mode or 'least_significant_digit'}; give one bound")
    if digits is not None and not mode:
        mode, keys["abs"] = "abs", 0.5 * 10.0 ** -_number(where, "least_significant_digit", digits)
    chunks = _chunks_of(where, keys, shape, unlimited)
    codec, level, settings = _codec_of(where, keys)
    if codec == "deflate" and "codec" not in keys and mode not in ("", "none"):
        codec = "portable"  # deflate of values that are rounded within the bound
    shuffle = keys.pop("shuffle", None)
    for key in ("codec", "level"):
        keys.pop(key, None)
    chosen = {"chunks": chunks, **keys}
    if keys.get("significant_digits"):
        chosen["bound"] = "none"  # a bound of the file is not for rounded values
    if codec is None and (level is not None or shuffle is not None) and mode in ("", "none"):
        codec = "deflate"
    if codec == "deflate" and level == 0:
        codec, level = "none", None
    chosen["codec"] = codec
    if checked:
        if codec not in ("deflate", "portable"):
            raise UnsupportedError(f"{where}: fletcher32=True: give it together with zlib=True, or "
                                   "use checksum=True with codec=\"deflate\" or "
                                   "\"portable\"")
        chosen["checksum"] = True
    # codec=auto, and codecs without these settings, use their defaults.
    if codec not in (None, "none", "auto"):
        chosen["level"] = level
        if codec in _SHUFFLED or shuffle is None or codec == requested.get("codec"):
            chosen["shuffle"] = shuffle
    chosen.update(settings)
    return {key: value for key, value in chosen.items() if value is not None}


def _number(where: str, key: str, value: Any) -> int:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        raise TypeError(f"{where}: {key} is {value!r}, must be a whole number")
    return int(value)


def _refuse_what_is_not_served(where: str, keys: dict[str, Any]) -> None:
    if keys.pop("szip", False) or keys.get("compression") in ("szip", "lzf"):
        raise UnsupportedError(f"{where}: szip and lzf can be read but not written; use "
                               "zlib or zstd")
    order = keys.pop("endian", "native")
    if order not in ("native", "=", sys.byteorder):
        raise UnsupportedError(f"{where}: endian={order!r} is not supported; values are written in "
                               f"native byte order, {sys.byteorder}")


def _chunks_of(where: str, keys: dict[str, Any], shape: Optional[Sequence[int]],
               unlimited: Sequence[bool]) -> Any:
    if "chunks" in keys and "chunksizes" in keys:
        raise ArgumentError(f"{where}: give chunks or chunksizes, not both")
    name = "chunks" if "chunks" in keys else "chunksizes"
    chunks = keys.pop(name, None)
    if chunks is None or isinstance(chunks, str):
        return chunks
    try:
        chunks = tuple(_number(where, name, extent) for extent in chunks)
    except TypeError:
        raise TypeError(f"{where}: {name} is {chunks!r}, must be a sequence of whole numbers, one "
                        "for each dimension") from None
    if min(chunks, default=1) < 1:
        raise ArgumentError(f"{where}: {name} are {chunks}, must be >= 1")
    if shape is None:
        return chunks
    if len(chunks) != len(shape):
        raise ArgumentError(f"{where}: {name} are {chunks}, must be {len(shape)} numbers for the "
                            f"shape {tuple(shape)}")
    if name == "chunksizes":
        for extent, length, grows in zip(chunks, shape, unlimited):
            if extent > length and not grows:
                raise ArgumentError(f"{where}: chunksizes are {chunks}, must fit the shape "
                                    f"{tuple(shape)}")
    return chunks or None


def _codec_of(where: str, keys: dict[str, Any]) -> tuple[Optional[str], Any, dict[str, Any]]:
    """Return (codec, level, further settings) from netCDF4's flags, h5py's compression, or
    codec=."""
    codec = keys.get("codec")
    if codec is not None and not isinstance(codec, str):
        raise TypeError(f"{where}: codec is {codec!r}, must be a name such as \"trz\"")
    flags = {name: keys.pop(name) for name in ("zlib", "zstd", "bzip2", "blosc") if name in keys}
    for name, wanted in flags.items():
        if not isinstance(wanted, (bool, np.bool_, int, np.integer)):
            raise TypeError(f"{where}: {name} is {wanted!r}, must be True or False")
    compression = keys.pop("compression", None)
    options = keys.pop("compression_opts", None)
    level = keys.pop("complevel", None)
    contiguous = keys.pop("contiguous", False)
    settings: dict[str, Any] = {}
    filters = [name for name, wanted in flags.items() if wanted]
    if compression is not None:
        filters = [compression]
    if codec in ("deflate", "portable") and filters[:1] in (["zlib"], ["gzip"]):
        filters = []  # variables with such codecs report this when they are read
    if codec is not None and filters:
        raise ArgumentError(f"{where}: codec={codec!r} and compression by {filters[0]!r}; give one")
    if filters and isinstance(filters[0], (int, np.integer)) and not isinstance(filters[0], bool):
        if int(filters[0]) in (481, 482):
            raise ArgumentError(f"{where}: filter {int(filters[0])} belongs to Tailrace; give "
                                "codec=\"trz\" and abs=, or codec=\"xor\"")
        client_data = () if options is None else options  # a filter by number, such as hdf5plugin's
        settings["cd"] = ":".join(str(int(word)) for word in client_data) or None
        return f"id={int(filters[0])}", None, settings
    if filters:
        if filters[0] not in _CODECS:
            hint = nearest(filters[0], _CODECS) or f"; there are {', '.join(_CODECS)}"
            raise ArgumentError(f"{where}: unknown compression {filters[0]!r}{hint}")
        codec = _CODECS[filters[0]]
        inner = filters[0].partition("_")[2]
        if codec == "blosc" and inner:
            settings["inner"] = {"lz": "blosclz"}.get(inner, inner)
        if codec == "blosc":
            keys.pop("shuffle", None)  # Blosc has a shuffle stage
    elif codec is None and (contiguous or False in flags.values()) and not any(
            keys.get(mode) is not None for mode in (*BOUNDS, "bound")):
        return "none", None, settings
    level = keys.get("level", options if level is None else level)
    if level is not None:
        level = _number(where, "the level of compression", level)
        if not 0 <= level <= 22:
            raise ArgumentError(f"{where}: the level of compression is {level}, must be 0 to 9")
    return codec, level, settings


def stored_bound(where: str, keywords: dict[str, Any], scale: float, offset: float,
                 stored: np.dtype[Any]) -> Optional[float]:
    """Convert a bound on values to one on the stored numbers (value - offset) / scale, in place.

    Rounding to integers uses half a unit of it; the codec gets the rest.
    @returns the bound on values; None: no bound is given.

    >>> words = {"abs": 0.05}
    >>> stored_bound("t", words, 0.01, 200.0, np.dtype("i2")), words
    (0.05, {'abs': 4.0, 'codec': 'portable'})
    """
    mode, number = bound_of(where, keywords)
    if mode in ("", "none") or number is None:
        return None
    if mode != "abs":
        raise ArgumentError(f"{where}: {mode}= is not supported for values that are stored as "
                            f"{stored} with scale_factor or add_offset; give abs=, in the unit of "
                            "the unpacked values")
    for key in (*BOUNDS, "bound"):
        keywords.pop(key, None)
    limit = number / abs(scale)
    if stored.kind == "f":
        keywords["abs"] = limit
        return number
    limit -= 0.5
    if limit < -1e-9:
        raise ArgumentError(f"{where}: abs={number!r} is less than the rounding to {stored}, which "
                            f"changes values by up to {abs(scale) / 2!r}; give a smaller "
                            "scale_factor, or no dtype")
    # Only portable may change integers; the other codecs keep them exactly.
    if limit >= 1 and keywords.get("codec", "portable") == "portable":
        keywords.update(abs=float(math.floor(limit)), codec="portable")
    elif "codec" not in keywords or keywords["codec"] == "portable":
        keywords["codec"] = "deflate"
    return number
