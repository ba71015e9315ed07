"""The language of the workload's programs, and the meaning of its keys and values.

A program is a list of operations, each a dict that JSON can hold:

    {"op": "open", "mode": "w" | "a" | "x", "options": TEXT}
    {"op": "dim", "name": NAME, "size": N | null}              null: unlimited
    {"op": "var", "name": PATH, "dims": [NAME...], "dtype": NUMPY, "fill": NUMBER | null,
     "codec": NAME | null, "bound": [MODE, NUMBER] | null, "settings": {...},
     "chunks": [N...] | null, "options": TEXT, "over_time": true | null}
    {"op": "put", "name": PATH, "key": KEY, "values": VALUES, "rank": R, "style": ..., "how": ...}
    {"op": "get", "name": PATH, "key": KEY, "rank": R, "style": ...}
    {"op": "attr", "of": PATH | "", "name": NAME, "value": TEXT | [NUMPY, [NUMBER...]]}
    {"op": "delattr", "of": PATH | "", "name": NAME}
    {"op": "flush"}, {"op": "close"}, {"op": "abort"}
    {"op": "step"}                           a step ends; the next such call commits it
    {"op": "badput", "name": PATH, "rank": R, "how": ...}      R puts beyond the last dimension
    {"op": "ranks", "n": N}                  a job of N ranks continues with the file
    {"op": "read", "name": PATH, "keys": [KEY...]}     each rank reads a slab of the closed file
    {"op": "fault", "kind": KIND, "call": N, "rank": R}        see below

One rank makes the calls `put` and `get`; all ranks make the other calls. All ranks also take part
in a put that has a "how": "collective", "independent" between two collective calls, or
"nonblocking" until one. A KEY has one part for each dimension: ["i", at], ["s", start, count,
step], whose step may be negative, or ["p", [positions...]]. VALUES name a kind of field, not its
numbers, so that programs stay short.

A fault strikes at the Nth file call of rank R. The rank dies in the call ("kill") or sleeps for a
while ("stop"). An fsync fails ("sync"), or any call fails once ("error"). With "full" this write
and all later ones find the disk full.
"""

import json
import math
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

#: Operations that test the workload itself: a put that the door forgets, a put that the model does
#: not see, and a crash of the performer.
CRIMES = ("forgotten", "extra", "crash")
#: Operations after which the file holds all that was put.
COMMITS = ("flush", "close")
#: Operations of a single rank.
OWN = ("put", "get", "badput")
#: Operations on a file that is closed.
CLOSED = ("open", "ranks", "read")

#: netCDF's default fill values, for unwritten elements of variables that declare no fill value.
DEFAULT_FILL = {
    "i1": -127, "u1": 255, "i2": -32767, "u2": 65535, "i4": -2147483647, "u4": 4294967295,
    "i8": -9223372036854775806, "u8": 18446744073709551614, "f4": 9.9692099683868690e36,
    "f8": 9.9692099683868690e36,
}


@dataclass
class Program:
    """Operations, the door that performs them, and its number of ranks."""

    door: str
    ops: list[dict[str, Any]] = field(default_factory=list)
    ranks: int = 1
    seed: str = ""

    def to_json(self):
        return json.dumps(asdict(self))

    @staticmethod
    def from_json(text):
        return Program(**json.loads(text))

    def __str__(self):
        ops = ",\n  ".join(json.dumps(op) for op in self.ops)
        return (f'{{"door": "{self.door}", "ranks": {self.ranks}, "seed": "{self.seed}", '
                f'"ops": [\n  {ops}]}}')


def positions(part):
    """The positions that one part of a key selects, in the order of the values."""
    if part[0] == "i":
        return np.array([part[1]], np.intp)
    if part[0] == "s":
        return part[1] + part[3] * np.arange(part[2], dtype=np.intp)
    return np.array(part[1], np.intp)


def key_shape(key):
    """The shape of a key's values: dimensions with an index are dropped, as NumPy does it."""
    return tuple(len(positions(part)) for part in key if part[0] != "i")


def index_of(key):
    """The key as an index of a NumPy array that selects the product of its positions."""
    return np.ix_(*[positions(part) for part in key])


def as_slices(key):
    """The key as a reader of NumPy's kind takes it: integers, slices and lists."""
    words = []
    for part in key:
        if part[0] == "i":
            words.append(part[1])
        elif part[0] == "p":
            words.append(list(part[1]))
        else:
            _, start, count, step = part
            stop = start + (count - 1) * step + (1 if step > 0 else -1) if count else start
            words.append(slice(start, stop if stop >= 0 else None, step))
    return tuple(words)


def _real_values(spec, dtype, n):
    """Equal bits in every process of a door: NumPy's versions differ in their sin and exp."""
    random = np.random.default_rng(spec.get("seed", 0))
    scale, offset = float(spec.get("scale", 1.0)), float(spec.get("offset", 0.0))
    at = np.arange(n)
    kind = spec["kind"]
    if kind == "const":
        return np.full(n, offset)
    if kind == "ramp":
        return offset + scale * at
    if kind == "smooth":
        angles = at / random.uniform(1, 30) + random.uniform(0, 6)
        return offset + scale * np.array([math.sin(angle) for angle in angles])
    if kind == "noise":
        return offset + scale * random.standard_normal(n)
    if kind == "wide":
        sizes = np.array([math.exp(size) for size in random.normal(0, 12, n)])
        return sizes * random.choice([-1.0, 1.0], n)
    if kind == "specials":
        values = offset + scale * random.standard_normal(n)
        chosen = [np.nan, np.inf, -np.inf, 0.0, -0.0, np.finfo(dtype).tiny, -np.finfo(dtype).max]
        hit = random.random(n) < 0.2
        values[hit] = random.choice(chosen, int(hit.sum()))
        return values
    raise ValueError(f"values of kind {kind!r} are unknown")


def values_of(spec, dtype, shape, fill=None):
    """The numbers that VALUES describe. "with_fill": some of them are the variable's fill value.

    >>> values_of({"kind": "ramp", "scale": 2}, "f4", (3,)).tolist()
    [0.0, 2.0, 4.0]
    """
    dtype = np.dtype(dtype)
    n = int(np.prod(shape, dtype=np.int64))
    if spec["kind"] == "bits":
        raw = np.random.default_rng(spec.get("seed", 0)).bytes(n * dtype.itemsize)
        values = np.frombuffer(raw, dtype).copy()
    else:
        with np.errstate(all="ignore"):
            values = _real_values(spec, dtype if dtype.kind == "f" else np.dtype("f8"), n)
            if dtype.kind in "iu":
                limits = np.iinfo(dtype)
                values = np.clip(np.nan_to_num(np.rint(values)), float(limits.min) / 2,
                                 float(limits.max) / 2)
            values = values.astype(dtype)
    if spec.get("with_fill") and fill is not None:
        values[np.random.default_rng(spec.get("seed", 0) + 1).random(n) < 0.2] = fill
    return values.reshape(shape)


def attribute_value(value):
    """A TEXT, or an array of numbers."""
    return value if isinstance(value, str) else np.array(value[1], value[0])
