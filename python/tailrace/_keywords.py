"""Keywords of the public functions: their names, and errors that name the intended one.

The functions name their keywords in their signatures, which editors and help() show. given() and
NAMES convert them to the engine's options. A test compares the signatures with the engine's table
of options (docs/options.md).
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, Union, cast

from ._errors import ArgumentError

Function = TypeVar("Function", bound=Callable[..., Any])

#: A number of bytes, or a text such as "64MB".
Bytes = Union[int, str]

#: Settings of the codec trz.
TRZ = ("preset", "predictor", "dimension", "spline", "last_axis", "lossless", "coarse", "refine")
#: Settings of all codecs.
CODECS = (*TRZ, "book", "level", "shuffle", "engine", "checksum", "rate", "precision", "reversible",
          "block", "inner", "swap", "missing", "cd")
#: Further options of a variable.
VARIABLE = ("guard", "earlier_loss", "layout", "verify", "allow_wide_bound", "holes", "roles")
#: Options of a file.
FILE = ("threads", "memory", "buffer", "align", "fsync", "journal", "replace", "compatibility",
        "attributes", "for_", "why", "target", "profile", "plugin_path")
#: Options for reading.
READING = ("threads", "memory", "read", "gap", "prefetch", "follow_external", "plugin_path")
#: Names of netCDF4's createVariable and h5py's create_dataset.
NETCDF = ("chunksizes", "zlib", "complevel", "compression", "compression_opts", "fletcher32",
          "contiguous", "endian", "least_significant_digit", "significant_digits", "quantize_mode",
          "szip", "szip_coding", "szip_pixels_per_block", "zstd", "bzip2", "blosc", "blosc_shuffle")


def nearest(word: Any, known: Iterable[str]) -> str:
    """Return ", did you mean ...?" if a known word is near.

    >>> nearest("chunksize", ["chunks", "chunksizes"])
    '; did you mean "chunksizes"?'
    """
    found = difflib.get_close_matches(str(word), list(known), 1, 0.6)
    return f'; did you mean "{found[0]}"?' if found else ""


class UnknownKeyword(ArgumentError, TypeError):
    """A keyword that a function does not have."""


def given(arguments: Mapping[str, Any], *names: Iterable[str]) -> dict[str, Any]:
    """Return the arguments of these names that are not None.

    >>> given({"level": 3, "cd": None, "name": "u"}, ("cd", "level"))
    {'level': 3}
    """
    return {name: arguments[name] for group in names for name in group
            if arguments[name] is not None}


def with_hints(function: Function) -> Function:
    """Make an unknown keyword an error that names the nearest known one. Options of two words may
    have the engine's hyphen, in a dict of keywords."""
    names = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def checked(*arguments: Any, **keywords: Any) -> Any:
        if keywords.keys() <= known:
            return function(*arguments, **keywords)
        renamed: dict[str, Any] = {}
        for key, value in keywords.items():
            name = key.replace("-", "_")
            name = f"{name}_" if f"{name}_" in known else name
            if name not in known:
                hint = nearest(name, names) or f"; known keywords: {', '.join(sorted(known))}"
                raise UnknownKeyword(f"{function.__name__}() has no keyword \"{key}\"{hint}")
            renamed[name] = value
        return function(*arguments, **renamed)

    known = set(names)
    return cast(Function, checked)
