"""Section 7 of trz/docs/trz-format.md in plain Python: values that are stored exactly.

Part of the reference decoder (trz_reference.py); written only from the document.
"""

import numpy as np

from trz_reference_codes import Reader, bits_of, byte_section, check


def patch(reader, values):
    """Overwrite the values that are stored exactly."""
    for _ in range(2):
        form = reader.byte()
        if form == 0:
            return
        check(form & 1 and form < 8, "unknown form of patches")
        n_patched = reader.varint()
        check(1 <= n_patched <= values.size, "patches for more values than there are")
        positions = (positions_in_map if form & 2 else positions_by_gaps)(
            reader, n_patched, values.size)
        if form & 4:
            values[positions] = reader.array(values.dtype)[0]
        else:
            n_bytes = n_patched * values.itemsize
            values[positions] = unshuffled(byte_section(reader, n_bytes), values.dtype)
    check(reader.byte() == 0, "a third set of patches")


def positions_in_map(reader, n_patched, n):
    bits = bits_of(byte_section(reader, -(-n // 8)))
    check(not bits[n:].any() and bits.sum() == n_patched, "the map has other bits set")
    return np.flatnonzero(bits)


def positions_by_gaps(reader, n_patched, n):
    n_bytes = reader.varint()
    check(n_bytes <= -(-n // 8), "the gaps take more bytes than a map")
    gaps = Reader(byte_section(reader, n_bytes))
    positions, position = [], -1
    for _ in range(n_patched):
        position += gaps.varint() + 1
        check(position < n, "a patch behind the last value")
        positions.append(position)
    gaps.end()
    return positions


def unshuffled(data, dtype):
    """Elements from planes: all bytes 0 come first, then all bytes 1, and so on."""
    planes = np.frombuffer(data, np.uint8).reshape(dtype.itemsize, -1)
    return np.ascontiguousarray(planes.T).view(dtype).ravel()
