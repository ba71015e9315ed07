"""A decoder for chunks of the codec trz in plain Python, written only from trz/docs/trz-format.md.

It proves that the document is sufficient, and the tests compare our C++ decoder with it bit for
bit. Read it together with the document: it is clear, strict about errors, and slow. Every function
cites the section that it follows. Byte sections and codes (sections 4 to 6) are in
trz_reference_codes.py. Patches (7), exact chunks (9) and fitted ones (11, 12) also have separate
files.

    values = decode(chunk, n_values)        # a one-dimensional array
"""

import math
import zlib

import numpy as np

from trz_reference_codes import (
    Book, FormatError, Reader, bits_of, book_for, byte_section, check, read_codes)
from trz_reference_exact import exact_values, running_sums
from trz_reference_fitted import fitted
from trz_reference_patches import patch

DTYPES = [np.dtype(name) for name in
          ("<f4", "<f8", "<i1", "<i2", "<i4", "<i8", "<u1", "<u2", "<u4", "<u8")]
(STORED, CONSTANT, EXACT, LATTICE, POINTWISE, VOCABULARY, FITTED, NESTED, DECIMAL,
 JOINED, REFINED) = range(11)


def decode(chunk, n_values=None, book=None):
    """Decode a chunk of n_values values (None: any number). `book`: bytes of a shared book."""
    with np.errstate(all="ignore"):
        return decoded(Reader(chunk), n_values, None if book is None else Book(book))


def decoded(reader, n_values, book):
    """Section 1."""
    dtype, method, extents = read_head(reader)
    n = math.prod(extents)
    check(n_values is None or n == n_values, f"{n} values, not {n_values}")
    if method == JOINED:
        return joined(reader, dtype, n, book)
    if method == REFINED:
        return refined(reader, dtype, n, book)
    return content(reader, dtype, method, extents, book)


def content(reader, dtype, method, extents, book):
    """Decode everything after a head."""
    n = math.prod(extents)
    check(method not in (JOINED, REFINED), "joined or refined within another chunk")
    check(n > 0 or method == STORED, "no values, but not stored")
    if method == STORED:
        values = reader.array(dtype, n)
    elif method == CONSTANT:
        values = np.repeat(reader.array(dtype), n)
    elif method == EXACT:
        values = exact_values(reader, dtype, extents, book)
    else:
        check(dtype.kind == "f", "integers within a bound")
        body = {LATTICE: lattice, POINTWISE: pointwise, VOCABULARY: vocabulary, NESTED: nested,
                DECIMAL: decimal,
                FITTED: lambda *a: fitted(*a[:3], patch)}[method]
        values = body(reader, dtype, extents, book)
    reader.end()
    return values


def joined(reader, dtype, n, book):
    """Section 15."""
    n_parts = reader.varint()
    check(2 <= n_parts <= 64, "another number of parts than 2 to 64")
    parts = [(reader.varint(), reader.varint()) for _ in range(n_parts)]
    check(all(own > 0 for own, _ in parts), "a part without values")
    check(sum(own for own, _ in parts) == n, "another number of values in all parts")
    values = np.empty(n, dtype)
    begin = 0
    for own, n_bytes in parts:
        part = Reader(reader.take(n_bytes))
        its_dtype, method, extents = read_head(part)
        check(its_dtype == dtype and math.prod(extents) == n, "a part that does not fit")
        whole = (refined(part, dtype, n, book) if method == REFINED
                 else content(part, dtype, method, extents, book))
        values[begin:begin + own] = whole[begin:begin + own]
        begin += own
    reader.end()
    return values


def refined(reader, dtype, n, book, n_read=None):
    """Section 16. Decodes `n_read` planes of a prefix, or all planes if None."""
    check(dtype.kind == "f" and n > 0, "bit planes of no floats")
    n_planes = reader.byte()
    check(1 <= n_planes <= 8, "another number of planes than 1 to 8")
    bound, half = reader.array(dtype, 2)
    check(np.isfinite([bound, half]).all() and bound > 0 and half > 0, "bound or cell")
    n_inner, n_patches, *lengths = (reader.varint() for _ in range(2 + n_planes))
    check(max(n_inner, n_patches, *lengths) <= 1 << 56, "a part that is too long")
    inner, patches = Reader(reader.take(n_inner)), Reader(reader.take(n_patches))
    check_sum(reader, reader.data[8:reader.at])
    its_dtype, method, extents = read_bare_head(inner)
    check(its_dtype == dtype and math.prod(extents) == n, "an inner chunk that does not fit")
    values = content(inner, dtype, method, extents, book)
    n_read = n_planes if n_read is None else n_read
    cells = np.zeros(n, np.int64)
    for length in lengths[:n_read]:
        section = Reader(reader.take(length))
        check_sum(reader, section.data)
        cells = cells * 2 + bits_of(byte_section(section, -(-n // 8)))[:n]
        section.end()
    reader.end()
    if n_read > 0:
        places = (2 * cells + 1) * 2**(n_planes - n_read) - 2**n_planes
        values = np.where(np.isfinite(values), values + places.astype(dtype) * half, values)
    patch(patches, values)
    patches.end()
    return values


def check_sum(reader, data):
    """Check that the CRC-32 that follows is the one of `data`."""
    check(zlib.crc32(data) == int.from_bytes(reader.take(4), "little"), "a part's checksum")


def prefix(chunk, n_read, book=None):
    """Decode the bytes of a refined chunk up to the end of its first `n_read` planes."""
    with np.errstate(all="ignore"):
        reader = Reader(chunk)
        reader.take(8)
        dtype, method, extents = read_bare_head(reader)
        check(method == REFINED, "no bit planes")
        return refined(reader, dtype, math.prod(extents), None if book is None else Book(book),
                       n_read)


def read_head(reader):
    """Type, method and extents of section 1."""
    check(reader.take(3) == b"TRZ", "not a trz chunk")
    version = reader.byte()
    check(not 2 <= version <= 7, f"format version {version} is of a development version older "
          "than format 1, which no release reads; write the data again")
    check(version == 1, f"needs a newer trz: format version {version}, expected 1")
    checksum = int.from_bytes(reader.take(4), "little")
    check(zlib.crc32(reader.data[8:]) == checksum, "the checksum does not fit")
    return read_bare_head(reader)


def read_bare_head(reader):
    """The head from byte 8 on."""
    kinds, count = reader.take(2)
    dtype, method, features = kinds & 15, kinds >> 4, count & 0xF8
    check(features == 0, f"needs a newer trz: unknown feature bits 0x{features:02x}")
    check(method <= REFINED, f"needs a newer trz: unknown method {method}")
    check(dtype < len(DTYPES), f"needs a newer trz: unknown element type {dtype}")
    check(count <= 4, "more than four extents")
    extents = [reader.varint() for _ in range(count)]
    check(extents == [0] or all(extent >= 2 for extent in extents), "an extent of 0 or 1")
    return DTYPES[dtype], method, extents


# 2 and 3 The lattice

def lattice(reader, dtype, extents, book):
    """Section 2."""
    values = lattice_body(reader, dtype, extents, book)
    patch(reader, values)
    return values


def lattice_body(reader, dtype, extents, book, coarse=None):
    """Section 3. With `coarse`, the values of level 1: as in section 13."""
    first = reader.byte()
    predictor, packed, shared = first & 15, bool(first & 0x40), first & 0x80
    check(first & 0x30 == 0 and predictor in (0, 1, 2, 3, 4, 8), "unknown prediction")
    check(coarse is None or predictor == 8, "a nested chunk that is not interpolated")
    if predictor == 8:
        choices = Choices(reader)
    step, offset = reader.array(dtype, 2)
    book = book_for(reader, book) if shared else None
    n_given = 0 if coarse is None else coarse.size
    codes = read_codes(reader, math.prod(extents) - n_given, packed, book)
    if predictor == 8:
        return Interpolation(choices, step, offset, codes).values(three(extents), coarse)
    return offset + running_sums(codes, extents, predictor, 32).astype(dtype) * step


def three(extents):
    """z', y, x of section 3.2."""
    t, z, y, x = [1] * (4 - len(extents)) + extents
    return t * z, y, x


NEAR = {0: 0.5, 1: 0.5625, 2: 0.575}
FAR = {0: 0.0, 1: -0.0625, 2: -0.075}
X, Y, Z = 0, 1, 2
EVEN, ODD, ALL = slice(0, None, 2), slice(1, None, 2), slice(None)
JOINT = 3


class Choices:
    """Parameters of a body with interpolation before its step (section 3)."""

    def __init__(self, reader):
        axes = reader.byte()
        self.last_axis = axes & 3
        self.splines = [axes >> shift & 3 for shift in (2, 4, 6)]
        check(3 not in self.splines, "unknown spline")
        self.weights = list(reader.take(3)) if self.last_axis == JOINT else None
        check(self.weights is None or max(self.weights) <= 15, "a weight above 15")
        self.alpha, self.beta = reader.take(2)
        check(min(self.alpha, self.beta) >= 16, "alpha or beta below 1")


class Interpolation:
    """Sections 3.2 to 3.4. `level` is the array z, y, x of the level that is being filled."""

    def __init__(self, choices, step, offset, codes):
        self.choices, self.step, self.offset = choices, step, offset
        self.codes, self.n_used = codes, 0
        self.T = step.dtype.type
        self.level = None

    def values(self, extents, coarse=None):
        """All values, row-major. The codes are those of all levels, or only of level 0."""
        levels = [extents]
        while max(levels[-1]) > 4 and (coarse is None or len(levels) < 2):
            levels.append(tuple(-(-extent // 2) for extent in levels[-1]))
        top = levels.pop()
        if coarse is None:
            self.top(top, self.step_of(len(levels)))
        else:
            self.level = coarse.reshape(top)
        while levels:
            coarser, self.level = self.level, np.zeros(levels.pop(), self.T)
            self.level[::2, ::2, ::2] = coarser
            self.level_step = self.step_of(len(levels))
            if self.choices.last_axis == JOINT:
                self.joint_passes()
            else:
                self.passes()
        return self.level.ravel()

    def step_of(self, level):
        """The step of a level."""
        alpha, beta = self.choices.alpha / 16, self.choices.beta / 16
        f = 1.0
        for _ in range(level):
            if f < beta:
                f = min(f * alpha, beta)
        return self.T(np.float64(self.step) / f)

    def residuals(self, count):
        """value(c) of the next codes."""
        self.n_used += count
        return self.codes[self.n_used - count:self.n_used].astype(self.T)

    def top(self, extents, step):
        """The coarsest level."""
        p, zero, one = self.offset, self.T(0), self.T(1)
        self.level = np.empty(extents, self.T)
        for i in range(self.level.size):
            p = ((p * zero + p * zero) + (p * one + p * zero)) + self.residuals(1)[0] * step
            self.level.flat[i] = p

    # Prediction (3.2; the shares: 3.4)

    def new_points(self, axes, z, y, xs):
        """The points xs of row (z, y), predicted along the axes."""
        p = self.prediction(axes, z, y, xs)
        self.level[z, y, xs] = p + self.residuals(p.size) * self.level_step

    def prediction(self, axes, z, y, xs):
        along = {axis: self.neighbours(axis, z, y, xs) for axis in axes}
        four_weights = any(weights is not None for _, weights in along.values())
        p = None
        for axis, ((a, b, c, d), weights) in along.items():
            spline, share = self.choices.splines[axis], self.share(axis, axes)
            near, far = self.T(NEAR[spline]), self.T(FAR[spline])
            if four_weights:
                weights = weights or (far, near, near, far)
                w0, w1, w2, w3 = [self.T(weight) * share for weight in weights]
                term = (a * w0 + d * w3) + (b * w1 + c * w2)
            else:
                term = (b + c) * (near * share) + (a + d) * (far * share)
            p = term if p is None else p + term
        return p

    def share(self, axis, axes):
        """The axis's share of the prediction."""
        if len(axes) == 1:
            return self.T(1)
        weights = self.choices.weights
        total = sum(weights[other] for other in axes)
        return self.T(weights[axis] / total) if total else self.T(0)

    def neighbours(self, axis, z, y, xs):
        """a, b, c, d, and the four weights where one of these is missing."""
        if axis == X:
            line, n_odd = self.line_with_ghosts(z, y), self.level.shape[2] // 2
            return [line[i:i + n_odd] for i in range(4)], None
        plane = self.level[:, y, xs] if axis == Z else self.level[z, :, xs]
        known = plane[::2]
        k = (z if axis == Z else y) // 2
        b = known[k]
        found = [known[i] if 0 <= i < len(known) else None for i in (k - 1, k, k + 1, k + 2)]
        linear = self.choices.splines[axis] == 0
        weights = border_weights([value is not None for value in found], linear)
        return [b if value is None else value for value in found], weights

    def line_with_ghosts(self, z, y):
        """E_{-1} .. E_{m+1} of a row."""
        n_x = self.level.shape[2]
        e = list(self.level[z, y, ::2])
        m, last = len(e), e[-1]
        if m == 1:
            return np.array(e * 4)
        three, half = self.T(3), self.T(0.5)
        s = last - e[m - 2]
        if m == 2:
            before, after = e[0] - s, last + s
        else:
            before = (e[0] - e[1]) * three + e[2]
            after = (last - e[m - 2]) * three + e[m - 3]
        behind = after
        if n_x % 2 == 0:
            spline = self.choices.splines[X]
            if spline == 0:
                after = last + s
            else:
                near = self.T(NEAR[spline])
                g = self.T(1 / FAR[spline])
                behind = ((last + s * half) - (last + after) * near) * g - e[m - 2]
        return np.array([before, *e, after, behind])

    # The order of the points (3.3 and 3.4)

    def passes(self):
        """Last axis 0, 1 or 2."""
        n_z, n_y, _ = self.level.shape
        last_axis = self.choices.last_axis
        if (last_axis == Y and n_y == 1) or (last_axis == Z and n_z == 1):
            last_axis = X
        if last_axis == Z:
            self.planes_then_between(self.plane_then_rows, self.whole_plane)
            return
        for z in range(n_z):
            if last_axis == Y:
                self.plane_then_rows(z)
                continue
            self.even_rows_along_z(z)
            for y in range(1, n_y, 2):
                self.new_points([Y], z, y, EVEN)
            for y in range(n_y):
                self.new_points([X], z, y, ODD)

    def even_rows_along_z(self, z):
        if z % 2:
            for y in range(0, self.level.shape[1], 2):
                self.new_points([Z], z, y, EVEN)

    def plane_then_rows(self, z):
        """plane(z) of section 3.3."""
        n_y = self.level.shape[1]
        self.even_rows_along_z(z)
        for y in range(0, n_y, 2):
            self.new_points([X], z, y, ODD)
        for y in range(1, n_y, 2):
            self.new_points([Y], z, y, ALL)

    def whole_plane(self, z):
        for y in range(self.level.shape[1]):
            self.new_points([Z], z, y, ALL)

    def planes_then_between(self, even_plane, odd_plane):
        """Code even planes in order, and odd planes as soon as four even ones are complete."""
        n_z = self.level.shape[0]
        waiting = list(range(1, n_z, 2))
        for z in range(0, n_z, 2):
            even_plane(z)
            if z >= 4:
                assert waiting[0] == z - 3
                odd_plane(waiting.pop(0))
        for z in waiting:
            odd_plane(z)

    def joint_passes(self):
        """Section 3.4."""
        n_y = self.level.shape[1]
        even_rows, odd_rows = range(0, n_y, 2), range(1, n_y, 2)

        def plane(z):
            along_z = [Z] if z % 2 else []
            for rows, xs, axes in ((even_rows, EVEN, []), (even_rows, ODD, [X]),
                                   (odd_rows, EVEN, [Y]), (odd_rows, ODD, [X, Y])):
                if axes + along_z:
                    for y in rows:
                        self.new_points(axes + along_z, z, y, xs)

        self.planes_then_between(plane, plane)


def border_weights(found, linear):
    """The table "missing" of section 3.2; None if no value is missing."""
    has_a, _, has_c, has_d = found
    if not has_c:
        return (-0.5, 1.5, 0, 0) if has_a else (0, 1, 0, 0)
    if has_a and has_d:
        return None
    if linear or not (has_a or has_d):
        return (0, 0.5, 0.5, 0)
    return (-0.125, 0.75, 0.375, 0) if has_a else (0, 0.375, 0.75, -0.125)


# 13 Nested

def nested(reader, dtype, extents, book):
    """Section 13: all values, with the patches of both chunks."""
    return nested_values(reader, dtype, extents, book, 3)[1]


def nested_values(reader, dtype, extents, book, views_left):
    check(views_left > 0, "more than three chunks within one another")
    check(max(three(extents)) > 4, "nothing to nest")
    halves = tuple(-(-extent // 2) for extent in three(extents))
    inner = Reader(reader.take(reader.varint()))
    head = read_head(inner)
    check(head[0] == dtype, "an inner chunk of another type")
    check(head[2] == [half for half in halves if half > 1], "an inner chunk of other extents")
    if head[1] == LATTICE:
        coarse = lattice_body(inner, dtype, head[2], book)
        coarse_patched = coarse.copy()
        patch(inner, coarse_patched)
    else:
        check(head[1] == NESTED, "an inner chunk of another method")
        coarse, coarse_patched = nested_values(inner, dtype, head[2], book, views_left - 1)
    inner.end()
    predicted = lattice_body(reader, dtype, extents, book, coarse)
    values = predicted.copy()
    values.reshape(three(extents))[::2, ::2, ::2] = coarse_patched.reshape(halves)
    patch(reader, values)
    return predicted, values


# 8 Pointwise

B = {4: "0x1.3504f4p+1", 8: "0x1.3504f333f9de6p+1"}
A = {4: "0x1.b504f4p+1", 8: "0x1.b504f333f9de6p+1"}
RANGE = {4: (-126, 127.96875), 8: (-1022, 1023.96875)}


def pointwise(reader, dtype, extents, book):
    """Section 8."""
    work_type = reader.byte()
    check(work_type <= 1 and (work_type == 1 or dtype.itemsize == 4), "unknown work type")
    work = DTYPES[work_type]
    y = lattice_body(reader, work, extents, book)
    signs = bits_of(byte_section(reader, -(-y.size // 8)))
    magnitudes = magnitudes_of(y, RANGE[dtype.itemsize]).astype(dtype)
    values = np.where(signs[:y.size] == 1, -magnitudes, magnitudes)
    patch(reader, values)
    return values


def magnitudes_of(y, limits):
    """Approximately 2^y, in the type of y."""
    T, n_bytes = y.dtype.type, y.dtype.itemsize
    n_mantissa_bits = {4: 23, 8: 52}[n_bytes]
    a, b = T(float.fromhex(A[n_bytes])), T(float.fromhex(B[n_bytes]))
    low, high = map(T, limits)
    R = T(1.5 * 2.0**n_mantissa_bits)
    y = np.where(y > low, y, low)
    y = np.where(y < high, y, high)
    k = (y - T(0.5)) + R
    f = y - (k - R)
    m = T(1) + (f * b) / (a - f)
    word = f"<u{n_bytes}"
    return (m.view(word) + (k.view(word) << np.array(n_mantissa_bits, word))).view(y.dtype)


__all__ = ["FormatError", "decode", "prefix"]


# 10 Vocabulary

def vocabulary(reader, dtype, extents, _):
    """Section 10."""
    n, n_words = math.prod(extents), reader.varint()
    check(2 <= n_words <= min(n, 65536), "too few or too many words")
    words = lattice_body(reader, dtype, [n_words], None)
    ranks_reader = Reader(reader.take(reader.varint()))
    ranks = exact_values(ranks_reader, np.dtype("u1" if n_words <= 256 else "<u2"), extents, None)
    ranks_reader.end()
    check(ranks.max() < n_words, "a rank beyond the words")
    values = words[ranks]
    patch(reader, values)
    return values


# 14 Decimal

QUOTIENT, PRODUCT, RECIPROCAL = range(3)


def decimal(reader, dtype, extents, _):
    """Section 14."""
    kind = reader.byte()
    check(kind <= RECIPROCAL, "unknown kind of decimals")
    scale, base, offset = reader.array(dtype, 3)
    check(np.isfinite([scale, base, offset]).all() and scale != 0, "scale, base or offset")
    inner = Reader(reader.take(reader.varint()))
    inner_dtype, method, inner_extents = read_bare_head(inner)
    check(math.prod(inner_extents) == math.prod(extents), "another number of numbers")
    check(method not in (NESTED, DECIMAL), "numbers of this method")
    check(inner_dtype in (dtype, np.dtype("<i4")), "numbers of this type")
    c = content(inner, inner_dtype, method, inner_extents, None)
    if inner_dtype == dtype:
        R = dtype.type(1.5 * 2.0**{4: 23, 8: 52}[dtype.itemsize])
        k = (c + R) - R
    else:
        k = c.astype(dtype)
    m = k + base
    q = {QUOTIENT: lambda: m / scale, PRODUCT: lambda: m * scale, RECIPROCAL: lambda: scale / m}
    values = q[kind]() + offset
    patch(reader, values)
    return values
