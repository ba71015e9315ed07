"""Chunks of the real encoder, compared with the reference decoder, for test_trz_format.py.

    python trz_format_cases.py bounded      # one of GROUPS; exits with 1 and prints differences

This is a separate program, because everything that loads libh5trz.so runs in its own process (see
test_trz_filter.py). Values must be the same bit for bit. Both decoders must refuse damaged bytes,
or both must return the same values.
"""

import itertools
import pathlib
import sys
import zlib

import numpy as np
import tailrace

TRZ_TESTS = pathlib.Path(__file__).resolve().parents[2] / "trz" / "tests"
sys.path.insert(0, str(TRZ_TESTS / "reference"))
import trz_reference  # noqa: E402

GOLDEN = TRZ_TESTS / "golden"
SHAPES = [(), (1,), (2,), (3,), (5,), (17,), (64,), (65,), (100,), (1000,), (5000,), (2, 2), (4, 9),
          (1, 7), (31, 17), (30, 40), (3, 3, 3), (5, 6, 7), (9, 10, 11), (12, 8, 16), (13, 17, 19),
          (2, 3, 4, 5), (5, 4, 6, 7), (3, 1, 9, 9), (2, 2, 2, 2, 3)]
BOUNDS = [{"abs": 1e-3}, {"abs": 0.1}, {"pw_rel": 1e-2}]
SETTINGS = [
    *({"preset": name} for name in ("default", "fast", "ratio", "max")),
    *({"predictor": "lorenzo", "dimension": n} for n in (1, 2, 3, 4)),
    {"predictor": "none"},
    {"predictor": "interpolation", "preset": "fast"},
    *({"predictor": "interpolation", "spline": spline, "last_axis": last_axis}
      for spline in ("linear", "cubic", "natural") for last_axis in (0, 1, 2, "joint")),
]
INTEGERS = ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8")


def smooth(shape, generator):
    return sum((np.sin(generator.uniform(0.1, 0.6) * axis + generator.uniform(0, 6))
                for axis in np.indices(shape)), np.zeros(shape))


def bounded():
    """Every shape, bound, preset, predictor, spline and last axis, with and without noise."""
    generator = np.random.default_rng(1)
    for shape, noise in itertools.product(SHAPES, (0, 0.05)):
        values = smooth(shape, generator) + noise * generator.standard_normal(shape)
        cases = list(itertools.product(("f4", "f8"), BOUNDS, SETTINGS))
        for dtype, bound, setting in cases[noise > 0::2 if values.size < 2000 else 6]:
            yield values.astype(dtype), {**bound, **setting}


def special():
    """NaN, infinities, fill values, constants, extreme magnitudes, signs, and a random cloud."""
    generator = np.random.default_rng(2)
    bounds = [{"abs": 1e-2}, {"abs": 1e30}, {"abs": 1e-30}, {"pw_rel": 1e-3}, {"pw_rel": 1e-6},
              {"pw_rel": 0.9}, {"rel": 1e-3}, {}]
    for shape, dtype in itertools.product([(7,), (130,), (9, 20), (6, 7, 8)], ("f4", "f8")):
        values = smooth(shape, generator).astype(dtype)
        kinds = [values, np.zeros_like(values), np.full_like(values, np.nan), -np.abs(values),
                 values * (np.finfo(dtype).max / 8), values * (np.finfo(dtype).tiny * 3),
                 generator.standard_normal(shape).astype(dtype),
                 10.0 ** (30 * values), np.full_like(values, -2.5)]
        for positions, special in [(slice(None, None, 3), [np.nan]), (slice(5, 6), [-np.inf]),
                                   (slice(2, None, 4), [np.nan, np.inf, -0.0, -999.0]),
                                   (slice(None, -3), [1e20])]:
            kinds.append(values.copy())
            chosen = kinds[-1].reshape(-1)[positions]
            chosen[:] = np.resize(special, chosen.size)
        for kind, bound, preset in itertools.product(kinds, bounds, ("default", "fast", "ratio")):
            fill = -999.0 if kind is not values else None
            yield kind.astype(dtype), {**bound, "preset": preset, "fill": fill}


def exact():
    """All element types without a bound: smooth, rough, sparse, wide, stepped and random values."""
    generator = np.random.default_rng(3)
    for shape in [(), (1,), (5,), (64,), (65,), (300,), (5000,), (9, 10), (50, 60), (17, 16, 15),
                  (3, 4, 5, 6)]:
        base = smooth(shape, generator)
        kinds = [base * 30 + 40, base * 30 + generator.integers(0, 9, shape) + 40,
                 np.round(base * 3 + 5) * 7, np.where(generator.random(shape) < 0.03, base + 4, 0),
                 generator.integers(0, 100, shape), np.round(base * 1000) / 4 + 300]
        for kind, preset in itertools.product(kinds, ("default", "fast", "ratio")):
            for dtype in INTEGERS:
                yield np.abs(kind).astype(dtype), {"preset": preset}
                top = float(np.iinfo(dtype).max) / 200
                yield (np.abs(kind) % 100 * top).astype(dtype), {"preset": preset}
            for dtype in ("f4", "f8"):
                yield kind.astype("f4").astype(dtype), {"preset": preset}
                holes = kind.astype(dtype)
                holes.reshape(-1)[::7] = np.nan
                holes.reshape(-1)[1::9] = -0.0
                yield holes, {"preset": preset}
                if preset == "ratio" and kind is kinds[0]:
                    waves = smooth(shape, generator) * np.finfo(dtype).max / 8
                    yield waves.astype(dtype), {"preset": preset}
                    words = generator.standard_normal(base.size // 8 + 1).astype(dtype)
                    yield generator.choice(words, shape), {"preset": preset}


def long():
    """Streams that are long enough for every division of a Huffman payload."""
    generator = np.random.default_rng(4)
    for size in (2048, 2049, 32768, 32769, 40000, 200000):
        values = generator.standard_normal(size)
        yield values.astype("f4"), {"abs": 0.02, "predictor": "none"}
        if size <= 40000:
            yield values, {"preset": "ratio"}
            yield (values * 20).astype("i4"), {}


def vocabulary():
    """Few distinct words: ranks of one and two bytes, repeats, and special values."""
    generator = np.random.default_rng(7)
    for n_words, dtype, shape in itertools.product((3, 60, 256, 257, 700), ("f4", "f8"),
                                                   [(6000,), (90, 80), (20, 18, 17)]):
        words = np.cumsum(generator.exponential(1, n_words)) * generator.choice([1, -1])
        values = words[generator.integers(0, n_words, shape)] + generator.uniform(0, 1e-5, shape)
        values = values.astype(dtype)
        yield values, {"abs": 1e-4, "preset": "ratio"}
        values = np.repeat(values.reshape(-1), 3)[:values.size].reshape(shape)
        values.reshape(-1)[100:130] = np.nan
        values.reshape(-1)[::701] = 1e30
        values.reshape(-1)[1::801] = np.inf
        yield values, {"abs": 1e-4, "preset": "ratio"}


def fitted():
    """Fitted interpolation: smooth and rough, odd and even extents, thin ones, masks, planes."""
    generator = np.random.default_rng(8)
    shapes = [(3000,), (4097,), (40, 50), (33, 65), (7, 500), (500, 6), (16, 16, 16), (17, 12, 23),
              (9, 33, 20), (20, 5, 40), (40, 9, 8), (3, 30, 40), (2, 8, 9, 17)]
    for shape, dtype in itertools.product(shapes, ("f4", "f8")):
        base = smooth(shape, generator)
        rough = base + 0.02 * generator.standard_normal(shape)
        masked = rough.copy()
        masked.reshape(-1)[40:90] = np.nan
        masked.reshape(-1)[1000:1300] = -999.0
        planes = rough * np.arange(1, shape[0] + 1).reshape(-1, *[1] * (len(shape) - 1)) ** 2
        for values, bound in itertools.product((base, rough, masked, planes), (0.05, 1e-3, 1e-6)):
            yield values.astype(dtype), {"abs": bound, "preset": "max", "fill": -999.0}


def nested():
    """Coarse views: splines and last axes, masks at coarse and fine points, 1 to 4 axes."""
    generator = np.random.default_rng(9)
    shapes = [(7000,), (93, 70), (2, 3000), (18, 18, 18), (27, 12, 23), (30, 2, 70), (4, 12, 8, 19)]
    choices = [{"spline": spline, "last_axis": last_axis}
               for spline in ("linear", "natural") for last_axis in (0, 1, 2, "joint")]
    for shape, dtype, coarse in itertools.product(shapes, ("f4", "f8"), (1, 3)):
        base = smooth(shape, generator) + 0.02 * generator.standard_normal(shape)
        masked = base.copy()
        masked.reshape(-1)[40:90] = np.nan
        masked.reshape(-1)[10:130:3] = -999.0
        for values, preset in itertools.product((base, masked), ("default", "fast", "ratio")):
            yield values.astype(dtype), {
                "abs": 1e-3, "preset": preset, "predictor": "interpolation", "fill": -999.0,
                "coarse": coarse, **choices[generator.integers(len(choices))]}


def decimals():
    """Floats made of integers: powers of ten, products, offsets, quotients; masks, other values."""
    generator = np.random.default_rng(10)
    shapes = [(3000,), (60, 70), (15, 16, 17), (4, 5, 12, 19)]
    for shape, dtype, places in itertools.product(shapes, ("f4", "f8"), range(6)):
        k = np.round(smooth(shape, generator) * 8000 + generator.normal(0, 3, shape)) + 20000
        k = k.astype(dtype)
        T = k.dtype.type
        step, power = T(10.0**-places), T(10.0**places)
        masked = k / power
        masked.reshape(-1)[50:400] = -1e34
        strays = k / power
        strays.reshape(-1)[::97] = [np.nan, np.inf, -0.0, T(np.pi), -np.inf][places % 5]
        kinds = [k / power, k * step, k * step - T(10), k / power + T(273.15),
                 T(8000) / np.abs(np.round(k / 64) + 3), k * T(25), masked, strays,
                 k / power + T(2.0**40)]
        for values, preset in itertools.product(kinds, ("default", "ratio", "max")):
            yield values.astype(dtype), {"preset": preset}


def books():
    """Shared books: (values, settings with the book)."""
    generator = np.random.default_rng(5)
    for dtype, preset in itertools.product(("f4", "f8"), ("default", "ratio")):
        steps = [(smooth((12, 20, 30), generator)
                  + 0.01 * generator.standard_normal((12, 20, 30))).astype(dtype) for _ in range(3)]
        settings = {"abs": 1e-3, "preset": preset}
        book = tailrace.train_book(steps, **settings)
        for step in steps:
            yield step[:4], {**settings, "book": book}
            yield step[0, 0], {**settings, "book": book}


def varint(number):
    low, rest = number & 0x7F, number >> 7
    return bytes([low]) if rest == 0 else bytes([low | 0x80]) + varint(rest)


def join(chunks, lengths):
    """Join chunks of one shape: the first `lengths[0]` values come from the first chunk, the next
    from the second, ..."""
    n_extents = chunks[0][9]
    end = 10
    for _ in range(n_extents):
        while chunks[0][end] & 0x80:
            end += 1
        end += 1
    head = bytes([(chunks[0][8] & 15) | trz_reference.JOINED << 4]) + chunks[0][9:end]
    table = b"".join(varint(n) + varint(len(chunk)) for n, chunk in zip(lengths, chunks))
    content = head + varint(len(chunks)) + table + b"".join(chunks)
    return b"TRZ\x01" + zlib.crc32(content).to_bytes(4, "little") + content


def refined():
    """Bit planes: noise at all rates, so that planes are stored; masks, patches, joined chunks."""
    generator = np.random.default_rng(12)
    shapes = [(6000,), (93, 70), (18, 19, 20), (4, 12, 12, 13)]
    for shape, dtype, n_planes in itertools.product(shapes, ("f4", "f8"), range(1, 9)):
        base = smooth(shape, generator) + generator.standard_normal(shape)
        masked = base.copy()
        masked.reshape(-1)[40:90] = np.nan
        masked.reshape(-1)[100:900] = -999.0
        masked.reshape(-1)[::91] = 1e20
        near = base * 1e-4 + 1000
        for values, bound, preset in [(base, 1e-3, "default"), (masked, 1e-5, "default"),
                                      (masked, 1e-4, "fast"), (base, 1e-6, "ratio"),
                                      (near, 4e-9 if dtype == "f8" else 2e-6, "default")]:
            yield values.astype(dtype), {"abs": bound, "preset": preset, "fill": -999.0,
                                         "refine": n_planes}


class Joined(dict):
    """Settings of values whose parts along the first axis are encoded separately and joined."""


def joined():
    """Joined chunks: each part is a complete chunk of any method, and some of its rows count."""
    generator = np.random.default_rng(11)
    settings = [{"abs": 1e-3}, {"abs": 1e-3, "preset": "max"}, {"pw_rel": 1e-2}, {},
                {"abs": 1e-2, "preset": "ratio", "coarse": 1}, {"rel": 0.2},
                {"abs": 1e-4, "refine": 3}]
    for shape, dtype, setting in itertools.product(
            [(2,), (9, 20), (5, 6, 7, 8), (70, 3)], ("f4", "f8", "i4"), settings):
        if dtype == "i4" and setting:
            continue
        values = smooth(shape, generator) * (1 if dtype != "i4" else 1000)
        for n_parts in sorted({2, min(shape[0], 5), min(shape[0], 64)}):
            yield values.astype(dtype), Joined(setting, parts=n_parts)


def encode(values, settings):
    if not isinstance(settings, Joined):
        return tailrace.encode(values, **settings)
    settings = dict(settings)
    n_parts = settings.pop("parts")
    plane = values[0].size
    ends = np.linspace(0, len(values), n_parts + 1).astype(int)
    # Each part has different values in the rows of other parts.
    chunks = [tailrace.encode(np.roll(values, 3 * begin, axis=0) if begin else values, **settings)
              for begin in ends[:-1]]
    return join(chunks, [int(n) * plane for n in np.diff(ends)])


def compare(values, settings):
    """Return the difference for one chunk, or None if the results are equal."""
    try:
        chunk = encode(values, settings)
    except tailrace.TrzError as error:
        return f"not encoded: {error}"
    book = settings.get("book")
    wanted = tailrace.decode(chunk, book=book)
    try:
        found = trz_reference.decode(chunk, values.size, book)
    except trz_reference.FormatError as error:
        return f"refused: {error}"
    if found.tobytes() != wanted.tobytes():
        return f"{np.count_nonzero(found != wanted)} of {values.size} values differ"
    return None


def golden():
    """Compare the chunks of trz/tests/golden; return differences and a count."""
    differences = []
    chunks = sorted(GOLDEN.glob("*/*.trz"))
    for path in chunks:
        wanted = np.load(path.with_suffix(".npy"))
        book_path = path.with_suffix(".trzb")
        book = book_path.read_bytes() if book_path.exists() else None
        for decode in (trz_reference.decode, tailrace.decode):
            found = decode(path.read_bytes(), wanted.size, book)
            if found.dtype != wanted.dtype or found.tobytes() != wanted.tobytes():
                differences.append(f"{path.name}: {decode.__module__}")
    return differences, len(chunks)


def newer():
    """Golden chunks with an unknown version, feature, method or type: both decoders refuse them in
    the same words."""
    differences, n_compared = [], 0
    for path in sorted(GOLDEN.glob("*/*.trz")):
        whole = path.read_bytes()
        changes = [
            *((3, version, f"format version {version}, expected 1") for version in (0, 8, 255)),
            *((9, whole[9] | bit, f"unknown feature bits 0x{bit:02x}")
              for bit in (8, 16, 32, 64, 128)),
            *((8, whole[8] & 15 | method << 4, f"unknown method {method}")
              for method in range(trz_reference.REFINED + 1, 16)),
            *((8, whole[8] & 0xF0 | dtype, f"unknown element type {dtype}")
              for dtype in range(len(trz_reference.DTYPES), 16))]
        for at, byte, why in changes:
            chunk = bytearray(whole)
            chunk[at] = byte
            chunk[4:8] = zlib.crc32(chunk[8:]).to_bytes(4, "little")
            for decode in (trz_reference.decode, tailrace.decode):
                said = outcome(decode, bytes(chunk), None)
                if not str(said).endswith(f"needs a newer trz: {why}"):
                    differences.append(f"{path.name}: {decode.__module__}: {why}: {said}")
            n_compared += 1
        for version in range(2, 8):  # development versions
            chunk = whole[:3] + bytes([version]) + whole[4:]
            for decode in (trz_reference.decode, tailrace.decode):
                said = outcome(decode, chunk, None)
                if f"format version {version} is of a development version" not in str(said):
                    differences.append(f"{path.name}: {decode.__module__}: {version}: {said}")
    return differences, n_compared


# Damaged chunks

FRAME = bytes.fromhex("28b52ffd")  # versions of libzstd differ in which broken frames they refuse


def damaged_chunks(n_chunks):
    """Yield chunks with a few changed bytes, and a correct checksum."""
    generator = np.random.default_rng(6)
    whole = [encode(values, settings)
             for make, first in ((special, 200), (exact, 200), (bounded, 200), (vocabulary, 0),
                                 (fitted, 0), (nested, 0), (decimals, 0), (joined, 0),
                                 (refined, 0))
             for values, settings in itertools.islice(make(), first, 3000, 29 if first else 1)]
    whole = [chunk for chunk in whole if chunk[8] >> 4 and FRAME not in chunk]
    for _ in range(n_chunks):
        chunk = bytearray(whole[generator.integers(len(whole))])
        size = tailrace.describe(bytes(chunk)).n_values
        for _ in range(generator.integers(1, 3)):
            at = int(generator.integers(8, min(len(chunk), generator.choice([40, 5000]))))
            chunk[at:at + 1] = [
                bytes([chunk[at] ^ 1 << generator.integers(8)]),
                bytes([generator.integers(256)]), bytes([chunk[at] + 1 & 255]), b"",
                bytes([chunk[at], generator.integers(3)])][generator.integers(5)]
        chunk[4:8] = zlib.crc32(chunk[8:]).to_bytes(4, "little")
        yield bytes(chunk), size


def outcome(decode, chunk, size):
    """Return the bytes of the values, with one NaN for all: after damage, payloads depend on the
    processor."""
    try:
        values = decode(chunk, size)
    except (tailrace.TrzError, trz_reference.FormatError) as error:
        return f"refused: {error}"
    if values.dtype.kind == "f":
        values[np.isnan(values)] = np.nan
    return values.tobytes()


def compare_damaged(n_chunks=4000):
    """Return the differences for damaged chunks, and the number of refused ones."""
    differences, n_refused = [], 0
    for chunk, size in damaged_chunks(n_chunks):
        wanted = outcome(tailrace.decode, chunk, size)
        found = outcome(trz_reference.decode, chunk, size)
        refusals = [result for result in (wanted, found) if isinstance(result, str)]
        n_refused += len(refusals) == 2
        if len(refusals) < 2 and wanted != found:
            differences.append(f"{refusals or 'other values'}: {chunk[:400].hex()}")
    return differences, n_refused


GROUPS = {"bounded": bounded, "special": special, "exact": exact, "long": long, "books": books,
          "vocabulary": vocabulary, "fitted": fitted, "nested": nested, "decimals": decimals,
          "joined": joined, "refined": refined}
# Chunks of each of these methods must occur.
METHODS = {"vocabulary": trz_reference.VOCABULARY, "fitted": trz_reference.FITTED,
           "nested": trz_reference.NESTED, "decimals": trz_reference.DECIMAL,
           "joined": trz_reference.JOINED, "refined": trz_reference.REFINED}
ALONE = {"damaged": compare_damaged, "golden": golden, "newer": newer}


def main(group):
    np.seterr(all="ignore")
    differences, n_compared = [], 0
    if group in ALONE:
        differences, n_compared = ALONE[group]()
    else:
        for values, settings in GROUPS[group]():
            difference = compare(values, settings)
            if group in METHODS and not difference:
                n_compared += encode(values, settings)[8] >> 4 == METHODS[group]
                continue
            n_compared += 1
            if difference:
                settings = {key: value for key, value in settings.items() if key != "book"}
                differences.append(f"{values.dtype}{values.shape} {settings}: {difference}")
    print(f"{n_compared} chunks")
    print("\n".join(differences[:20]))
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
