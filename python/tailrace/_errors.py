"""Failures of the engine as exceptions.

Each is a TailraceError, and also the exception that Python programs expect in its place: a file
that is not there is a FileNotFoundError, a bad argument a ValueError.
"""

from __future__ import annotations

from typing import Any


class TailraceError(Exception):
    """What the engine refused or could not do; `code` is the engine's name of the kind."""

    code = "internal"


class ArgumentError(TailraceError, ValueError):
    """A value, shape, name or option that cannot be meant."""

    code = "invalid_argument"


class UnknownNameError(ArgumentError, KeyError):
    """A name that is given beside a dataset which has nothing of that name."""

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class UnsupportedError(TailraceError, NotImplementedError):
    """Meant, but this codec, file or build cannot do it."""

    code = "unsupported"


class NotFoundError(TailraceError, FileNotFoundError, KeyError):
    """A file, variable or attribute that is not there."""

    code = "not_found"

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class ExistsError(TailraceError, FileExistsError):
    """A file or object that is there and must not be replaced."""

    code = "already_exists"


class DisagreementError(TailraceError, RuntimeError):
    """Ranks of a communicator that gave different definitions or options."""

    code = "disagreement"


class CoverageError(TailraceError, IndexError):
    """A selection outside the variable."""

    code = "bad_coverage"


class PluginError(TailraceError, OSError):
    """A filter plug-in that could not be found or loaded."""

    code = "plugin_missing"


class CodecError(TailraceError, OSError):
    """A codec that refused, or bytes that do not decode."""

    code = "codec_failed"


class BoundError(TailraceError, ValueError):
    """A value further from the original than its error bound."""

    code = "bound_broken"


class CorruptError(TailraceError, OSError):
    """A file that is not what it says, or truncated."""

    code = "corrupt"


class StorageError(TailraceError, OSError):
    """The storage refused a read or a write."""

    code = "io_error"


class SpaceError(TailraceError, OSError):
    """The storage is full, or a quota is exhausted."""

    code = "no_space"


class MemoryLimitError(TailraceError, MemoryError):
    """The memory cap, or the machine's memory, does not suffice."""

    code = "out_of_memory"


_KINDS: dict[str, type[TailraceError]] = {
    kind.code: kind
    for kind in (ArgumentError, UnsupportedError, NotFoundError, ExistsError, DisagreementError,
                 CoverageError, PluginError, CodecError, BoundError, CorruptError, StorageError,
                 SpaceError, MemoryLimitError)
}


def error(code: str, message: str) -> TailraceError:
    """The exception of one of the engine's codes.

    >>> error("bad_coverage", "u: [0:9] is outside [8]")
    CoverageError('u: [0:9] is outside [8]')
    """
    return _KINDS.get(code, TailraceError)(message)


def text_of(what: str, value: Any) -> str:
    """The value itself if it is a text; a TypeError that says what it should have been.

    >>> text_of("the name of a group", "g")
    'g'
    """
    if not isinstance(value, str):
        raise TypeError(f"{what} is {value!r:.60}, must be a text")
    return value
