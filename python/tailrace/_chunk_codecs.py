"""Chunks in the format of Tailrace's HDF5 filters, for the codecs of numcodecs and zarr.

The client data of an HDF5 dataset's header (cd_values) define a codec. It encodes to the same bytes
as the filter, and decodes the chunks of a file with this client data. The caller handles byte order
and memory order: decoded values are in the order in which they lay in memory.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Sequence
from typing import Any, Optional

import numpy as np
import numpy.typing as npt

from . import _native
from ._arrays import _NUMBERS, _word_array, describe
from ._settings import cd_values
from ._xor import Xor, XorArray, xor_call, xor_library

Values = npt.NDArray[Any]
Bytes = npt.NDArray[np.uint8]

_HAS_CHUNK, _HAS_FILL, _HAS_BOOK = 1 << 16, 1 << 17, 1 << 18


def as_bytes(data: Any) -> Bytes:
    """Return the bytes to encode, without a copy."""
    return np.frombuffer(data, np.uint8)


def in_memory_order(array: Any) -> Values:
    """Return dense values in memory order, slowest axis first: the transpose of arrays in Fortran
    order."""
    values: Values = np.asarray(array)
    if values.flags.f_contiguous and not values.flags.c_contiguous:
        values = values.T
    return np.ascontiguousarray(values)


def words_of(given: Optional[Sequence[int]], **requested: Any) -> tuple[int, ...]:
    """Return the given client data, else those of a bound and settings (tailrace.Trz)."""
    if given is None:
        return cd_values(**requested)
    named = [key for key, value in requested.items() if value is not None]
    if named:
        raise ValueError(f"trz: give cd_values or {', '.join(named)}, not both")
    if isinstance(given, (str, bytes)):
        raise TypeError(f"trz: cd_values are {given!r:.60}, must be whole numbers")
    words = tuple(int(word) for word in given)
    if any(not 0 <= word < 1 << 32 for word in words):
        raise ValueError(f"trz: cd_values are {words!r:.60}, must be whole numbers of 32 bits")
    _native.call("trz_words_book", _word_array(words), len(words), None, 0)  # raises an error for
                                                                             # invalid client data
    return words


def fill_of(words: Sequence[int]) -> Optional[float]:
    """Return the fill value that an HDF5 dataset's client data record.

    >>> fill_of(cd_values(abs=0.5)) is None
    True
    """
    if not words or not words[0] & _HAS_CHUNK or not words[0] & _HAS_FILL:
        return None
    low, high = words[-2:]
    value: float = struct.unpack("<d", struct.pack("<II", low, high))[0]
    return value


def _book_of(words: tuple[int, ...]) -> Optional[bytes]:
    if not words or not words[0] & _HAS_BOOK:
        return None
    made = _word_array(words)
    n_bytes = _native.call("trz_words_book", made, len(words), None, 0)
    book = ctypes.create_string_buffer(n_bytes)
    _native.call("trz_words_book", made, len(words), book, n_bytes)
    return book.raw


def trz_encode(array: Any, words: tuple[int, ...], fill: Optional[float]) -> bytes:
    """Encode a chunk. @error TypeError  a type that trz does not support, or foreign byte order."""
    values = in_memory_order(array)
    number = _NUMBERS.get(values.dtype)
    if number is None or not values.dtype.isnative:
        raise TypeError("trz supports f4, f8, i1..i8 and u1..u8 in native byte order, not "
                        f"{values.dtype.str}")
    if values.size == 0:
        raise _native.TrzError("trz: the array is empty")
    shape = values.shape or (1,)
    extents = (ctypes.c_uint64 * len(shape))(*shape)
    fill = fill_of(words) if fill is None else fill
    known = None if fill is None else ctypes.pointer(ctypes.c_double(fill))
    described = _native.Array(number, len(shape), extents, known)
    encoded = np.empty(_native.library.trz_encoded_bytes_max(values.nbytes), np.uint8)
    n_bytes = _native.call("trz_encode", _word_array(words), len(words), ctypes.byref(described),
                           values.ctypes.data, values.nbytes, encoded.ctypes.data, encoded.nbytes)
    return encoded[:n_bytes].tobytes()


def trz_decode(data: Any, words: tuple[int, ...]) -> Values:
    """Return the values, in one dimension. @error TrzError  not a chunk of trz."""
    encoded = as_bytes(data)
    summary = describe(encoded)
    values: Values = np.empty(summary.n_values, summary.dtype)
    _native.call("trz_decode", encoded.ctypes.data, encoded.nbytes,
                 _native.book_argument(_book_of(words)), values.ctypes.data, values.nbytes)
    return values


def xor_words(given: Optional[Sequence[int]], dimension: Optional[int]) -> tuple[int, ...]:
    """Return client data of the filter xor. @error ValueError  an unknown layout."""
    if given is None:
        return Xor(dimension).filter_options
    if dimension is not None:
        raise ValueError("xor: give cd_values or dimension, not both")
    words = tuple(int(word) for word in given)
    if words and (words[0] & 0xFF != 1 or words[0] >> 8 & 0xFF > 3):
        raise ValueError(f"xor: cd_values are {words!r:.60}, must begin with 1 and a dimension of "
                         "0 to 3")
    return words


def xor_encode(array: Any, words: tuple[int, ...]) -> bytes:
    """Encode a chunk of elements of any fixed size."""
    values = in_memory_order(array)
    if values.dtype.hasobject:
        raise TypeError(f"xor supports elements of fixed size, not {values.dtype}")
    if values.size == 0:
        raise ValueError("xor: the array is empty")
    shape = values.shape or (1,)
    extents = (ctypes.c_uint64 * len(shape))(*shape)
    dimension = words[0] >> 8 & 0xFF if words else 0
    described = XorArray(values.dtype.itemsize, dimension, len(shape), extents)
    encoded = np.empty(xor_library().xor_encoded_bytes_max(values.nbytes), np.uint8)
    n_bytes = xor_call("xor_encode", ctypes.byref(described), values.ctypes.data, values.nbytes,
                       encoded.ctypes.data, encoded.nbytes)
    return encoded[:n_bytes].tobytes()


def xor_decoded_bytes(encoded: Bytes) -> int:
    """Return the size of the values in bytes, from the head of a chunk (trz/docs/trz-format.md).

    >>> xor_decoded_bytes(as_bytes(xor_encode(np.arange(300.0), (1,))))
    2400
    """
    if encoded.nbytes < 10 or encoded[:4].tobytes() != b"XOR\x01":
        raise ValueError("xor: not a chunk of the codec xor, version 1")
    if encoded[8] >> 5:
        raise ValueError(f"xor: the chunk needs a newer xor: unknown feature bits "
                         f"{encoded[8] & 0xE0:#x}")
    n_words: int = 0
    word_bytes = 1 << (int(encoded[8]) & 3)
    for at, byte in enumerate(encoded[9:19].tolist()):
        n_words |= (byte & 0x7F) << 7 * at
        if byte < 0x80:
            return n_words * word_bytes
    raise ValueError("xor: the chunk is damaged (its number of words is not valid)")


def xor_decode(data: Any, n_bytes: Optional[int] = None) -> Bytes:
    """Return the values' bytes. n_bytes: their required size. @error ValueError  damaged chunks."""
    encoded = as_bytes(data)
    n_found = xor_decoded_bytes(encoded)
    if n_bytes is not None and n_found != n_bytes:
        raise ValueError(f"xor: the chunk has {n_found} bytes, expected {n_bytes}")
    values: Bytes = np.empty(n_found, np.uint8)
    xor_call("xor_decode", encoded.ctypes.data, encoded.nbytes, values.ctypes.data, values.nbytes)
    return values

