"""Types of values as plain descriptions: random ones, their HDF5 form, and values in memory.

A description is a JSON dictionary: {"c": class, ...}. `packed` makes the bytes of a value in
memory; pointers in them lead to objects that `keep` owns. `value_at` reads the bytes. Both support
all classes.
"""

import ctypes
import struct

import numpy as np

from .calls import call, constant

PLAIN_FLOATS = {2: (15, 10, 5, 0, 10, 15), 4: (31, 23, 8, 0, 23, 127),
                8: (63, 52, 11, 0, 52, 1023)}
BRAIN_FLOAT = (15, 7, 8, 0, 7, 127)

# --- Random descriptions.


def random_integer(rng, odd=True):
    size = int(rng.choice([1, 2, 4, 8]))
    made = {"c": "int", "size": size, "signed": bool(rng.integers(2)), "be": bool(rng.integers(2))}
    if odd and not rng.integers(10):
        precision = int(rng.integers(1, 8 * size + 1))
        made |= {"precision": precision, "offset": int(rng.integers(0, 8 * size - precision + 1)),
                 "pad": [int(rng.integers(2)), int(rng.integers(2))]}
    return made


def random_float(rng, odd=True):
    made = {"c": "float", "size": int(rng.choice([2, 4, 8], p=[.1, .5, .4])),
            "be": bool(not rng.integers(4))}
    if odd and not rng.integers(15):
        made |= {"size": 2, "brain": True}
    return made


def random_number(rng, odd=True):
    return (random_float if rng.random() < 0.55 else random_integer)(rng, odd)


def random_text(rng):
    return {"c": "text", "size": int(rng.choice([0, 1, 3, 8, 40])),
            "pad": int(rng.integers(3)), "utf8": bool(rng.integers(2))}


def random_enum(rng):
    base = random_integer(rng, odd=False) | {"signed": True}
    if rng.integers(2):
        return {"c": "enum", "base": base | {"size": 1, "be": False},
                "members": [["FALSE", 0], ["TRUE", 1]]}
    names = [f"name {i}" for i in range(rng.integers(1, 6))]
    return {"c": "enum", "base": base, "members": [[name, 3 * i - 2]
                                                   for i, name in enumerate(names)]}


def random_compound(rng, depth):
    if not rng.integers(4):
        part = random_float(rng, odd=False)
        return {"c": "compound", "size": 2 * part["size"],
                "members": [["r", 0, part], ["i", part["size"], part]]}
    members, at = [], 0
    for i in range(rng.integers(1, 5)):
        at += int(rng.integers(4)) if not rng.integers(3) else 0
        member = random_type(rng, depth + 1)
        members.append([f"m{i}", at, member])
        at += size_of(member)
    return {"c": "compound", "size": at + (int(rng.integers(8)) if not rng.integers(4) else 0),
            "members": members}


def random_type(rng, depth=0, references=False):
    """A random type. References occur in types only where their targets are known."""
    kinds = ["number"] * 6 + ["text", "text", "enum", "opaque", "bits", "time"]
    if depth < 2:
        kinds += ["compound", "compound", "array", "list"]
    if references:
        kinds += ["object", "region"]
    kind = kinds[rng.integers(len(kinds))]
    match kind:
        case "number": return random_number(rng)
        case "text": return random_text(rng)
        case "enum": return random_enum(rng)
        case "opaque": return {"c": "opaque", "size": int(rng.integers(1, 20)),
                               "tag": ["", "a tag", "NUMPY:|V4"][rng.integers(3)]}
        case "bits": return {"c": "bits", "size": int(rng.choice([1, 2, 4, 8])),
                             "be": bool(rng.integers(2))}
        case "time": return {"c": "time", "size": int(rng.choice([4, 8])),
                             "be": bool(rng.integers(2))}
        case "compound": return random_compound(rng, depth)
        case "array": return {"c": "array", "dims": [int(n) for n in rng.integers(
            1, 4, rng.integers(1, 4))], "of": random_type(rng, depth + 1)}
        case "list": return {"c": "list", "of": random_type(rng, depth + 1)}
    return {"c": kind}


def size_of(kind):
    """Bytes of a value in memory and in the file's header."""
    match kind["c"]:
        case "enum": return kind["base"]["size"]
        case "array": return size_of(kind["of"]) * int(np.prod(kind["dims"]))
        case "list": return 16
        case "object": return 8
        case "region": return 12
        case "text": return kind["size"] or 8
        case "named": return size_of(kind["of"])
    return kind["size"]


def parts_of(kind):
    match kind["c"]:
        case "compound": return [member for _, _, member in kind["members"]]
        case "array" | "list" | "named": return [kind["of"]]
    return []


def has_class(kind, *classes):
    return kind["c"] in classes or any(has_class(part, *classes) for part in parts_of(kind))


def points_elsewhere(kind):
    return has_class(kind, "list", "object", "region") or (
        kind["c"] == "text" and kind["size"] == 0) or any(map(points_elsewhere, parts_of(kind)))


def plain(kind):
    """The type behind a named type."""
    return plain(kind["of"]) if kind["c"] == "named" else kind


# --- HDF5's form.


def _order(be):
    return 1 if be else 0


def make_type(kind, handles, named):
    """The identifier of the HDF5 type. named: the open named types by path."""
    match kind["c"]:
        case "named":
            return named[kind["path"]]
        case "int":
            sign = "I" if kind["signed"] else "U"
            made = handles("H5Tcopy", constant(
                f"H5T_STD_{sign}{8 * kind['size']}{'BE' if kind['be'] else 'LE'}"))
            if "precision" in kind:
                call("H5Tset_precision", made, kind["precision"])
                call("H5Tset_offset", made, kind["offset"])
                call("H5Tset_pad", made, *kind["pad"])
        case "float":
            made = handles("H5Tcopy", constant(
                f"H5T_IEEE_F{max(32, 8 * kind['size'])}{'BE' if kind['be'] else 'LE'}"))
            if kind["size"] == 2:
                fields = BRAIN_FLOAT if kind.get("brain") else PLAIN_FLOATS[2]
                call("H5Tset_fields", made, *fields[:5])
                call("H5Tset_size", made, 2)
                call("H5Tset_ebias", made, fields[5])
        case "text":
            made = handles("H5Tcopy", constant("H5T_C_S1"))
            call("H5Tset_size", made, kind["size"] or 2**64 - 1)
            call("H5Tset_strpad", made, kind["pad"])
            call("H5Tset_cset", made, int(kind["utf8"]))
        case "enum":
            base = make_type(kind["base"], handles, named)
            made = handles("H5Tenum_create", base)
            for name, number in kind["members"]:
                call("H5Tenum_insert", made, name, _integer_bytes(kind["base"], number))
        case "opaque":
            made = handles("H5Tcreate", 5, kind["size"])
            call("H5Tset_tag", made, kind["tag"])
        case "bits":
            made = handles("H5Tcopy", constant(
                f"H5T_STD_B{8 * kind['size']}{'BE' if kind['be'] else 'LE'}"))
        case "time":
            made = handles("H5Tcopy", constant(
                f"H5T_UNIX_D{8 * kind['size']}{'BE' if kind['be'] else 'LE'}"))
        case "object":
            made = handles("H5Tcopy", constant("H5T_STD_REF_OBJ"))
        case "region":
            made = handles("H5Tcopy", constant("H5T_STD_REF_DSETREG"))
        case "compound":
            made = handles("H5Tcreate", 6, kind["size"])
            for name, at, member in kind["members"]:
                call("H5Tinsert", made, name, at, make_type(member, handles, named))
        case "array":
            dims = (ctypes.c_uint64 * len(kind["dims"]))(*kind["dims"])
            made = handles("H5Tarray_create2", make_type(kind["of"], handles, named),
                           len(kind["dims"]), dims)
        case "list":
            made = handles("H5Tvlen_create", make_type(kind["of"], handles, named))
        case other:
            raise ValueError(other)
    return made


# --- Values in memory.

_WORDS = ["", "a", "Größe", "tailrace", "two words", "0123456789" * 6]


def _integer_bytes(kind, number):
    return int(number).to_bytes(kind["size"], "big" if kind["be"] else "little",
                                signed=number < 0)


def _numbers(kind, n, rng, style):
    """The bytes of n integers or floats."""
    order = ">" if kind["be"] else "<"
    if style == "raw" or "precision" in kind:
        return rng.bytes(n * kind["size"])
    if kind["c"] == "int":
        top = min(2 ** (8 * kind["size"] - 1) - 1, {"smooth": 100, "wide": 2**62}.get(style, 100))
        low = -top if kind["signed"] else 0
        letter = "i" if kind["signed"] else "u"
        return rng.integers(low, top, n, endpoint=True).astype(
            f"{order}{letter}{kind['size']}").tobytes()
    values = np.cumsum(rng.normal(0, 1, n)) + 100 * rng.random()
    if style == "wide":
        values = rng.normal(0, 1, n) * 10.0 ** rng.integers(-4, 4, n)
        special = rng.random(n) < 0.02
        values[special] = rng.choice([np.nan, np.inf, -np.inf, -0.0, 0.0], special.sum())
    if kind.get("brain"):
        raw = values.astype(">f4").view("u1").reshape(-1, 4)[:, :2]
        return (raw if kind["be"] else raw[:, ::-1]).tobytes()
    with np.errstate(over="ignore"):
        return values.astype(f"{order}f{kind['size']}").tobytes()


def packed(kind, n, rng, style, keep, refer):
    """The bytes of n values. refer: maps (class, rng) to the bytes of a reference. keep: owns the
    targets of pointers."""
    match kind["c"]:
        case "int" | "float":
            return _numbers(kind, n, rng, style)
        case "bits" | "time" | "opaque":
            return rng.bytes(n * kind["size"])
        case "named":
            return packed(kind["of"], n, rng, style, keep, refer)
        case "object" | "region":
            return b"".join(refer(kind["c"], rng) for _ in range(n))
        case "enum":
            numbers = [number for _, number in kind["members"]]
            return b"".join(_integer_bytes(kind["base"], numbers[i])
                            for i in rng.integers(0, len(numbers), n))
        case "array":
            return packed(kind["of"], n * int(np.prod(kind["dims"])), rng, style, keep, refer)
        case "text":
            return b"".join(_text(kind, rng, keep) for _ in range(n))
        case "list":
            return b"".join(_list(kind, rng, style, keep, refer) for _ in range(n))
        case "compound":
            made = bytearray(n * kind["size"])
            for _, at, member in kind["members"]:
                size = size_of(member)
                values = packed(member, n, rng, style, keep, refer)
                for i in range(n):
                    made[i * kind["size"] + at:i * kind["size"] + at + size] = (
                        values[i * size:(i + 1) * size])
            return bytes(made)
    raise ValueError(kind["c"])


def _text(kind, rng, keep):
    word = _WORDS[rng.integers(len(_WORDS))]
    raw = word.encode() if kind["utf8"] else word.encode("ascii", "replace")
    if kind["size"] == 0:
        keep.append(ctypes.create_string_buffer(raw))
        return struct.pack("<Q", ctypes.addressof(keep[-1]))
    raw = raw[:kind["size"] - (kind["pad"] == 0)]
    return raw.ljust(kind["size"], b" " if kind["pad"] == 2 else b"\0")


def _list(kind, rng, style, keep, refer):
    n = int(rng.integers(0, 5))
    if n == 0:
        return bytes(16)
    raw = packed(kind["of"], n, rng, style, keep, refer)
    keep.append(ctypes.create_string_buffer(raw, len(raw)))
    return struct.pack("<QQ", n, ctypes.addressof(keep[-1]))
