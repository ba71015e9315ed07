"""libh5trz.so through ctypes: the functions of trz.h, with errors as exceptions.

The library is in the package's folder `plugins`; TAILRACE_H5TRZ names another one, for work on
Tailrace itself. Its calls run without Python's global lock.
"""

from __future__ import annotations

import ctypes
import os
import pathlib
from typing import Any, Optional

from . import _plugins

_LIBRARY = pathlib.Path(
    os.environ.get("TAILRACE_H5TRZ")
    or pathlib.Path(__file__).resolve().parent / "plugins" / "libh5trz.so"
)

#: Folder of the plug-in, for HDF5_PLUGIN_PATH.
PLUGIN_PATH: str = str(_LIBRARY.parent)


class TrzError(ValueError):
    """The codec rejected settings, an array, or bytes that are not an encoded chunk."""


class Message(ctypes.Structure):
    """trz_message: buffer for an error text of the library."""

    _fields_ = [("text", ctypes.c_char_p), ("capacity", ctypes.c_size_t)]


class Array(ctypes.Structure):
    """trz_array: element type and shape of the values to encode."""

    _fields_ = [
        ("dtype", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("extents", ctypes.POINTER(ctypes.c_uint64)),
        ("fill_value", ctypes.POINTER(ctypes.c_double)),
    ]


class Book(ctypes.Structure):
    """trz_book: a shared Huffman book."""

    _fields_ = [("bytes", ctypes.c_char_p), ("n_bytes", ctypes.c_size_t)]


_OUT_OF_MEMORY = 13  # tailrace_error of tailrace.h
_MESSAGE_BYTES = 512
_WORDS = ctypes.POINTER(ctypes.c_uint32)
_MESSAGE = ctypes.POINTER(Message)
_BOOK = ctypes.POINTER(Book)
_POINTER = ctypes.c_void_p
_SIZE = ctypes.c_size_t


def _load() -> ctypes.CDLL:
    library = _plugins.load(_LIBRARY)
    library.trz_filter_id.restype = ctypes.c_uint32
    library.trz_version.restype = ctypes.c_char_p
    library.trz_encoded_bytes_max.restype = _SIZE
    library.trz_encoded_bytes_max.argtypes = [_SIZE]
    signatures = {
        "trz_cd_values": [ctypes.c_char_p, _BOOK, _WORDS, _SIZE, _MESSAGE],
        "trz_words_book": [_WORDS, _SIZE, _POINTER, _SIZE, _MESSAGE],
        "trz_encode": [_WORDS, _SIZE, ctypes.POINTER(Array), _POINTER, _SIZE, _POINTER, _SIZE,
                       _MESSAGE],
        "trz_decode": [_POINTER, _SIZE, _BOOK, _POINTER, _SIZE, _MESSAGE],
        "trz_describe": [_POINTER, _SIZE, ctypes.POINTER(ctypes.c_int32),
                         ctypes.POINTER(ctypes.c_uint64), _MESSAGE, _MESSAGE],
        "trz_trainer_add": [_POINTER, _WORDS, _SIZE, ctypes.POINTER(Array), _POINTER, _SIZE,
                            _MESSAGE],
        "trz_trainer_book": [_POINTER, _POINTER, _SIZE, _MESSAGE],
    }
    library.trz_trainer_new.restype = _POINTER
    library.trz_trainer_free.restype = None
    library.trz_trainer_free.argtypes = [_POINTER]
    for name, arguments in signatures.items():
        function = getattr(library, name)
        function.restype = ctypes.c_int64
        function.argtypes = arguments
    return library


library = _load()

#: Number of the HDF5 filter.
FILTER_ID: int = library.trz_filter_id()
__version__: str = library.trz_version().decode()


def new_message() -> tuple[Message, ctypes.Array[ctypes.c_char]]:
    """Return a message and its buffer, which must exist as long as the message."""
    text = ctypes.create_string_buffer(_MESSAGE_BYTES)
    return Message(ctypes.cast(text, ctypes.c_char_p), _MESSAGE_BYTES), text


def book_argument(book: Optional[bytes]) -> Optional[Book]:
    """Return the book as an argument for the library; the bytes must exist as long as the
    argument."""
    return None if book is None else Book(book, len(book))


def call(name: str, *arguments: Any) -> int:
    """Call a function whose last parameter is the message; raise its failure."""
    return call_of(library, TrzError, name, *arguments)


def call_of(called: ctypes.CDLL, kind: type[Exception], name: str, *arguments: Any) -> int:
    """Call a function of any of Tailrace's libraries; see call()."""
    message, buffer = new_message()
    result: int = getattr(called, name)(*arguments, ctypes.byref(message))
    if result >= 0:
        return result
    text = buffer.value.decode(errors="replace")
    if -result == _OUT_OF_MEMORY:
        raise MemoryError(text)
    raise kind(text)
