"""Section 9 of trz/docs/trz-format.md in plain Python: exact chunks of every element type.

Part of the reference decoder (trz_reference.py); written only from the document.
"""

import math

import numpy as np

from trz_reference_codes import Reader, book_for, check, read_codes, zstd_frame
from trz_reference_fitted import Model
from trz_reference_patches import patch, unshuffled

ZSTD, SHUFFLED, WORDS, WIDE, MODELLED, DICTIONARY = range(6)


def exact_values(reader, dtype, extents, book, within=False):
    """Section 9: the values of an exact chunk. within: of a dictionary."""
    first = reader.byte()
    form, noise, packed, shared = first & 15, first & 0x10, bool(first & 0x40), first & 0x80
    check(form <= DICTIONARY and first & 0x20 == 0, "unknown form of an exact chunk")
    check(form in (WORDS, WIDE, MODELLED) or first < 16, "a flag of words without words")
    check(form >= WIDE or not noise, "noise in words")
    check(form != MODELLED or first & 0xE0 == 0, "a flag of words in modelled codes")
    check(form != WIDE or dtype.itemsize == 8, "wide words of a narrow type")
    n = math.prod(extents)
    if form in (ZSTD, SHUFFLED):
        data = zstd_frame(reader.rest(), n * dtype.itemsize)
        return np.frombuffer(data, dtype).copy() if form == ZSTD else unshuffled(data, dtype)
    if form == DICTIONARY:
        check(dtype.itemsize >= 4 and not within, "a dictionary of narrow values or within another")
        return dictionary(reader, dtype, extents)
    if form == MODELLED:
        values = modelled(reader, dtype, extents, bool(noise))
        if dtype.itemsize >= 4:
            patch(reader, values)
        return values
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


def dictionary(reader, dtype, extents):
    """Form dictionary."""
    n_words = reader.varint()
    check(2 <= n_words <= min(math.prod(extents), 65536), "no number of words")
    parts = []
    for of_part, shape in ((np.dtype("u1" if n_words <= 256 else "<u2"), extents),
                           (dtype, [n_words])):
        part = Reader(reader.take(reader.varint()))
        parts.append(exact_values(part, of_part, shape, None, within=True))
        check(not part.rest(), "bytes left over in a dictionary")
    ranks, words = parts
    check(ranks.max() < n_words, "a rank without a word")
    return words[ranks]


def modelled(reader, dtype, extents, in_floats):
    """Form modelled, but for the patches."""
    order = reader.byte()
    if in_floats:
        check(dtype.kind == "f" and 1 <= order <= 3, "floats of another order or type")
    else:
        check(order <= 4, "Lorenzo of an order above 4")
        origin, factor = int.from_bytes(reader.take(8), "little"), reader.varint()
        check(factor >= 1, "factor 0")
    near, far = reader.varint(), reader.varint()
    check(64 <= near <= 2**56 and 64 <= far <= 2**56, "distances of contexts")
    n_bits = 64 if dtype.itemsize == 8 else 32
    model, n = Model(reader, n_bits), math.prod(extents)
    d, sizes = [], []
    for i in range(n):
        size = (sizes[i - near] if i >= near else 0) + (sizes[i - far] if i >= far else 0)
        d.append(int(model.take([(size + 1) // (n_bits // 16)])[0]))
        sizes.append((2 * d[i] if d[i] >= 0 else -2 * d[i] - 1).bit_length())
    model.end()
    d = np.array(d, dtype=np.int64)
    if in_floats:
        return float_sums(d, dtype, extents, order)
    q = running_sums(d, extents, order, n_bits)
    return values_of(np.uint64(origin) + q.view(np.uint64) * np.uint64(factor), dtype)


def float_sums(d, dtype, extents, order):
    """Values from codes whose prediction is in floating point."""
    shape = [e for e in ([1] * (4 - len(extents)) + list(extents))]
    axes = [axis for axis in (3, 2, 1)[:order] if shape[axis] > 1]
    lengths = [shape[axis] for axis in axes] + [1] * (3 - len(axes))
    x = lengths[0]
    codes = d.reshape(-1, lengths[2], lengths[1], x)
    padded = np.zeros((len(codes), lengths[2] + 1, lengths[1] + 1, x + 1), dtype)
    with np.errstate(all="ignore"):
        for t, z, y in np.ndindex(codes.shape[:3]):
            above, behind, both = (padded[t, z + 1, y], padded[t, z, y + 1], padded[t, z, y])
            others = (np.diff(above) + (np.diff(behind) - np.diff(both))).astype(dtype)
            row = padded[t, z + 1, y + 1]
            for i in range(x):
                p = row[i] + others[i]
                v = integer_of(p if np.isfinite(p) else dtype.type(0)) + int(codes[t, z, y, i])
                row[i + 1] = values_of(np.array([v % 2**64], np.uint64), dtype)[0]
    return np.ascontiguousarray(padded[:, 1:, 1:, 1:]).ravel()


def integer_of(value):
    """The integer of a float (step 4)."""
    n_bits = 8 * value.dtype.itemsize
    bits = int(value.view(f"u{n_bits // 8}"))
    sign, magnitude = bits >> n_bits - 1, bits % 2**(n_bits - 1)
    return -magnitude if sign and magnitude else -2**(n_bits - 1) if sign else magnitude


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
