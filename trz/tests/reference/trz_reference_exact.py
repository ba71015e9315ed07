"""Section 9 of trz/docs/trz-format.md in plain Python: exact chunks of every element type.

Part of the reference decoder (trz_reference.py); written only from the document.
"""

import math

import numpy as np

from trz_reference_codes import book_for, check, read_codes, zstd_frame
from trz_reference_patches import patch, unshuffled

ZSTD, SHUFFLED, WORDS, WIDE = range(4)


def exact_values(reader, dtype, extents, book):
    """Section 9: the values of an exact chunk."""
    first = reader.byte()
    form, noise, packed, shared = first & 15, first & 0x10, bool(first & 0x40), first & 0x80
    check(form <= WIDE and first & 0x20 == 0, "unknown form of an exact chunk")
    check(form >= WORDS or first < 16, "a flag of words without words")
    check(form == WIDE or not noise, "noise in words")
    check(form != WIDE or dtype.itemsize == 8, "wide words of a narrow type")
    n = math.prod(extents)
    if form in (ZSTD, SHUFFLED):
        data = zstd_frame(reader.rest(), n * dtype.itemsize)
        return np.frombuffer(data, dtype).copy() if form == ZSTD else unshuffled(data, dtype)
    order = reader.byte()
    check(order <= 4, "Lorenzo of an order above 4")
    origin, factor = int.from_bytes(reader.take(8), "little"), reader.varint()
    check(factor >= 1, "factor 0")
    book = book_for(reader, book) if shared else None
    d = read_codes(reader, n, packed, book).astype(np.int64)
    if form == WIDE:
        low = reader.array("i4", n) if noise else read_codes(reader, n, packed, book)
        d = (d << 32) + low
    q = running_sums(d, extents, order, 64 if form == WIDE else 32)
    v = np.uint64(origin) + q.view(np.uint64) * np.uint64(factor)
    values = values_of(v, dtype)
    if dtype.itemsize >= 4:
        patch(reader, values)
    return values


def running_sums(d, extents, order, n_bits):
    """q, from d as int64 (section 3.1, modulo 2^n_bits)."""
    q = d.astype(f"u{n_bits // 8}").reshape([1] * (4 - len(extents)) + list(extents))
    for axis in (3, 2, 1, 0)[:order]:
        q = np.cumsum(q, axis=axis, dtype=q.dtype)
    return q.ravel().view(f"i{n_bits // 8}").astype(np.int64)


def values_of(v, dtype):
    """Values from their integers. These are modulo 2^64 here, a multiple of 2^w."""
    if dtype.kind != "f":
        return v.astype(f"u{dtype.itemsize}").view(dtype)
    n_bytes = dtype.itemsize
    v = v.astype(f"u{n_bytes}")
    one, sign = v.dtype.type(1), v.dtype.type(2**(8 * n_bytes - 1))
    return np.where(v < sign, v, sign | (~v + one) & (sign - one)).view(dtype)
