"""Fitted interpolation and modelled codes, for trz_reference.py: sections 11 and 12."""

import math

import numpy as np

from trz_reference_codes import check

NEAR_LIMIT, LEAST_LIMIT, WEIGHT_LIMIT = 2047, 65535, 4095
MAGNITUDE_MAX, SUM_MAX, N_CONTEXTS, N_SYMBOLS = 16383, 2**24 - 1, 41, 140
AXES = (2, 1, 0)  # axes of an array: x, y, z


def signed(number):
    """Zigzag."""
    return number >> 1 ^ -(number & 1)


def odd_axes(cls):
    """The axes along which a class is odd, x first."""
    return [axis for axis in range(3) if cls >> axis & 1]


# 12 Modelled codes

class Bits:
    """A string of bits, lowest first."""

    def __init__(self, data):
        self.number, self.count, self.at = int.from_bytes(data, "little"), len(data), 0

    def take(self, n):
        self.at += n
        return self.number >> (self.at - n) & (1 << n) - 1

    def end(self):
        check((self.at + 7) // 8 == self.count, "a string of bits of another length")


class Model:
    """The codes of section 12, in sequence. n_bits: of a code, 32 or 64."""

    def __init__(self, reader, n_bits=32):
        self.n_bits = n_bits
        self.plain, self.leading = (32, 3) if n_bits == 32 else (16, 2)
        n_tables = reader.byte()
        check(1 <= n_tables <= N_CONTEXTS, "no tables, or too many")
        first = [0] + [reader.byte() for _ in range(n_tables - 1)] + [N_CONTEXTS]
        check(all(a < b for a, b in zip(first, first[1:])), "tables out of order")
        bits = Bits(reader.take(reader.varint()))
        tables = [frequencies(bits) for _ in range(n_tables)]
        bits.end()
        self.table_of = np.repeat(np.arange(n_tables), np.diff(first))
        self.symbol_at = [np.repeat(np.arange(N_SYMBOLS), table).tolist() for table in tables]
        self.frequency = [table.tolist() for table in tables]
        self.start = [(np.cumsum(table) - table).tolist() for table in tables]
        self.bits = Bits(reader.take(reader.varint()))
        n_words = reader.varint()
        self.states = [int(state) for state in reader.array("<u4", 4)]
        check(min(self.states) >= 2**16, "a state below 2^16")
        self.words = iter(reader.array("<u2", n_words).tolist())
        self.turn = 0

    def take(self, contexts):
        """A code for each context."""
        return np.array([self.code(int(self.table_of[c])) for c in contexts], dtype=np.int64)

    def code(self, table):
        state = self.states[self.turn]
        place = state & 4095
        symbol = self.symbol_at[table][place]
        state = self.frequency[table][symbol] * (state >> 12) + place - self.start[table][symbol]
        if state < 2**16:
            word = next(self.words, None)
            check(word is not None, "too few words")
            state = state << 16 | word
        self.states[self.turn] = state
        self.turn = (self.turn + 1) % 4
        if symbol < self.plain:
            return signed(symbol)
        per_length = 1 << self.leading - 1
        length = (symbol - self.plain) // per_length + self.plain.bit_length()
        check(length <= self.n_bits, "a symbol without meaning")
        behind = length - self.leading
        leading = per_length + (symbol - self.plain) % per_length
        return signed(leading << behind | self.bits.take(behind))

    def end(self):
        check(next(self.words, None) is None, "words left over")
        check(self.states == [2**16] * 4, "states that are not those of the beginning")
        self.bits.end()


def frequencies(bits):
    """One table of section 12."""
    table = np.zeros(N_SYMBOLS, dtype=np.int64)
    most, n_listed = bits.take(8), bits.take(8)
    check(most < N_SYMBOLS and n_listed <= N_SYMBOLS, "a symbol that is none")
    symbol = 0
    while symbol < n_listed:
        length = bits.take(4)
        if length == 13:
            symbol += bits.take(4) + 2
            continue
        check(length <= 12, "a length above 12")
        if length > 0:
            check(symbol != most, "a frequency for the symbol that has the rest")
            n = min(length - 1, 3)
            table[symbol] = (1 << n) + bits.take(n) << length - 1 - n
        symbol += 1
    check(table.sum() < 4096, "frequencies beyond 4096")
    table[most] = 4096 - table.sum()
    return table


# 11 Fitted interpolation

def fitted(reader, dtype, extents, patch):
    """Section 11."""
    z, y, x = [1] * (3 - len(extents)) + extents if len(extents) <= 3 else (0, 0, 0)
    check(x >= 8 and all(e == 1 or e >= 8 for e in (z, y)) and (y > 1 or z == 1), "thin extents")
    form = reader.byte()
    check(form <= 1, "unknown form")
    values = Fitted(reader, dtype, (z, y, x), form == 1).values()
    patch(reader, values)
    return values


class Weights:
    """Weights of sections 11.3 and 11.4: the default ones, or those of the chunk."""

    def __init__(self, cls):
        n = len(odd_axes(cls))
        far, near = -(32 // n), 288 // n
        self.groups = [0] + [near if g % 2 == 0 else far for g in range(1, 2 * n)]
        self.groups += [0] * ([0, 2, 5, 10][n] - 2 * n)
        self.near, self.aslant, self.before, self.least = 192 // n, 24 * (cls != 1), 24, 32
        self.n_odd = n

    def read(self, reader):
        """Replace all weights by those of the chunk."""
        def number(limit):
            folded = reader.varint()
            check(folded <= 2 * limit, "a weight beyond its limit")
            return signed(folded)
        self.groups[1:] = [number(WEIGHT_LIMIT) for _ in self.groups[1:]]
        self.near, self.aslant, self.before = (number(NEAR_LIMIT) for _ in range(3))
        self.least = number(LEAST_LIMIT)
        return self

    def complete(self):
        """Weights of all groups, including the first."""
        sizes = [2] * (2 * self.n_odd) + ([4] if self.n_odd == 2 else [4, 4, 4, 8])
        others = sum(w * size // 2 for w, size in zip(self.groups[1:], sizes[1:]))
        return [256 - others] + self.groups[1:]


class Fitted:
    """One chunk."""

    def __init__(self, reader, dtype, extents, planar):
        self.dtype, self.planar = dtype, planar
        self.extents = [extents]
        while max(self.extents[-1][1 if planar else 0:]) > 4:
            z, y, x = self.extents[-1]
            self.extents.append((z if planar else -(-z // 2), -(-y // 2), -(-x // 2)))
        top = len(self.extents) - 1
        self.alpha, self.beta = reader.take(2)
        check(min(self.alpha, self.beta) >= 16, "alpha or beta below 1")
        self.step, offset = reader.array(dtype, 2)
        n_own = reader.byte()
        check(n_own <= min(8, top), "too many levels with weights")
        self.weights = {(level, cls): Weights(cls).read(reader) for level in range(n_own)
                        for cls in range(1, 8) if math.prod(self.class_shape(level, cls)) > 0}
        self.grid, self.magnitudes = self.top(reader, offset, self.step_of(top))
        self.model = Model(reader)

    def step_of(self, level):
        """The step of a level, like in section 3.2."""
        divisor, beta = 1.0, self.beta / 16
        for _ in range(level):
            divisor = divisor * (self.alpha / 16) if divisor < beta else divisor
        return self.dtype.type(float(self.step) / min(divisor, beta))

    def class_shape(self, level, cls):
        """Extents of a class, z first."""
        shape = [extent // 2 if cls >> axis & 1 else (extent + 1) // 2
                 for axis, extent in zip((2, 1, 0), self.extents[level])]
        if self.planar:
            shape[0] = 0 if cls & 4 else self.extents[level][0]
        return tuple(shape)

    def top(self, reader, value, step):
        """Section 11.2."""
        grid = np.empty(self.extents[-1], self.dtype)
        codes = []
        for i in range(grid.size):
            number = reader.varint()
            check(number < 2**32, "a code beyond 32 bits")
            codes.append(signed(number))
            value = value + self.dtype.type(codes[-1]) * step
            grid.flat[i] = value
        return grid, magnitudes_of(np.array(codes)).reshape(grid.shape)

    def values(self):
        """Level after level, class after class."""
        for level in range(len(self.extents) - 2, -1, -1):
            grids, magnitudes = {0: self.grid}, {0: self.magnitudes}
            for cls in range(1, 8):
                if math.prod(self.class_shape(level, cls)) > 0:
                    self.one_class(level, cls, grids, magnitudes)
            self.grid = self.gather(level, grids)
            self.magnitudes = self.gather(level, magnitudes)
        self.model.end()
        return self.grid.reshape(-1)

    def gather(self, level, parts):
        """All points of a level from its classes."""
        whole = np.empty(self.extents[level], parts[0].dtype)
        for cls, part in parts.items():
            z = slice(None) if self.planar else slice(cls >> 2, None, 2)
            whole[z, cls >> 1 & 1::2, cls & 1::2] = part
        return whole

    def one_class(self, level, cls, grids, magnitudes):
        """Sections 11.3 to 11.5."""
        weights = self.weights.get((level, cls)) or Weights(cls)
        shape = self.class_shape(level, cls)
        prediction = None
        for group, weight in zip(self.groups(level, cls, grids, shape), weights.complete()):
            term = group * (self.dtype.type(weight) * self.dtype.type(1 / 512))
            prediction = term if prediction is None else prediction + term
        around = self.around(cls, magnitudes, shape, weights)
        codes, own = np.empty(shape, np.int64), np.zeros(shape, np.int64)
        for z, y in np.ndindex(shape[:2]):
            rows = [own[z, y - 1]] * (y > 0) + [own[z - 1, y]] * (z > 0)
            total = around[z, y]
            for row in (rows * 2)[:2]:
                row = np.pad(row, 1, "edge")
                total = total + (row[:-2] + 2 * row[1:-1] + row[2:]) * weights.before
            codes[z, y] = self.model.take(contexts_of(total))
            own[z, y] = magnitudes_of(codes[z, y])
        magnitudes[cls] = own
        grids[cls] = prediction + codes.astype(self.dtype) * self.step_of(level)

    def groups(self, level, cls, grids, shape):
        """The sums of section 11.3, in their order."""
        def tap(source, offsets):
            at = tuple(slice(1 + offsets.get(axis, 0), 1 + offsets.get(axis, 0) + shape[2 - axis])
                       for axis in (2, 1, 0))
            return extended[source][at]

        odd = odd_axes(cls)
        extended = {part: self.extend(level, part, grid) for part, grid in grids.items()}
        for axis in odd:
            source = cls ^ 1 << axis
            yield tap(source, {axis: 0}) + tap(source, {axis: 1})
            yield tap(source, {axis: -1}) + tap(source, {axis: 2})
        for corner in (3, 5, 6, 7):
            if cls & corner == corner:
                axes = odd_axes(corner)
                taps = [tap(cls ^ corner, {axis: k >> bit & 1 for bit, axis in enumerate(axes)})
                        for k in range(2 ** len(axes))]
                while len(taps) > 1:
                    taps = [a + b for a, b in zip(taps[::2], taps[1::2])]
                yield taps[0]

    def extend(self, level, cls, grid):
        """Add one value before and two after along each axis (11.3). Only even axes use them."""
        for axis in range(3):
            array_axis = 2 - axis
            line = np.moveaxis(grid, array_axis, 0)
            n, extent = len(line), self.extents[level][array_axis]
            first, last = line[0], line[-1]
            if n == 1 or cls >> axis & 1 or axis == 2 and self.planar:
                before, behind, beyond = first, last, last
            else:
                rise, slope, three = first - line[1], last - line[-2], self.dtype.type(3)
                before = rise * three + line[2] if n > 2 else first + rise
                if n > 2 and extent % 2 == 1:
                    behind = beyond = slope * three + line[-3]
                else:
                    behind = last + slope
                    beyond = behind + slope
            line = np.concatenate([before[None], line, behind[None], beyond[None]])
            grid = np.moveaxis(line, 0, array_axis)
        return grid

    @staticmethod
    def around(cls, magnitudes, shape, weights):
        """The sums of section 11.4 without the previous rows."""
        total = np.full(shape, weights.least, np.int64)
        for other, part in magnitudes.items():
            apart = odd_axes(cls ^ other)
            if len(apart) == 3:
                continue
            weight = weights.near if len(apart) == 1 else weights.aslant
            padded = np.pad(part, 1, "edge")
            for k in range(2 ** len(apart)):
                offset = [1, 1, 1]
                for bit, axis in enumerate(apart):
                    if k >> bit & 1:
                        offset[2 - axis] += 1 if cls >> axis & 1 else -1
                total += weight * padded[tuple(slice(o, o + n) for o, n in zip(offset, shape))]
        return total


def magnitudes_of(codes):
    """Section 11.4."""
    return np.minimum(np.abs(codes), MAGNITUDE_MAX)


def contexts_of(sums):
    """Section 11.4: two contexts an octave."""
    contexts = []
    for total in np.clip(sums, 0, SUM_MAX).tolist():
        e = total.bit_length() - 1
        contexts.append(0 if total < 16 else 2 * (e - 4) + (total >> e - 1 & 1) + 1)
    return contexts
