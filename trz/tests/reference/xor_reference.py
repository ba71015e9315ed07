"""Reference decoder of the codec xor, written only from docs/trz-format.md, and the paper's scheme.

decode() is slow and simple, and shares no code with the C++. paper_bytes() returns the size that
the scheme of Bicer et al. 2014, section III-C, needs for an array.
"""

import zlib

import numpy as np

CODE_BITS = {32: 5, 64: 6}
GROUP = 8
BLOCK = 1024


def varint(data, at):
    number = shift = 0
    while True:
        byte = data[at]
        number |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return number, at


def width_of(code, bits):
    if bits == 32:
        return 32 if code == 31 else code
    assert code <= 57
    return 64 if code == 57 else code


def fields(data, at, widths):
    """Consecutive numbers of these widths, lowest bit first, and the position of their end."""
    n_bytes = (sum(widths) + 7) // 8
    bits = int.from_bytes(data[at:at + n_bytes], "little")
    numbers = []
    for width in widths:
        numbers.append(bits & ((1 << width) - 1))
        bits >>= width
    return numbers, at + n_bytes


def block_words(data, at, n, bits):
    """The words of a block of n values that is not empty."""
    form, shift = data[at], data[at + 1]
    n_groups = (n + GROUP - 1) // GROUP
    if form == 1:
        codes, at = fields(data, at + 2, [CODE_BITS[bits]] * n)
        widths = [width_of(code, bits) for code in codes]
    elif form == 7:
        base = data[at + 2]
        codes, at = fields(data, at + 3, [4] * n)
        widths = [base + code for code in codes]
    else:
        shared = n_groups if form == 6 else 1 << (form - 2)
        n_codes = (n_groups + shared - 1) // shared
        codes, at = fields(data, at + 2, [CODE_BITS[bits]] * n_codes)
        widths = [width_of(codes[group // shared], bits)
                  for group in range(n_groups) for _ in range(GROUP)]
    words, at = fields(data, at, widths)
    return [word << shift for word in words[:n]], at


def decode(chunk):
    """The values of a chunk, as unsigned integers of 1, 2, 4 or 8 bytes."""
    assert chunk[:4] == b"XOR\x01"
    assert int.from_bytes(chunk[4:8], "little") == zlib.crc32(chunk[8:])
    kind = chunk[8]
    assert kind >> 5 == 0, "unknown feature bits"
    word_bytes, n_distances, method = 1 << (kind & 3), kind >> 2 & 3, kind >> 4
    n, at = varint(chunk, 9)
    dtype = f"u{word_bytes}"
    if method == 1:
        return np.frombuffer(chunk, dtype, n, at)
    terms = [0]  # Sums of the distances; 0 is the value itself.
    for _ in range(n_distances):
        distance, at = varint(chunk, at)
        terms += [term + distance for term in terms]
    bits = 64 if word_bytes == 8 else 32
    words = []
    while len(words) < n:
        n_block = min(BLOCK, n - len(words))
        if chunk[at] == 0:
            n_empty, at = varint(chunk, at + 1)
            words += [0] * min(n_empty * BLOCK, n - len(words))
        else:
            block, at = block_words(chunk, at, n_block, bits)
            words += block
    assert at == len(chunk)
    for i in range(n):
        for term in terms[1:]:
            if term <= i:
                words[i] ^= words[i - term]
    return np.array(words, dtype=dtype)


def xored(array, axes):
    """Values xored with their neighbours along the last `axes` axes; the first are unchanged."""
    words = np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}")
    for axis in range(-axes, 0):
        shifted = np.zeros_like(words)
        ahead = [slice(None)] * words.ndim
        behind = list(ahead)
        ahead[axis], behind[axis] = slice(1, None), slice(None, -1)
        shifted[tuple(ahead)] = words[tuple(behind)]
        words = words ^ shifted
    return words


def paper_bytes(array):
    """Bytes of the paper's scheme: for each value a count of leading zeros in 5 bits (f64: 6) and
    the remaining bits. The minimum over xor along one, two or three axes."""
    bits = 8 * array.dtype.itemsize
    least = None
    for axes in range(1, min(3, array.ndim) + 1):
        words = xored(array, axes)
        # A count of 5 bits is at most 31, so a value of 0 has one remaining bit.
        n_left = np.ones(words.shape, dtype="i8")
        rest = words >> np.array(1, words.dtype)
        for _ in range(bits - 1):
            n_left += rest != 0
            rest = rest >> np.array(1, rest.dtype)
        total = (int(n_left.sum()) + CODE_BITS[bits] * words.size + 7) // 8
        least = total if least is None else min(least, total)
    return least
