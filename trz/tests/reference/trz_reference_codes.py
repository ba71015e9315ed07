"""Sections 4 to 6 of trz/docs/trz-format.md in plain Python: byte sections, Huffman codes, codes.

The lower half of the reference decoder (trz_reference.py is the upper one), written only from the
document and not from our C++. Read it together with the document: it is clear, strict about errors,
and slow. Every function cites the section that it follows.
"""

import zlib

import numpy as np
import zstandard


class FormatError(ValueError):
    """The bytes violate the format: the "error" of the document."""


def check(condition, what):
    """Reject the chunk unless the condition holds."""
    if not condition:
        raise FormatError(what)


class Reader:
    """Reads bytes from first to last."""

    def __init__(self, data):
        self.data, self.at = bytes(data), 0

    def take(self, n_bytes):
        check(n_bytes <= len(self.data) - self.at, "the bytes end too early")
        self.at += n_bytes
        return self.data[self.at - n_bytes:self.at]

    def byte(self):
        return self.take(1)[0]

    def varint(self):
        """Seven bits a byte, least significant first (the introduction)."""
        number = 0
        for i in range(10):
            byte = self.byte()
            number |= (byte & 127) << 7 * i
            if byte < 128:
                check(number < 2**64, "a varint has more than 64 bits")
                return number
        raise FormatError("a varint has more than ten bytes")

    def array(self, dtype, count=1):
        dtype = np.dtype(dtype).newbyteorder("<")
        return np.frombuffer(self.take(dtype.itemsize * count), dtype).copy()

    def rest(self):
        return self.take(len(self.data) - self.at)

    def end(self):
        check(self.at == len(self.data), "bytes are left over")


class Bits:
    """A string of bits, from the top bit of each byte down (section 6.1)."""

    def __init__(self, reader):
        self.reader, self.byte, self.n_left = reader, 0, 0

    def bit(self):
        if self.n_left == 0:
            self.byte, self.n_left = self.reader.byte(), 8
        self.n_left -= 1
        return self.byte >> self.n_left & 1

    def number(self, n_bits):
        number = 0
        for _ in range(n_bits):
            number = 2 * number + self.bit()
        return number

    def end(self):
        check(self.number(self.n_left) == 0, "the bits that fill the last byte are not 0")


# 6.1 The Huffman code

def huffman_codes(lengths):
    """The canonical code: a dictionary from strings of "0" and "1" to symbols."""
    used = sorted((length, symbol) for symbol, length in enumerate(lengths) if length)
    space = sum(2**(12 - length) for length, _ in used)
    lone = len(used) == 1 and used[0][0] == 1
    check(space == 2**12 or lone, "the lengths are not those of a complete code")
    codes, code, previous = {}, 0, used[0][0]
    for length, symbol in used:
        code <<= length - previous
        codes[f"{code:0{length}b}"] = symbol
        code, previous = code + 1, length
    return codes


def n_of_part(n):
    """Number of symbols in each part of a payload except the last."""
    if n <= 2048:
        return n
    if n <= 32768:
        return -(-n // 6)
    return -(-n // (12 * -(-n // 196608)))


def huffman_payload(data, n, codes):
    """The n symbols of a payload."""
    m = n_of_part(n)
    n_parts = -(-n // m)
    width = 2 if 12 * m < 65536 else 3
    reader = Reader(data)
    wanted = [int.from_bytes(reader.take(width), "little") for _ in range(n_parts - 1)]
    bits = "".join(f"{byte:08b}" for byte in reader.rest())
    symbols, begin, part_begin = bytearray(), 0, 0
    while len(symbols) < n:
        for end in range(begin + 1, min(begin + 12, len(bits)) + 1):
            symbol = codes.get(bits[begin:end])
            if symbol is not None:
                break
        else:
            raise FormatError("no code of the book")
        symbols.append(symbol)
        begin = end
        if len(symbols) % m == 0 and len(symbols) < n:
            check(begin - part_begin == wanted.pop(0), "a part does not end where it should")
            part_begin = begin
    check(len(bits) - begin < 8 and "1" not in bits[begin:], "more bits than symbols")
    return bytes(symbols)


MIRRORED = [0] + [256 - (i + 1) // 2 if i % 2 else i // 2 for i in range(1, 256)]


def predicted_length(order, v, absent):
    """The prediction of v[i], i = len(v)."""
    i = len(v)
    if i == 0 or (order == 1 and i == 1):
        return absent
    if order == 1:
        return (v[i - 1] + v[i - 2] + 1) // 2
    if order == 0 or i < 16:
        return v[i - 1]
    if i % 16 == 0:
        return v[i - 16]
    left, above = v[i - 1], v[i - 16]
    return sorted([left, above, left + above - v[i - 17]])[1]


def gamma(bits):
    """A count in Elias' gamma code."""
    n_zeros = 0
    while bits.bit() == 0:
        n_zeros += 1
        check(n_zeros <= 9, "a run is too long")
    return 2**n_zeros + bits.number(n_zeros)


def code_lengths(reader):
    """A length for each of the 256 symbols; 0 if a symbol has no code."""
    first = reader.byte()
    longest, order = first >> 4, first & 3
    check(first & 12 == 0, "reserved bits of the code lengths are set")
    bits = Bits(reader)
    if order == 3:
        check(longest == 0, "nibbles with a longest length")
        return code_lengths_in_nibbles(bits)
    check(1 <= longest <= 12, "the longest length is not 1..12")
    absent = longest + 1
    v = []
    while len(v) < 256:
        p = predicted_length(order, v, absent)
        run = p == absent and all(before == absent for before in v[-2:])
        if run:
            v += [absent] * (gamma(bits) - 1)
            if len(v) >= 256:
                break
        u = 0
        while u < 5 and bits.bit():
            u += 1
        if u == 5:
            v.append(bits.number(4))
        else:
            v.append(absent - 1 - u if run else p + (0, 1, -1, 2, -2)[u])
        check(1 <= v[-1] <= absent, "a length is out of range")
    check(len(v) == 256, "a run passes the last symbol")
    bits.end()
    lengths = [0] * 256
    for i, length in enumerate(v):
        lengths[MIRRORED[i] if order == 1 else i] = length % absent
    return lengths


def code_lengths_in_nibbles(bits):
    """Order 3."""
    lengths = []
    while len(lengths) < 256:
        nibble = bits.number(4)
        check(nibble not in (13, 14), "nibble 13 or 14")
        lengths += [nibble] if nibble < 15 else [0] * (bits.number(4) + 3)
    check(len(lengths) == 256, "a run passes the last symbol")
    bits.end()
    return lengths


class Book:
    """Shared Huffman codes (section 6.2)."""

    def __init__(self, data):
        reader = Reader(data)
        check(reader.take(5) == b"TRZB\x01", "not a book of version 1")
        kinds = int.from_bytes(reader.take(5), "little")
        check(kinds < 2**33, "unknown kinds")
        self.codes = {kind: huffman_codes(code_lengths(reader))
                      for kind in range(33) if kinds >> kind & 1}
        reader.end()
        self.id = zlib.crc32(data)


def book_for(reader, book):
    """Check that `book` has the id that comes next, and return it."""
    book_id = int.from_bytes(reader.take(4), "little")
    check(book is not None and book.id == book_id, "the shared book is another or missing")
    return book


# 6 Byte sections

CLASS_IDS, EXCEPTIONS = 0, 32


def byte_section(reader, n, book=None, kind=None):
    """A stream of n bytes. `kind` is the number of its code in a shared book, or None."""
    form = reader.byte()
    check(form <= 5 and (form < 2 or n > 0), "unknown form of a section, or an empty one")
    if form == 0:
        return reader.take(n)
    if form == 1:
        return reader.take(1) * n
    if form == 5:
        return runs(reader, n)
    if form == 3:
        check(book is not None and kind in book.codes, "the book has no code for this section")
        codes = book.codes[kind]
    n_payload = reader.varint()
    if form == 2:
        codes = huffman_codes(code_lengths(reader))
    payload = reader.take(n_payload)
    return zstd_frame(payload, n) if form == 4 else huffman_payload(payload, n, codes)


def zstd_frame(payload, n):
    """The n bytes of one Zstandard frame."""
    try:
        content = zstandard.get_frame_parameters(payload).content_size
        check(content in (n, zstandard.CONTENTSIZE_UNKNOWN), "a Zstandard frame of another size")
        data = zstandard.ZstdDecompressor().decompress(
            payload, max_output_size=n, allow_extra_data=False)
    except zstandard.ZstdError as error:
        raise FormatError(str(error)) from error
    check(len(data) == n, "a Zstandard frame of another size")
    return data


def runs(reader, n):
    """Form 5."""
    c, s = reader.take(2)
    check(c != s, "runs of one digit")
    n_tokens = reader.varint()
    check(1 <= n_tokens <= n, "more tokens than bytes")
    check(reader.data[reader.at:reader.at + 1] in (b"\0", b"\1", b"\2"), "the form of the tokens")
    output, weight = bytearray(), 1
    for token in byte_section(reader, n_tokens):
        if token in (c, s):
            count = weight if token == c else 2 * weight
            check(count <= n - len(output), "a run passes the end")
            output += bytes([c]) * count
            weight *= 2
        else:
            output.append(token)
            weight = 1
    check(len(output) == n, "tokens for another number of bytes")
    return bytes(output)


# 4 and 5 Groups of codes and their sections

def bits_of(data):
    """Bits as an array of 0 and 1, bit 0 of byte 0 first."""
    return np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little").astype(np.int64)


def planes_sum(planes):
    """The numbers of a group's planes: the sum of 2^b times bit i of plane b."""
    numbers = np.zeros(64, np.int64)
    for b in range(len(planes) // 8):
        numbers += bits_of(planes[8 * b:8 * b + 8]) << b
    return numbers


def signed_of(z):
    """c from z = 2 c or -2 c - 1 (section 4.3)."""
    return -(z >> 1) - 1 if z & 1 else z >> 1


def packed_codes(reader, n_groups):
    """Sections 4.3 and 5."""
    widths = byte_section(reader, n_groups)
    check(all(width <= 32 for width in widths), "a width above 32")
    codes = np.empty((n_groups, 64), np.int64)
    planes = Reader(reader.take(8 * sum(widths)))
    for group, width in enumerate(widths):
        z = planes_sum(planes.take(8 * width))
        codes[group] = np.where(z & 1, -(z >> 1) - 1, z >> 1)
    return codes.ravel()


def field_bits(class_id):
    """Bits of a field (section 4.1)."""
    return {1: 2, 2: 4, 3: 4}.get(class_id, 8)


def fields_of(data, n_bits):
    """The 64 signed fields of a group."""
    fields = bits_of(data).reshape(64, n_bits) @ (1 << np.arange(n_bits))
    return np.where(fields >> (n_bits - 1), fields - (1 << n_bits), fields)


def exceptions(reader, n_most, book):
    """The exceptions' codes (sections 4.4 and 5)."""
    count = reader.varint()
    check(count <= n_most, "more exceptions than codes")
    if count == 0:
        return []
    symbols = byte_section(reader, count, book, EXCEPTIONS)
    check(max(symbols) <= 248, "a symbol above 248")
    lengths = [symbol - 224 + 8 if symbol >= 224 else 0 for symbol in symbols]
    n_bits = sum(length - 1 for length in lengths if length)
    string = int.from_bytes(reader.take(-(-n_bits // 8)), "little")
    codes = []
    for symbol, length in zip(symbols, lengths):
        z = symbol
        if length:
            z = (1 << length - 1) + (string & (1 << length - 1) - 1)
            string >>= length - 1
        codes.append(signed_of(z))
    return codes


def grouped_codes(reader, n_groups, book):
    """Sections 4.1 and 5."""
    ids = byte_section(reader, n_groups, book, CLASS_IDS)
    check(all(class_id <= 31 for class_id in ids), "a class above 31")
    shifts = [max(0, class_id - 6) for class_id in ids]
    planes = Reader(reader.take(8 * sum(shifts)))
    streams = {class_id: Reader(byte_section(
        reader, ids.count(class_id) * 8 * field_bits(class_id), book, class_id))
        for class_id in sorted(set(ids)) if class_id > 0}
    whole = exceptions(reader, 64 * n_groups, book)[::-1]
    codes = np.zeros((n_groups, 64), np.int64)
    for group, (class_id, shift) in enumerate(zip(ids, shifts)):
        if class_id == 0:
            continue
        n_bits = field_bits(class_id)
        v = fields_of(streams[class_id].take(8 * n_bits), n_bits)
        codes[group] = (v << shift) + planes_sum(planes.take(8 * shift))
        for i in np.flatnonzero(v == -1 << n_bits - 1):
            check(whole, "too few exceptions")
            codes[group, i] = whole.pop()
    check(not whole, "exceptions are left over")
    return codes.ravel()


def read_codes(reader, n, packed, book):
    """The n codes of a body as int32 (section 5)."""
    n_groups = -(-n // 64)
    codes = packed_codes(reader, n_groups) if packed else grouped_codes(reader, n_groups, book)
    return codes[:n].astype(np.int32)
