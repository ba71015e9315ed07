"""Files that have revealed a fault, by its name: the route that fails, and the description."""

NUMBER = {"c": "float", "size": 8, "be": False}
INTEGER = {"c": "int", "size": 4, "signed": True, "be": False}


def dataset(path, shape=(30,), kind=None, **more):
    """Describe a dataset with HDF5's defaults, completely written."""
    chunked = "chunk" in more
    return {"op": "dataset", "path": path, "type": kind or NUMBER, "seed": 7, "style": "smooth",
            "space": list(shape), "layout": "chunked" if chunked else "contiguous", "fill": None,
            "fill_time": 2, "allocation": 3 if chunked else 2, "written": list(shape),
            **({"limits": list(shape), "filters": []} if chunked else {}), **more}


def group(path, **more):
    return {"op": "group", "path": path, **more}


def attribute(of, name, kind, space="scalar"):
    return {"op": "attribute", "of": of, "name": name, "type": kind, "space": space, "seed": 3,
            "utf8": True, "style": "wide"}


def file(*objects, **properties):
    return {"kind": "hdf5", "seed": "found",
            "file": {"low": "EARLIEST", "high": "LATEST", **properties}, "objects": list(objects)}


SCALES = [dataset("/x", (5,)), dataset("/u", (5, 5)), {"op": "scale", "of": "/x", "name": ""},
          {"op": "attach", "of": "/u", "dimension": 0, "scale": "/x"}]
NAMES = {"c": "enum", "base": INTEGER, "members": [["a", 0], ["b", 3]]}
LISTS = {"c": "list", "of": INTEGER}

FOUND = {
    "comments": ("lossless", file(
        group("/g", comment="of a group"), dataset("/g/u", comment="of a field"),
        dataset("/t", (3,), LISTS, comment="of lists"), comment="of the file")),
    "an undefined fill value": ("lossless", file(dataset("/u", fill="undefined", chunk=[7]))),
    "names in UTF-8": ("lossless", file(group("/Länge", link_order=3), dataset("/Länge/größe"),
                                        link_order=3, attribute_order=3)),
    "no time stamps of groups": ("lossless", file(group("/g"), dataset("/g/u"))),
    "shared types": ("lossless", file(
        dataset("/t", (9,), {"c": "opaque", "size": 8, "tag": "a"}),
        attribute("/", "a", LISTS, [4]), shared_messages=[0x08, 10])),
    "shared spaces": ("lossless", file(
        dataset("/t", (9,), LISTS), attribute("/t", "a", NUMBER, [3, 4]),
        shared_messages=[0x02, 10])),
    "short addresses": ("lossless", file(
        dataset("/t", (9,), {"c": "text", "size": 8, "pad": 0, "utf8": False}, chunk=[4]),
        dataset("/u"), sizes=[4, 4])),
    "scales by short addresses": ("as-stored", file(*SCALES, sizes=[4, 4])),
    "the file's own properties": ("lossless", file(
        dataset("/u"), strategy=["PAGE", False, 1], tree_sizes=[9, 3], chunk_tree_size=7)),
    "attributes and links in heaps": ("lossless", file(
        group("/g", attribute_phase=[0, 0], link_phase=[0, 0], link_order=3),
        dataset("/g/u", attribute_phase=[2, 1]), attribute("/g/u", "a", NUMBER))),
    "chunks of nothing": ("lossless", file(dataset("/u", (4, 0), chunk=[3, 2]))),
    "a chunk above an empty dimension": ("bounded", file(
        dataset("/u", (6, 1, 0), limits=[-1, 1, 0], chunk=[5, 1, 1]))),
    "checksums of integers": ("bounded", file(
        dataset("/i", (60,), INTEGER, chunk=[20], filters=[["deflate", 1], ["fletcher32"]]))),
    "filters in another order": ("as-stored", file(
        dataset("/u", (7,), chunk=[3], filters=[["fletcher32"], ["deflate", 2]],
                plain_edges=True))),
    "missing chunks of lists": ("cloud", file(
        dataset("/t", (40,), {"c": "text", "size": 5, "pad": 1, "utf8": True}, chunk=[4],
                written=[9]))),
    "plain edges of texts": ("cloud", file(
        dataset("/t", (40,), {"c": "text", "size": 5, "pad": 1, "utf8": True}, chunk=[7],
                filters=[["deflate", 3]], plain_edges=True))),
    "fill times in concat": ("concat", file(
        dataset("/u", (20,), chunk=[4], limits=[-1], fill_time=1),
        dataset("/v", (20,), fill_time=0, allocation=1))),
    "forms in concat": ("concat", file(
        dataset("/u", (20,), chunk=[7], limits=[-1], allocation=1, plain_edges=True,
                filters=[["deflate", 3]], attribute_phase=[2, 1]),
        dataset("/t", (3,), LISTS), comment="of the file")),
    "equal named types": ("lossless", file(
        {"op": "type", "path": "/first", "type": NAMES, "attribute_order": 0},
        {"op": "type", "path": "/second", "type": NAMES, "attribute_order": 0},
        dataset("/t", (9,), {"c": "named", "path": "/second", "of": NAMES}))),
    "lists by short addresses": ("readers", file(dataset("/t", (9,), LISTS), sizes=[4, 8])),
    "a part and the user block": ("export", file(dataset("/u"), user_block=512)),
    "attributes of a later HDF5": ("pairs", {**file(
        attribute("/", "a", LISTS), attribute("/", "b", INTEGER), attribute("/", "c", NUMBER)),
        "file": {"low": "LATEST", "high": "LATEST", "link_order": 3}}),
    "fill values of enums": ("readers", {
        "kind": "netcdf", "seed": "found", "form": "NETCDF4", "objects": [
            {"op": "enum", "of": "", "name": "cloud"},
            {"op": "var", "of": "", "name": "v", "dims": [], "type": "cloud", "seed": 5,
             "rows": 0.0, "fill": "own"}]}),
    "variables of lists": ("readers", {
        "kind": "netcdf", "seed": "found", "form": "NETCDF4", "objects": [
            {"op": "vlen", "of": "", "name": "ragged"},
            {"op": "var", "of": "", "name": "v", "dims": [], "type": "ragged", "seed": 5,
             "rows": 1.0}]}),
    "never written, contiguous, in concat": ("concat", file(
        dataset("/t", (13, 4), {"c": "opaque", "size": 8, "tag": "a"}, written=[1, 0]))),
    "empty and compact in concat": ("concat", file(
        dataset("/g", (0,), layout="compact", allocation=1))),
    "holes along a later dimension": ("export", file(
        dataset("/b", (9, 32), {"c": "opaque", "size": 1, "tag": "b"}, chunk=[2, 8],
                limits=[11, -1], written=[9, 16]), low="V110", shared_messages=[4096, 10])),
    "arrays of records with texts": ("concat", file(
        dataset("/t", (7, 5), {"c": "array", "dims": [3], "of": {
            "c": "compound", "size": 24, "members": [
                ["a", 0, NUMBER], ["b", 8, {"c": "text", "size": 0, "pad": 0, "utf8": True}]]}},
                chunk=[4, 1]))),
    "many region references": ("cmip7", file(
        dataset("/u", (20, 10), chunk=[6, 3]),
        dataset("/g/r", (20, 17), {"c": "region"}, chunk=[8, 5]))),
}
