"""Random descriptions of HDF5 files. `make.py` makes a file with exactly the described contents.

A description is a JSON dictionary: the file's properties, and a list of objects in the order of
their creation. Each object has its own seed, so that other objects can be omitted.
"""

import copy

import numpy as np

from .types import (has_class, points_elsewhere, random_number, random_type, size_of)

#: Versions of HDF5 whose forms a file may have, as names of h5py.h5f.LIBVER_.
VERSIONS = ["EARLIEST", "V18", "V110", "V112", "V114", "V200", "LATEST"]
_NAMES = ["a", "b", "temperature", "x y", "Länge", "v[0]", "t:1", "p*", "time", "lat", "id"]


def _chance(rng, n):
    """True once in n times."""
    return not rng.integers(n)


def _pick(rng, values, p=None):
    return values[int(rng.choice(len(values), p=p))]


def _seed(rng):
    return int(rng.integers(2**31))


def _order(rng):
    """Order of links or attributes: none (0), tracked (1), or tracked and indexed (3)."""
    return int(_pick(rng, [0, 1, 3]))


def random_file(rng):
    """Properties of the file itself and of its root group."""
    low = _pick(rng, VERSIONS, [.4, .1, .1, .1, .1, .1, .1])
    made = {"low": low, "high": "LATEST", "link_order": _order(rng), "attribute_order": _order(rng)}
    if _chance(rng, 8):
        made["user_block"] = 512 << int(rng.integers(0, 4))
    if _chance(rng, 8):
        made["sizes"] = [[4, 4], [8, 4], [4, 8], [2, 2]][rng.choice(4, p=[.4, .25, .25, .1])]
    if _chance(rng, 8):
        made["tree_sizes"] = [int(rng.integers(1, 40)), int(rng.integers(1, 20))]
    if _chance(rng, 8):
        made["chunk_tree_size"] = int(rng.integers(1, 64))
    if _chance(rng, 6):
        made["strategy"] = [_pick(rng, ["FSM_AGGR", "PAGE", "AGGR", "NONE"]),
                            bool(rng.integers(2)), int(rng.integers(1, 100))]
        if made["strategy"][0] in ("AGGR", "NONE"):
            made["strategy"][1:] = [False, 1]
        if rng.integers(2):
            made["page"] = int(_pick(rng, [512, 4096, 65536]))
    if _chance(rng, 8):
        made["link_phase"] = _pick(rng, [[0, 0], [2, 1], [100, 50]])
    if _chance(rng, 12):
        # Message types: spaces, types, fill values, filters, attributes.
        made["shared_messages"] = [int(_pick(rng, [0x02, 0x08, 0x20, 0x800, 0x1000, 0x182a])), 10]
    return made | _object_properties(rng)


def _object_properties(rng):
    made = {}
    if _chance(rng, 5):
        made["times"] = True
    if _chance(rng, 8):
        made["attribute_phase"] = _pick(rng, [[0, 0], [2, 1], [200, 100]])
    if _chance(rng, 15):
        made["comment"] = "a comment"
    return made


def _limits(rng, shape, grows):
    return [int([n, -1, n + rng.integers(1, 5)][rng.choice(3, p=[.4, .35, .25])]) if grows else n
            for n in shape]


def random_shape(rng, rank=None):
    rank = int(rng.choice([1, 2, 3, 4, 5, 8], p=[.35, .3, .2, .08, .05, .02])
               ) if rank is None else rank
    top = {0: 1, 1: 300, 2: 40, 3: 14, 4: 7, 5: 5}.get(rank, 3)
    shape = [int(n) for n in rng.integers(1, top + 1, rank)]
    if shape and _chance(rng, 15):
        shape[rng.integers(rank)] = 0
    return shape


def random_filters(rng, kind, chunk):
    """A filter pipeline for chunks, or None."""
    if rng.integers(3) == 0 or points_elsewhere(kind) and rng.integers(2):
        return []
    made = []
    if _chance(rng, 5):
        made.append(["fletcher32"])
    if rng.integers(2):
        made.append(["shuffle"])
    packs = ["deflate"] * 6 + ["lzf", "nbit", "szip", "scaleoffset", "unknown"]
    which = _pick(rng, packs)
    number = kind["c"] in ("int", "float") and "precision" not in kind and not kind.get("brain")
    if which == "deflate":
        made.append(["deflate", int(rng.integers(0, 10))])
    elif which == "lzf":
        made.append(["lzf"])
    elif which == "nbit" and kind["c"] in ("int", "float"):
        made = [["nbit"]]
    elif which == "szip" and number and kind["size"] in (1, 4, 8) and np.prod(chunk) >= 8:
        made = [["szip", int(_pick(rng, [4, 32])), 8]]
    elif which == "scaleoffset" and kind["c"] == "int" and number:
        made = [["scaleoffset", 2, 0]]
    elif which == "scaleoffset" and number and kind["size"] in (4, 8) and kind["c"] == "float":
        made = [["scaleoffset", 0, 3]]
    elif which == "unknown" and _chance(rng, 6):
        made = [["unknown", 33333]]
    if _chance(rng, 4) and ["fletcher32"] not in made:
        made.append(["fletcher32"])
    return made


def random_dataset(rng, path, named):
    kind = random_number(rng) if rng.random() < 0.6 else random_type(rng, references=True)
    if named and _chance(rng, 6):
        kind = dict(_pick(rng, named))
    made = {"op": "dataset", "path": path, "type": kind, "seed": _seed(rng),
            "attribute_order": _order(rng),
            "style": _pick(rng, ["smooth", "wide", "raw"], [.6, .3, .1]), **_object_properties(rng)}
    if _chance(rng, 12):
        return made | {"space": _pick(rng, ["scalar", "null"], [.7, .3]), "layout": _pick(
            rng, ["contiguous", "compact"]), "fill": None}
    shape = random_shape(rng)
    if points_elsewhere(kind) or kind["c"] not in ("int", "float", "named"):
        while np.prod(shape) * size_of(kind) > 6000:
            shape[int(np.argmax(shape))] //= 2
    elif _chance(rng, 8):
        # Large enough for decisions that depend on size.
        shape = [int(n) for n in {1: [rng.integers(20000, 70000)], 2: rng.integers(100, 260, 2)}[
            int(rng.integers(1, 3))]]
    made["space"] = shape
    layout = _pick(rng, ["chunked", "contiguous", "compact", "external", "virtual"],
                   [.6, .22, .12, .03, .03])
    n_bytes = int(np.prod(shape)) * size_of(kind)
    if layout == "compact" and n_bytes > 60000 or layout in ("external", "virtual") and (
            points_elsewhere(kind) or 0 in shape or has_class(kind, "named")):
        layout = "chunked"
    made["layout"] = layout
    if layout in ("chunked", "virtual"):
        made["limits"] = _limits(rng, shape, layout == "chunked" and rng.integers(2))
    if layout == "chunked":
        made["chunk"] = [int(rng.integers(1, 1 + (n + 3 if limit == -1 else max(limit, 1))))
                         for n, limit in zip(shape, made["limits"])]
        if rng.integers(3):  # Usually fewer than thousands of chunks.
            made["chunk"] = [max(c, min(n // 3, limit if limit > 0 else n))
                             for c, n, limit in zip(made["chunk"], shape, made["limits"])]
        while np.prod([-(-n // c) for n, c in zip(shape, made["chunk"])]) > 300:
            at = int(np.argmax([n / c for n, c in zip(shape, made["chunk"])]))
            limit = made["limits"][at]
            made["chunk"][at] = min(2 * made["chunk"][at], limit if limit > 0 else 2**30)
        made["filters"] = random_filters(rng, kind, made["chunk"])
        if made["filters"] and _chance(rng, 15):
            made["plain_edges"] = True
        if made["filters"] and _chance(rng, 10):
            made["masked"] = _seed(rng)
    made["fill"] = _pick(rng, [None, "value", "undefined"], [.5, .4, .1])
    if made["fill"] == "value" and (
            points_elsewhere(kind) or layout == "virtual" and kind["c"] == "compound"):
        made["fill"] = None
    made["fill_time"] = int(_pick(rng, [0, 1, 2], [.2, .15, .65]))  # at allocation, never, if set
    times = {"chunked": [1, 2, 3, 3, 3], "compact": [1], "contiguous": [1, 2, 2],
             "external": [2], "virtual": [3]}[layout]
    made["allocation"] = int(_pick(rng, times))
    unknown = any(name == "unknown" for name, *_ in made.get("filters", ()))
    if (points_elsewhere(kind) or unknown) and made["fill_time"] == 1:
        made["fill_time"] = 2
    if layout != "virtual":
        # Elements that are neither written nor filled have no value.
        sparse = made["fill"] != "undefined" and made["fill_time"] != 1 and not points_elsewhere(
            kind) and layout != "external"
        made["written"] = [int(rng.integers(0, n + 1)) if sparse and _chance(rng, 4) else n
                           for n in shape]
    return made


def random_attribute(rng, of, name, named, big=False):
    kind = dict(_pick(rng, named)) if named and _chance(rng, 8) else random_type(
        rng, references=True)
    space = _pick(rng, ["scalar", "null", None], [.45, .05, .5])
    if space is None:
        space = [int(n) for n in rng.integers(1, 6, rng.integers(1, 4))]
        if _chance(rng, 20):
            space[0] = 0
    if big:
        kind, space = {"c": "float", "size": 8, "be": False}, [int(rng.integers(8200, 9000))]
    return {"op": "attribute", "of": of, "name": name, "type": kind, "space": space,
            "seed": _seed(rng), "utf8": bool(rng.integers(2)), "style": "wide"}


def random_scales(rng, path):
    """A dimension scale, and its attachment to datasets of its length."""
    n = int(rng.integers(1, 12))
    scale = {"op": "dataset", "path": path, "type": {"c": "float", "size": 8, "be": False},
             "seed": _seed(rng), "attribute_order": _order(rng), "style": "smooth", "space": [n],
             "layout": "contiguous", "fill": None, "fill_time": 2, "allocation": 2, "written": [n]}
    user = scale | {"path": path + " user", "seed": _seed(rng), "space": [n, n], "written": [n, n]}
    made = [scale, user, {"op": "scale", "of": path, "name": _pick(rng, ["", "dim"])}]
    for dimension in range(2):
        if rng.integers(3):
            made.append({"op": "attach", "of": path + " user", "dimension": dimension,
                         "scale": path})
    if rng.integers(2):
        made.append({"op": "label", "of": path + " user", "dimension": 0, "name": "row"})
    return made


def describe(seed, size=None):
    """The description of a random file. seed: any text."""
    rng = np.random.default_rng([ord(letter) for letter in seed])
    made = {"kind": "hdf5", "seed": seed, "file": random_file(rng), "objects": []}
    objects = made["objects"]
    groups, named, taken, datasets = [""], [], set(), []
    dense = made["file"]["low"] != "EARLIEST"

    def path_for(what):
        name = _pick(rng, _NAMES) if _chance(rng, 2) else f"{what}{len(objects)}"
        path = f"{_pick(rng, groups)}/{name}"
        return path if path not in taken else f"{path} {len(objects)}"

    for _ in range(size or int(rng.integers(1, 14))):
        what = _pick(rng, ["dataset", "group", "type", "hard", "soft", "external", "scales"],
                     [.62, .14, .08, .05, .05, .02, .04])
        path = path_for(what)
        taken.add(path)
        if what == "dataset":
            objects.append(random_dataset(rng, path, named))
            datasets.append(path)
        elif what == "group":
            made_group = {"op": "group", "path": path, "link_order": _order(rng),
                          "attribute_order": _order(rng), **_object_properties(rng)}
            if _chance(rng, 6):
                made_group["link_phase"] = _pick(rng, [[0, 0], [2, 1], [100, 50]])
            objects.append(made_group)
            groups.append(path)
        elif what == "type":
            kind = random_type(rng)
            if kind["c"] == "named":
                continue
            objects.append({"op": "type", "path": path, "type": kind, "attribute_order": 0})
            named.append({"c": "named", "path": path, "of": kind})
            datasets.append(path)
        elif what == "hard":
            target = _pick(rng, datasets + groups[1:]) if datasets + groups[1:] else None
            if target:
                objects.append({"op": "hard", "path": path, "target": target})
        elif what == "soft":
            target = _pick(rng, [*datasets, *groups[1:], "/nowhere", "relative", "../x"])
            objects.append({"op": "soft", "path": path, "target": target})
        elif what == "external":
            objects.append({"op": "external", "path": path, "file": _pick(
                rng, ["other.h5", "sub/other.h5"]), "target": "/x"})
        else:
            objects.extend(random_scales(rng, path))
            datasets += [path, path + " user"]
    for i in range(int(rng.integers(0, 9))):
        of = _pick(rng, [*datasets, *groups, "/"]) or "/"
        objects.append(random_attribute(rng, of, _pick(rng, _NAMES) + f" {i}", named,
                                        big=dense and _chance(rng, 25)))
    if datasets and _chance(rng, 12):
        of = _pick(rng, datasets)
        objects.extend({"op": "attribute", "of": of, "name": f"n{i}", "space": "scalar",
                        "type": {"c": "int", "size": 4, "signed": True, "be": False},
                        "seed": i, "utf8": False, "style": "smooth"} for i in range(20))
    if made["file"].get("sizes", [8, 8])[1] < 8:
        _fit_short_lengths(made)
    return made


def _fit_short_lengths(made):
    """HDF5 itself cannot read unlimited dimensions and heaps of links if lengths have fewer than 8
    bytes. It reads out of bounds."""
    made["file"]["low"] = "EARLIEST"
    for each in [made["file"], *made["objects"]]:
        for key in ("link_order", "attribute_order", "link_phase", "attribute_phase"):
            each.pop(key, None)
        if "limits" in each:
            each["limits"] = [max(n, limit, c) if limit == -1 else limit for n, limit, c in zip(
                each["space"], each["limits"], each.get("chunk", each["space"]))]


def mutated(description, rng):
    """A copy of the description, changed at one place or nowhere as `mutation` says."""
    made = copy.deepcopy(description)
    objects = made["objects"]
    changes = ["nothing", "file"] + (["drop", "property", "property", "values", "order"]
                                     if objects else [])
    what = _pick(rng, changes)
    at = int(rng.integers(len(objects))) if objects else 0
    made["mutation"] = [what, at]
    if what == "file":
        made["file"] = random_file(rng) | {"low": made["file"]["low"]}
    elif what == "drop":
        made["mutation"].append(objects.pop(at))
    elif what == "values" and "seed" in objects[at]:
        objects[at]["seed"] += 1
    elif what == "order":
        other = int(rng.integers(len(objects)))
        objects[at], objects[other] = objects[other], objects[at]
    elif what == "property":
        keys = sorted(objects[at].keys() - {"op", "path", "of", "seed", "type", "space", "chunk",
                                            "written", "target", "scale", "layout"})
        key = _pick(rng, keys or ["op"])
        again = {"dataset": lambda: random_dataset(rng, objects[at]["path"], []),
                 "attribute": lambda: random_attribute(rng, objects[at]["of"], "other name", []),
                 }.get(objects[at]["op"], dict)()
        if key in again and key not in ("limits", "filters", "fill_time"):
            objects[at][key] = again[key]
        made["mutation"].append(key)
    return made
