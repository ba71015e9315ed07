"""Random netCDF files: descriptions like those of `describe.py`, and files made by
netCDF4-python."""

import netCDF4
import numpy as np

_NUMBERS = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8", "f4", "f8"]
_CLASSIC = ["i1", "i2", "i4", "f4", "f8"]
FORMS = ["NETCDF4", "NETCDF4_CLASSIC", "NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET",
         "NETCDF3_64BIT_DATA"]


def _chance(rng, n):
    return not rng.integers(n)


def _pick(rng, values):
    return values[int(rng.integers(len(values)))]


def describe(seed):
    """The description of a random netCDF file for the seed."""
    rng = np.random.default_rng([ord(letter) for letter in seed])
    form = FORMS[rng.choice(5, p=[.72, .1, .06, .06, .06])]
    new = form == "NETCDF4"
    made = {"kind": "netcdf", "seed": seed, "form": form, "objects": []}
    objects = made["objects"]
    groups = [""]
    for i in range(int(rng.integers(0, 3)) if new else 0):
        groups.append(f"{_pick(rng, groups)}/g{i}")
        objects.append({"op": "group", "path": groups[-1]})
    dims = []
    for i in range(int(rng.integers(1, 5))):
        of = _pick(rng, groups)
        unlimited = _chance(rng, 3) if new else i == 0 and _chance(rng, 2)
        dims.append({"op": "dim", "of": of, "name": f"d{i}", "unlimited": bool(unlimited),
                     "size": int(rng.integers(0 if unlimited else 1, 12))})
    objects += dims
    types = []
    if new and _chance(rng, 3):
        types.append({"op": "enum", "of": "", "name": "cloud"})
    if new and _chance(rng, 4):
        types.append({"op": "compound", "of": "", "name": "pair"})
    if new and _chance(rng, 4):
        types.append({"op": "vlen", "of": "", "name": "ragged"})
    objects += types
    for i in range(int(rng.integers(1, 7))):
        objects.append(_variable(rng, i, dims, groups, types, form))
    for i in range(int(rng.integers(0, 5))):
        of = _pick(rng, [each["of"] + "/" + each["name"] for each in objects
                         if each["op"] == "var"] + groups)
        objects.append({"op": "att", "of": of, "name": _pick(rng, ["units", "long name", "n"])
                        + f"{i}", "what": _pick(rng, ["text", "number", "numbers"] + (
                            ["strings"] if new else [])), "seed": int(rng.integers(2**31))})
    return made


def _variable(rng, i, dims, groups, types, form):
    new = form == "NETCDF4"
    of = _pick(rng, groups)
    seen = [dim for dim in dims if of == dim["of"] or of.startswith(dim["of"] + "/")
            or dim["of"] == ""]
    n = int(rng.integers(0, min(4, len(seen)) + 1))
    mine = [seen[at] for at in rng.permutation(len(seen))[:n]]
    if not new:
        mine.sort(key=lambda dim: not dim["unlimited"])
    made = {"op": "var", "of": of, "name": f"v{i}", "dims": [dim["name"] for dim in mine],
            "type": str(_pick(rng, _NUMBERS if form in ("NETCDF4", "NETCDF3_64BIT_DATA")
                              else _CLASSIC)), "seed": int(rng.integers(2**31)),
            "rows": float(_pick(rng, [1, 1, 1, .5, 0]))}
    if mine and _chance(rng, 4):
        at = _pick(rng, mine)
        if at["of"] == of:
            return made | {"name": at["name"], "dims": [at["name"]]}
    if new and _chance(rng, 6):
        made["type"] = "str"
    elif _chance(rng, 8):
        made["type"] = "S1"
    elif types and _chance(rng, 3):
        made["type"] = _pick(rng, types)["name"]
    if made["type"] in ("str", "S1", "ragged", "pair"):
        return made
    # Values that are neither written nor filled are undefined.
    made["fill"] = _pick(rng, [None, None, False if made["rows"] == 1 else None, "own"])
    if new or form == "NETCDF4_CLASSIC":
        if mine and rng.integers(2):
            made |= {"zlib": True, "level": int(rng.integers(1, 9)),
                     "shuffle": bool(rng.integers(2))}
            if _chance(rng, 4):
                made["fletcher32"] = True
        if mine and _chance(rng, 3):
            made["chunks"] = [int(rng.integers(1, max(dim["size"], 1) + 1)) for dim in mine]
        if made["type"] != "cloud":
            made["endian"] = _pick(rng, ["native", "native", "big", "little"])
    if made["type"] in ("f4", "f8") and "zlib" in made and _chance(rng, 4):
        made["digits"] = 3
    if made["type"] in ("i2", "i4") and _chance(rng, 3):
        made["packed"] = [0.01, 20.0]
    return made


def _values(what, shape, rng):
    kind = what["type"]
    n = int(np.prod(shape))
    if kind == "str":
        return np.array([["", "word", "Größe"][i] for i in rng.integers(0, 3, n)],
                        object).reshape(shape)
    if kind == "S1":
        return np.array(list("abc xyz"), "S1")[rng.integers(0, 7, n)].reshape(shape)
    if kind == "cloud":
        return rng.integers(0, 3, shape).astype("i1")
    if kind == "pair":
        made = np.zeros(shape, [("a", "i4"), ("b", "f8")])
        made["b"] = rng.normal(size=shape)
        return made
    if kind == "ragged":
        made = np.empty(n, object)
        for i in range(n):
            made[i] = rng.integers(0, 9, rng.integers(1, 4)).astype("i4")
        return made.reshape(shape)
    if kind[0] == "f":
        return np.cumsum(rng.normal(size=n)).reshape(shape).astype(kind)
    return rng.integers(0, 100, shape).astype(kind)


def make(description, path):
    """Make the file. @raises whatever netCDF4 refuses."""
    with netCDF4.Dataset(path, "w", format=description["form"]) as file:
        types = {}
        for each in description["objects"]:
            at = file[each["of"]] if each.get("of") and each["op"] != "att" else file
            rng = np.random.default_rng(each.get("seed", 0))
            match each["op"]:
                case "group":
                    file.createGroup(each["path"])
                case "dim":
                    at.createDimension(each["name"], None if each["unlimited"] else each["size"])
                case "enum":
                    types["cloud"] = file.createEnumType(
                        "i1", "cloud", {"clear": 0, "some": 1, "all": 2})
                case "compound":
                    types["pair"] = file.createCompoundType(
                        np.dtype([("a", "i4"), ("b", "f8")]), "pair")
                case "vlen":
                    types["ragged"] = file.createVLType(np.dtype("i4"), "ragged")
                case "var":
                    _make_variable(at, each, types, rng, description)
                case "att":
                    of = file[each["of"]] if each["of"] else file
                    of.setncattr(each["name"], {
                        "text": "a text", "number": np.float32(rng.normal()),
                        "numbers": rng.integers(0, 9, 3).astype("i4"),
                        "strings": ["one", "zwei"]}[each["what"]])


def _make_variable(at, what, types, rng, description):
    settings = {}
    if "zlib" in what:
        settings = {"compression": "zlib", "complevel": what["level"], "shuffle": what["shuffle"]}
    if "digits" in what:
        settings["least_significant_digit"] = what["digits"]
    if "chunks" in what:
        settings["chunksizes"] = what["chunks"]
    fill = what.get("fill")
    if fill == "own":
        fill = 1 if what["type"] == "cloud" else 77
    kind = {"str": str}.get(what["type"], types.get(what["type"], what["type"]))
    made = at.createVariable(what["name"], kind, what["dims"], fill_value=fill,
                             fletcher32=what.get("fletcher32", False),
                             endian=what.get("endian", "native"), **settings)
    made.set_auto_maskandscale(False)
    if "packed" in what:
        made.scale_factor, made.add_offset = what["packed"]
    sizes = {each["name"]: each["size"] for each in description["objects"] if each["op"] == "dim"}
    shape = [sizes[name] for name in what["dims"]]
    if shape:
        shape[0] = int(shape[0] * what["rows"])
    if not shape:
        if what["rows"]:
            made[...] = _values(what, (1,), rng)[0]
    elif 0 not in shape:
        made[tuple(slice(0, n) for n in shape)] = _values(what, shape, rng)
