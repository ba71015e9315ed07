"""Encodes NumPy arrays to bytes, and decodes them."""

from __future__ import annotations

import ctypes
import itertools
import math
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Optional, Union

import numpy as np

from . import _native
from ._keywords import TRZ, given, with_hints
from ._settings import cd_values

Buffer = Union[bytes, bytearray, memoryview, np.ndarray]

# Numbers of trz_dtype.
_DTYPES = ("f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")
_NUMBERS = {np.dtype(name): number for number, name in enumerate(_DTYPES)}


class ChunkSummary(NamedTuple):
    """Facts recorded in an encoded chunk."""

    dtype: np.dtype
    n_values: int
    method: str


def _bytes_of(data: Buffer) -> np.ndarray:
    view = np.frombuffer(data, dtype=np.uint8)
    return view.reshape(-1)


def _described(array: Any, fill: Optional[float]) -> tuple[np.ndarray, _native.Array]:
    """Return the values in native order, and their description for the library."""
    values = np.asarray(array)
    values = np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("="))
    number = _NUMBERS.get(values.dtype)
    if number is None:
        raise TypeError(f"tailrace supports f4, f8, i1..i8 and u1..u8, not {values.dtype}")
    if values.size == 0:
        raise _native.TrzError("trz: the array is empty")
    shape = values.shape or (1,)
    extents = (ctypes.c_uint64 * len(shape))(*shape)
    fill_value = None if fill is None else ctypes.pointer(ctypes.c_double(fill))
    return values, _native.Array(number, len(shape), extents, fill_value)


def _word_array(words: tuple[int, ...]) -> ctypes.Array[ctypes.c_uint32]:
    return (ctypes.c_uint32 * len(words))(*words)


@with_hints
def encode(
    array: Any, *, abs: Optional[float] = None, rel: Optional[float] = None,
    pw_rel: Optional[float] = None, psnr: Optional[float] = None, fill: Optional[float] = None,
    book: Optional[bytes] = None, preset: Optional[str] = None,
    predictor: Optional[str] = None, dimension: Optional[int] = None, spline: Optional[str] = None,
    last_axis: Union[int, str, None] = None, lossless: Optional[bool] = None,
    coarse: Optional[int] = None, refine: Optional[int] = None,
) -> bytes:
    """Encode an array within one of the bounds (none: exact) of cd_values().

    Supports float32, float64 and the integers of 1 to 8 bytes; integers are always exact. NaN,
    infinities and `fill` are preserved bit for bit. Runs without the global lock, so threads encode
    in parallel.

    >>> encoded = encode(np.linspace(0, 1, 1000), rel=1e-3)
    >>> len(encoded) < 1000 and describe(encoded).n_values == 1000
    True
    """
    settings = given(locals(), TRZ)
    values, described = _described(array, fill)
    words = cd_values(abs=abs, rel=rel, pw_rel=pw_rel, psnr=psnr, data=values, fill=fill,
                      book=book, **settings)
    encoded = np.empty(_native.library.trz_encoded_bytes_max(values.nbytes), np.uint8)
    n_encoded = _native.call(
        "trz_encode", _word_array(words), len(words), ctypes.byref(described), values.ctypes.data,
        values.nbytes, encoded.ctypes.data, encoded.nbytes)
    return encoded[:n_encoded].tobytes()


def _pieces(array: Any, chunks: Optional[tuple[int, ...]]) -> Iterator[Any]:
    """Yield the array's chunks, cut at its edge; the array itself without `chunks`."""
    if chunks is None:
        yield array
        return
    values = np.asarray(array)
    if len(chunks) != values.ndim or min(chunks, default=0) < 1:
        raise _native.TrzError(f"trz: chunks {chunks} do not fit an array of shape {values.shape}")
    starts = (range(0, n, edge) for n, edge in zip(values.shape, chunks))
    for start in itertools.product(*starts):
        yield values[tuple(slice(at, at + edge) for at, edge in zip(start, chunks))]


@with_hints
def train_book(
    arrays: Iterable[Any], *, abs: float, chunks: Optional[tuple[int, ...]] = None,
    fill: Optional[float] = None, preset: Optional[str] = None,
    predictor: Optional[str] = None, dimension: Optional[int] = None, spline: Optional[str] = None,
    last_axis: Union[int, str, None] = None, lossless: Optional[bool] = None,
    coarse: Optional[int] = None, refine: Optional[int] = None,
) -> bytes:
    """Compute Huffman codes that many chunks like these can share.

    `arrays` are chunks, or are cut into chunks of the shape `chunks`. Useful for small chunks (1 MB
    and less). The decoder needs the book: HDF5 files have it in the dataset's header
    (Trz(book=...)), otherwise pass it to decode().

    >>> steps = [np.sin(np.arange(4096) / 50 + t) for t in range(3)]
    >>> book = train_book(steps[:1], abs=1e-4)
    >>> encoded = [encode(step, abs=1e-4, book=book) for step in steps]
    >>> bool(np.abs(decode(encoded[2], book=book) - steps[2]).max() <= 1e-4)
    True
    """
    words = cd_values(abs=abs, **given(locals(), TRZ))
    trainer = _native.library.trz_trainer_new()
    if not trainer:
        raise MemoryError("trz: not enough memory for a book")
    try:
        for array in itertools.chain.from_iterable(_pieces(array, chunks) for array in arrays):
            values, described = _described(array, fill)
            _native.call("trz_trainer_add", trainer, _word_array(words), len(words),
                         ctypes.byref(described), values.ctypes.data, values.nbytes)
        book = ctypes.create_string_buffer(_native.call("trz_trainer_book", trainer, None, 0))
        _native.call("trz_trainer_book", trainer, book, len(book))
        return book.raw
    finally:
        _native.library.trz_trainer_free(trainer)


def describe(encoded: Buffer) -> ChunkSummary:
    """Return element type, number of values and method of encoded bytes, without decoding them."""
    data = _bytes_of(encoded)
    dtype = ctypes.c_int32()
    n_values = ctypes.c_uint64()
    method, text = _native.new_message()
    _native.call("trz_describe", data.ctypes.data, data.nbytes, ctypes.byref(dtype),
                 ctypes.byref(n_values), ctypes.byref(method))
    return ChunkSummary(np.dtype(_DTYPES[dtype.value]), n_values.value, text.value.decode())


def decode(encoded: Buffer, shape: Union[int, tuple[int, ...], None] = None,
           book: Optional[bytes] = None, out: Optional[np.ndarray] = None) -> np.ndarray:
    """Decode the result of encode() into an array of this shape (None: one dimension).

    `out`, a contiguous array of the right type and size, receives the values instead of a new
    array.

    >>> decode(encode(np.arange(6, dtype="i4")), shape=(2, 3))
    array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
    """
    data = _bytes_of(encoded)
    summary = describe(data)
    if out is not None:
        wanted = out.shape
    elif shape is None:
        wanted = (summary.n_values,)
    else:
        wanted = shape if isinstance(shape, tuple) else (shape,)
    if math.prod(wanted) != summary.n_values:
        raise _native.TrzError(
            f"trz: the chunk has {summary.n_values} values, which do not fit the shape {wanted}")
    values = np.empty(wanted, summary.dtype) if out is None else out
    if values.dtype != summary.dtype or not (values.flags.c_contiguous and values.flags.writeable):
        raise _native.TrzError(f"trz: out must be writable, contiguous and of {summary.dtype}")
    _native.call("trz_decode", data.ctypes.data, data.nbytes, _native.book_argument(book),
                 values.ctypes.data, values.nbytes)
    return values
