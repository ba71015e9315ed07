"""Failures of the engine as exceptions.

Each is a TailraceError, and also the exception that Python programs expect: a missing file is a
FileNotFoundError, a bad argument a ValueError.
"""

from __future__ import annotations

from typing import Any


class TailraceError(Exception):
    """An operation that the engine rejected or could not do; `code` is the engine's name of the
    kind."""

    code = "internal"


class ArgumentError(TailraceError, ValueError):
    """A value, shape, name or option that is not valid."""

    code = "invalid_argument"


class UnknownNameError(ArgumentError, KeyError):
    """A name given for a dataset that has no such member."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class UnsupportedError(TailraceError, NotImplementedError):
    """Valid, but this codec, file or build cannot do it."""

    code = "unsupported"


class NotFoundError(TailraceError, FileNotFoundError, KeyError):
    """A file, variable or attribute does not exist."""

    code = "not_found"

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class ExistsError(TailraceError, FileExistsError):
    """A file or object exists and must not be replaced."""

    code = "already_exists"


class DisagreementError(TailraceError, RuntimeError):
    """Ranks of a communicator gave different definitions or options."""

    code = "disagreement"


class CoverageError(TailraceError, IndexError):
    """A selection outside the variable."""

    code = "bad_coverage"


class PluginError(TailraceError, OSError):
    """A filter plug-in cannot be found or loaded."""

    code = "plugin_missing"


class CodecError(TailraceError, OSError):
    """A codec failed, or bytes do not decode."""

    code = "codec_failed"


class BoundError(TailraceError, ValueError):
    """The error of a value exceeds its bound."""

    code = "bound_broken"


class CopyError(TailraceError, ValueError):
    """A copy keeps its bounds, but lacks or changes something else of its original."""

    code = "copy_differs"


class CorruptError(TailraceError, OSError):
    """A damaged or truncated file, or another format."""

    code = "corrupt"


class StorageError(TailraceError, OSError):
    """The storage failed a read or a write."""

    code = "io_error"


class SpaceError(TailraceError, OSError):
    """The storage is full, or a quota is exhausted."""

    code = "no_space"


class MemoryLimitError(TailraceError, MemoryError):
    """The memory cap, or the machine's memory, is too small."""

    code = "out_of_memory"


_KINDS: dict[str, type[TailraceError]] = {
    kind.code: kind
    for kind in (ArgumentError, UnsupportedError, NotFoundError, ExistsError, DisagreementError,
                 CoverageError, PluginError, CodecError, BoundError, CorruptError, StorageError,
                 SpaceError, MemoryLimitError)
}


def error(code: str, message: str) -> TailraceError:
    """Return the exception for one of the engine's codes.

    >>> error("bad_coverage", "u: [0:9] is outside [8]")
    CoverageError('u: [0:9] is outside [8]')
    """
    return _KINDS.get(code, TailraceError)(message)


def text_of(what: str, value: Any) -> str:
    """Return the value itself if it is a text, or raise a TypeError that says what it should be.

    >>> text_of("the name of a group", "g")
    'g'
    """
    if not isinstance(value, str):
        raise TypeError(f"{what} is {value!r:.60}, must be a string")
    return value
