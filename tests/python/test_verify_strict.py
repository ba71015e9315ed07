"""tailrace verify detects every change of a copy that could affect a reader's program.

Files are random, with all kinds of objects. h5py makes one change after another to copies. verify
must exit with 1 and name the object. It must exit with 0 for an unchanged copy, and if the changed
object is ignored.
"""

import json
import shutil
import subprocess

import h5py
import netCDF4
import numpy as np
import pytest
from h5py import h5d, h5p, h5r, h5s, h5t

from cli_tools import ENVIRONMENT, command, numbers, tailrace

ORDERED = h5p.CRT_ORDER_TRACKED | h5p.CRT_ORDER_INDEXED


def dataset_of(file, name, type_, values=None, shape=None, limits=None, fill=None, **layout):
    """Create a dataset by HDF5's own calls, so that each property is explicit."""
    create = h5p.create(h5p.DATASET_CREATE)
    create.set_attr_creation_order(ORDERED)
    if fill is not None:
        create.set_fill_value(fill)
    if layout.get("undefined"):
        create.set_fill_time(h5d.FILL_TIME_NEVER)
    if layout.get("chunk"):
        create.set_chunk(layout["chunk"])
    if layout.get("deflate"):
        create.set_deflate(1)
    shape = np.shape(values) if shape is None else shape
    space = h5s.create_simple(shape, limits or shape) if shape != () else h5s.create(h5s.SCALAR)
    dataset = h5d.create(file.id, name.encode(), type_, space, create)
    if values is not None:
        dataset.write(h5s.ALL, h5s.ALL, values, type_)
    return h5py.Dataset(dataset)


def fixed_text(n, padding=h5t.STR_NULLPAD, characters=h5t.CSET_ASCII):
    text = h5t.C_S1.copy()
    text.set_size(n)
    text.set_strpad(padding)
    text.set_cset(characters)
    return text


def compound(members, n_bytes=None):
    """Create a compound type. @param members  (name, offset, type)"""
    made = h5t.create(h5t.COMPOUND, n_bytes or max(at + t.get_size() for _, at, t in members))
    for name, at, type_ in members:
        made.insert(name.encode(), at, type_)
    return made


def enumeration(base, names):
    made = h5t.enum_create(base)
    for name, value in names.items():
        made.enum_insert(name.encode(), value)
    return made


def make(path, rng, user_block=512):
    with h5py.File(path, "w", userblock_size=user_block, track_order=True) as file:
        for name in rng.permutation(["ga", "gb", "gc"]):
            group = file.create_group(name, track_order=True)
            for key in rng.permutation(list("pqrs")):
                group.attrs[key] = int(rng.integers(100))
            for link in rng.permutation(list("xyz")):
                group[link] = rng.normal(size=3)
        file["ga"].attrs["text"] = "a text"
        file["ga"].attrs["numbers"] = rng.integers(0, 9, 4)
        file["ga"].attrs["leads"] = file["gb"].ref
        file["bi"] = np.dtype(">i4")
        file["type"] = np.dtype("<f8")
        file["type"].attrs["about"] = "a type"
        dataset_of(file, "integers", h5t.STD_I32LE, rng.integers(0, 99, (4, 5)).astype("i4"),
                   limits=(h5s.UNLIMITED, 5), fill=np.array(7, "i4"), chunk=(2, 5), deflate=True)
        file["target"] = rng.normal(size=(4, 5))
        dataset_of(file, "floats", h5t.IEEE_F32LE, rng.normal(size=6).astype("f4"),
                   fill=np.array(-1, "f4"))
        dataset_of(file, "named", h5t.open(file.id, b"type"), rng.normal(size=6))
        dataset_of(file, "texts", fixed_text(5), np.array([b"one", b"two"], "S5"))
        file["words"] = np.array(["first", "second"], h5py.string_dtype())
        dataset_of(file, "colours", enumeration(h5t.STD_I8LE, {"red": 0, "green": 1}),
                   np.array([0, 1, 1], "i1"))
        pair = compound([("a", 0, h5t.STD_I32LE), ("b", 8, h5t.IEEE_F64LE)])
        rows = np.zeros(3, np.dtype({"names": ["a", "b"], "formats": ["i4", "f8"],
                                     "offsets": [0, 8], "itemsize": 16}))
        rows["a"], rows["b"] = rng.integers(0, 9, 3), rng.normal(size=3)
        dataset_of(file, "rows", pair, rows)
        blob = h5t.create(h5t.OPAQUE, 4)
        blob.set_tag(b"blob")
        dataset_of(file, "blobs", blob, np.frombuffer(rng.bytes(8), "V4"))
        dataset_of(file, "arrays", h5t.array_create(h5t.STD_I16LE, (2, 3)),
                   rng.integers(0, 9, (2, 2, 3)).astype("i2"), shape=(2,))
        ragged = file.create_dataset("ragged", (3,), h5py.vlen_dtype("i4"))
        for i in range(3):
            ragged[i] = rng.integers(0, 9, i + 1)
        file["refs"] = np.array([file["ga"].ref, file["target"].ref, h5py.Reference()],
                                h5py.ref_dtype)
        file["regions"] = np.array([file["target"].regionref[1:3, :2]], h5py.regionref_dtype)
        rows = np.empty(2, [("n", "i4"), ("leads", h5py.ref_dtype)])
        rows["n"], rows["leads"] = [1, 2], [file["gb"].ref, file["target"].ref]
        file["pointers"] = rows
        lists = file.create_dataset("lists", (1,), h5py.vlen_dtype(h5py.ref_dtype))
        lists[0] = np.array([file["ga"].ref, file["gb"].ref], h5py.ref_dtype)
        file["single"] = "a scalar"
        file["nothing"] = h5py.Empty("f4")
        file["same"] = file["target"]
        file["again"] = file["gc/x"]
        file["soft"] = h5py.SoftLink("/ga/x")
        file["outside"] = h5py.ExternalLink("other.h5", "/there")
        file["x"], file["u"] = np.arange(5.0), np.zeros((4, 5))
        file["x"].make_scale("x")
        file["u"].dims[1].attach_scale(file["x"])
        layout = h5py.VirtualLayout((5,), "f4")
        layout[:] = h5py.VirtualSource("source.h5", "values", (5,))
        file.create_virtual_dataset("virtual", layout)
        file.create_dataset("elsewhere", (4,), "i4", external=[("raw.bin", 0, 16)])
    if user_block:
        with open(path, "r+b") as file:
            file.write(rng.bytes(user_block))


def again(file, name, type_, values, **how):
    """Recreate the dataset; changed() restores the order of the root's links."""
    del file[name]
    return dataset_of(file, name, type_, values, **how)


CHANGES = {}


def change(path, ignore=None):
    """Register a change of the object `path`. @param ignore  options that make verify ignore it."""
    def register(function):
        CHANGES[function.__name__] = (path, ignore or ["--ignore", path], function)
        return function
    return register


def retyped(name, path, type_, values):
    CHANGES[name] = (path, ["--ignore", path],
                     lambda file: again(file, path[1:], type_(file), values(file)))


retyped("byte_order", "/floats", lambda f: h5t.IEEE_F32BE,
        lambda f: f["floats"][...].astype(">f4"))
retyped("integer_size", "/refs", lambda f: h5t.STD_I32LE, lambda f: np.zeros(3, "i4"))
retyped("sign", "/integers", lambda f: h5t.STD_U32LE, lambda f: f["integers"][...].astype("u4"))
retyped("padding_of_texts", "/texts", lambda f: fixed_text(5, h5t.STR_SPACEPAD),
        lambda f: f["texts"][...])
retyped("length_of_texts", "/texts", lambda f: fixed_text(6),
        lambda f: f["texts"][...].astype("S6"))
retyped("character_set", "/texts",
        lambda f: fixed_text(5, characters=h5t.CSET_UTF8), lambda f: f["texts"][...])
retyped("variable_texts", "/words", lambda f: fixed_text(6),
        lambda f: np.array([b"first", b"second"], "S6"))
retyped("value_of_a_name", "/colours", lambda f: enumeration(h5t.STD_I8LE, {"red": 0, "green": 2}),
        lambda f: f["colours"][...])
retyped("name_of_a_value", "/colours", lambda f: enumeration(h5t.STD_I8LE, {"red": 0, "blue": 1}),
        lambda f: f["colours"][...])
retyped("enumeration_to_integer", "/colours", lambda f: h5t.STD_I8LE, lambda f: f["colours"][...])
retyped("name_of_a_member", "/rows",
        lambda f: compound([("a", 0, h5t.STD_I32LE), ("c", 8, h5t.IEEE_F64LE)]),
        lambda f: f["rows"][...])
retyped("order_of_members", "/rows",
        lambda f: compound([("b", 0, h5t.IEEE_F64LE), ("a", 8, h5t.STD_I32LE)], 16),
        lambda f: np.array([(b, a) for a, b in f["rows"][...].tolist()],
                           np.dtype({"names": ["b", "a"], "formats": ["f8", "i4"],
                                     "offsets": [0, 8], "itemsize": 16})))
retyped("named_to_own", "/named", lambda f: h5t.IEEE_F64LE, lambda f: f["named"][...])


@change("/blobs")
def tag_of_opaque(file):
    values = np.zeros(2, "V4")
    file["blobs"].id.read(h5s.ALL, h5s.ALL, values, file["blobs"].id.get_type())
    other = h5t.create(h5t.OPAQUE, 4)
    other.set_tag(b"glob")
    again(file, "blobs", other, values)


@change("/arrays")
def shape_of_arrays(file):
    values = np.ascontiguousarray(file["arrays"][...].reshape(2, 3, 2))
    again(file, "arrays", h5t.array_create(h5t.STD_I16LE, (3, 2)), values, shape=(2,))


@change("/named")
def another_named_type(file):
    values = file["named"][...]
    h5t.IEEE_F64LE.copy().commit(file.id, b"twin")
    again(file, "named", h5t.open(file.id, b"twin"), values)


@change("/", ["--ignore", "/"])
def user_block(file):
    file.user_block_byte = 100


@change("/gb")
def missing_group(file):
    del file["gb"]


@change("/words")
def missing_dataset(file):
    del file["words"]


@change("/bi")
def missing_type(file):
    del file["bi"]


@change("/soft")
def missing_soft_link(file):
    del file["soft"]


@change("/outside")
def missing_external_link(file):
    del file["outside"]


@change("/more")
def added_dataset(file):
    file["more"] = 1


@change("/more")
def added_link(file):
    file["more"] = h5py.SoftLink("/x")


@change("/gc/z")
def renamed(file):
    file.move("gc/z", "gc/zz")


@change("/single")
def other_kind(file):
    del file["single"]
    file.create_group("single")


@change("/soft")
def target_of_soft_link(file):
    del file["soft"]
    file["soft"] = h5py.SoftLink("/ga/y")


@change("/soft")
def soft_link_resolved(file):
    del file["soft"]
    file["soft"] = file["ga/x"]


@change("/outside")
def file_of_external_link(file):
    del file["outside"]
    file["outside"] = h5py.ExternalLink("another.h5", "/there")


@change("/outside")
def target_of_external_link(file):
    del file["outside"]
    file["outside"] = h5py.ExternalLink("other.h5", "/elsewhere")


@change("/same")
def hard_link_split(file):
    values = file["same"][...]
    del file["same"]
    file["same"] = values


@change("/gc/y")
def objects_merged(file):
    del file["gc/y"]
    file["gc/y"] = file["gc/x"]


@change("/gb")
def order_of_links(file):
    first = next(iter(file["gb"]))
    file["gb"].move(first, "moving")
    file["gb"].move("moving", first)


@change("/gb")
def order_not_tracked(file):
    attributes, values = dict(file["gb"].attrs), {k: v[...] for k, v in file["gb"].items()}
    del file["gb"]
    group = file.create_group("gb")
    for name, value in values.items():
        group[name] = value
    group.attrs.update(attributes)


@change("/integers")
def limit(file):
    again(file, "integers", h5t.STD_I32LE, file["integers"][...], limits=(40, 5),
          fill=np.array(7, "i4"), chunk=(2, 5), deflate=True)


@change("/integers")
def extents(file):
    file["integers"].resize((6, 5))


@change("/integers")
def fill_value(file):
    again(file, "integers", h5t.STD_I32LE, file["integers"][...], limits=(h5s.UNLIMITED, 5),
          fill=np.array(8, "i4"), chunk=(2, 5), deflate=True)


@change("/floats")
def fill_value_not_set(file):
    again(file, "floats", h5t.IEEE_F32LE, file["floats"][...])


@change("/named")
def fill_value_set(file):
    again(file, "named", h5t.open(file.id, b"type"), file["named"][...], fill=np.array(0.0))


@change("/ga", ["--ignore-attribute", "text"])
def missing_attribute(file):
    del file["ga"].attrs["text"]


@change("/ga", ["--ignore-attribute", "mo*"])
def added_attribute(file):
    file["ga"].attrs["more"] = 1


@change("/type", ["--ignore-attribute", "about"])
def attribute_of_a_type(file):
    file["type"].attrs["about"] = "b type"


@change("/", ["--ignore-attribute", "top"])
def attribute_of_the_root(file):
    file.attrs["top"] = 1


@change("/ga", ["--ignore-attribute", "numbers"])
def value_of_an_attribute(file):
    file["ga"].attrs.modify("numbers", file["ga"].attrs["numbers"] + [0, 1, 0, 0])


@change("/ga", ["--ignore-attribute", "numbers"])
def shape_of_an_attribute(file):
    rewrite(file["ga"], "numbers", file["ga"].attrs["numbers"].reshape(2, 2))


@change("/ga", ["--ignore-attribute", "numbers"])
def type_of_an_attribute(file):
    rewrite(file["ga"], "numbers", file["ga"].attrs["numbers"].astype("f8"))


@change("/ga", ["--ignore-attribute", "text"])
def text_of_fixed_length(file):
    rewrite(file["ga"], "text", np.bytes_("a text"))


@change("/ga", ["--ignore-attribute", "leads"])
def reference_in_an_attribute(file):
    rewrite(file["ga"], "leads", file["gc"].ref)


@change("/gc")
def order_of_attributes(file):
    name = list(file["gc"].attrs)[0]
    value = file["gc"].attrs[name]
    del file["gc"].attrs[name]
    file["gc"].attrs[name] = value


def rewrite(owner, name, value):
    """Replace one attribute, keeping the order of all."""
    values = {key: (owner.attrs[key], owner.attrs.get_id(key).dtype) for key in owner.attrs}
    for key, (old, dtype) in values.items():
        del owner.attrs[key]
        if key == name:
            owner.attrs[key] = value
        else:
            owner.attrs.create(key, old, dtype=dtype)


def revalued(name, path, key, value):
    def write(file):
        file[path][key] = value(file)
    CHANGES[name] = (path, ["--ignore", path], write)


revalued("a_number", "/integers", (1, 1), lambda f: 1000)
revalued("a_text", "/texts", 1, lambda f: b"tw0")
revalued("a_word", "/words", 0, lambda f: "First")
revalued("a_colour", "/colours", 0, lambda f: 1)
revalued("an_array", "/arrays", 1, lambda f: np.full((2, 3), 10, "i2"))
revalued("a_list", "/ragged", 2, lambda f: np.array([1, 2, 30], "i4"))
revalued("a_shorter_list", "/ragged", 2, lambda f: f["ragged"][2][:2])
revalued("a_scalar", "/single", (), lambda f: "another scalar")
revalued("a_reference", "/refs", 0, lambda f: f["gb"].ref)
revalued("a_null_reference", "/refs", 1, lambda f: h5py.Reference())
revalued("a_reference_set", "/refs", 2, lambda f: f["gb"].ref)
revalued("a_region", "/regions", 0, lambda f: f["target"].regionref[1:3, :3])
revalued("a_region_elsewhere", "/regions", 0, lambda f: f["floats"].regionref[1:3])
revalued("a_list_of_references", "/lists", 0,
         lambda f: np.array([f["ga"].ref, f["gc"].ref], h5py.ref_dtype))


@change("/rows")
def a_member(file):
    rows = file["rows"][...]
    rows["b"][2] += 1
    file["rows"].id.write(h5s.ALL, h5s.ALL, rows, file["rows"].id.get_type())


@change("/blobs")
def an_opaque_value(file):
    file["blobs"].id.write(h5s.ALL, h5s.ALL, np.array([b"abcd"] * 2, "V4"),
                           file["blobs"].id.get_type())


@change("/pointers")
def a_reference_in_a_compound(file):
    rows = file["pointers"][...]
    rows["leads"][1] = file["words"].ref
    file["pointers"][...] = rows


@change("/u", ["--ignore-attribute", "DIMENSION_LIST", "--ignore-attribute", "REFERENCE_LIST"])
def scale_detached(file):
    file["u"].dims[1].detach_scale(file["x"])


@change("/virtual")
def source_of_a_virtual_dataset(file):
    layout = h5py.VirtualLayout((5,), "f4")
    layout[:] = h5py.VirtualSource("source.h5", "others", (5,))
    del file["virtual"]
    file.create_virtual_dataset("virtual", layout)


@change("/elsewhere")
def place_in_an_external_file(file):
    del file["elsewhere"]
    file.create_dataset("elsewhere", (4,), "i4", external=[("raw.bin", 16, 16)])


def changed(path, name, target):
    """Make the change to a copy. @returns the object that verify must name, and what to ignore."""
    shutil.copy(path, target)
    owner, ignore, apply = CHANGES[name]

    class File(h5py.File):
        user_block_byte = None
        root_order = []

    with File(target, "r+") as file:
        file.root_order[:] = list(file)
        apply(file)
        names = [each for each in file.root_order if each in file]
        # Deleting and recreating an object moves it to the end of the root's links.
        for each in names:
            file.move(each, "moving")
            file.move("moving", each)
        block = file.user_block_byte
    if block is not None:
        with open(target, "r+b") as raw:
            raw.seek(block)
            byte = raw.read(1)
            raw.seek(block)
            raw.write(bytes([byte[0] ^ 1]))
    return owner, ignore


def verdict(*arguments):
    done = subprocess.run(command("verify", *arguments, "--json", "-"), capture_output=True,
                          text=True, timeout=60, env=ENVIRONMENT)
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return done.returncode, json.loads(done.stdout)


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", CHANGES)
def test_one_change(name, tmp_path):
    original, target = tmp_path / "in.h5", tmp_path / "out.h5"
    make(original, np.random.default_rng([50, list(CHANGES).index(name)]))
    owner, ignore = changed(original, name, target)
    code, report = verdict(original, target)
    paths = {each["path"] for each in report["structure"]["differences"] if each["fails"]}
    paths |= {field["path"] for field in report["fields"] if not field["kept"]}
    assert code == 1 and owner in paths, report["problems"]
    code, report = verdict(original, target, *ignore)
    related = [each for each in report["problems"] if f'"{owner}"' in each]
    assert not related, (ignore, related)
    assert code == 0 or name in SEVERAL, report["problems"]


# Changes that also affect other objects: members of a group, links and references to it.
SEVERAL = {"missing_group", "renamed", "another_named_type", "objects_merged"}


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_copy_without_a_change_passes(ranks, tmp_path):
    original, target, bare = (tmp_path / name for name in ("in.h5", "out.h5", "bare.h5"))
    make(original, np.random.default_rng(51))
    shutil.copy(original, target)
    done = tailrace("verify", original, target, ranks=ranks)
    assert "objects and" in done.stdout and "nothing missing" in done.stdout
    found = numbers("verify", original, target, ranks=ranks)["structure"]
    assert found["n_failing"] == 0 and found["differences"] == []
    assert found["n_objects"] > 30 and found["n_attributes"] > 15 and found["n_datasets"] > 10
    make(bare, np.random.default_rng(51), user_block=0)
    text = tailrace("verify", original, bare, ranks=ranks, code=1).stdout
    assert "user block: 512 bytes in the original, 0 in the compressed file" in text
    tailrace("verify", original, bare, "--ignore", "/", ranks=ranks)
    shutil.copy(bare, target)
    tailrace("verify", bare, target, ranks=ranks)


def test_storage_may_change_and_is_listed(tmp_path):
    original, target = tmp_path / "in.h5", tmp_path / "out.h5"
    values = np.arange(60.0).reshape(6, 10)
    with h5py.File(original, "w") as file:
        file.create_dataset("a", data=values, chunks=(2, 10), compression="gzip", fletcher32=True)
        dataset_of(file, "b", h5t.IEEE_F64LE, values, undefined=True)
        file.create_dataset("c", data=np.zeros(4, "S3"), chunks=(2,))
    with h5py.File(target, "w") as file:
        file.create_dataset("a", data=values, chunks=(3, 5))
        dataset_of(file, "b", h5t.IEEE_F64LE, values)
        file.create_dataset("c", data=np.zeros(4, "S3"))
    code, report = verdict(original, target)
    assert code == 0, report["problems"]
    found = {(each["path"], each["aspect"]) for each in report["structure"]["differences"]}
    assert found == {("/a", "chunk shape"), ("/a", "filters"), ("/a", "checksum"),
                     ("/b", "fill time"), ("/c", "layout"), ("/c", "chunk shape"),
                     ("/c", "filters"), ("/c", "allocation time")}
    counts = {each["aspect"]: each["n_listed"] for each in report["structure"]["counts"]}
    assert counts["chunk shape"] == 2
    assert "not a failure: checksum of /a" in tailrace("verify", original, target).stdout


def test_byte_order_may_change_with_loss_only(tmp_path):
    original, target = tmp_path / "in.h5", tmp_path / "out.h5"
    values = np.linspace(0, 1, 6).astype("f4")
    with h5py.File(original, "w") as file:
        file["a"] = values.astype(">f4")
    with h5py.File(target, "w") as file:
        file["a"] = values
    code, report = verdict(original, target)
    assert code == 1 and len(report["problems"]) == 1 and "byte order" in report["problems"][0]
    code, report = verdict(original, target, "--bound", "abs=0.1")
    assert code == 0 and report["structure"]["differences"][0]["aspect"] == "byte order"


def test_references_are_found_by_address(tmp_path):
    """Compare as many references as a file of sorted spikes has; some have another target."""
    original, target = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(original, "w") as file:
        targets = [file.create_dataset(f"g/d{i}", data=i).ref for i in range(50)]
        file["leads"] = np.array(targets * 1400, h5py.ref_dtype)
    shutil.copy(original, target)
    tailrace("verify", original, target)
    with h5py.File(target, "r+") as file:
        for i in (7, 69999):
            file["leads"][i] = targets[0]
    for ranks in (1, 2):
        report = numbers("verify", original, target, code=1, ranks=ranks)
        assert report["problems"] == [
            'dataset "/leads": 2 of 70000 values differ, first [7]: -> /g/d0, but -> /g/d7 in the '
            'original']


def test_many_differences_are_counted(tmp_path):
    original, target = tmp_path / "in.h5", tmp_path / "out.h5"
    for path, value in ((original, 1), (target, 2)):
        with h5py.File(path, "w") as file:
            for i in range(150):
                file[f"d{i:03}"] = "text"
                file[f"d{i:03}"].attrs["a"] = value
    report = numbers("verify", original, target, code=1)
    assert report["n_failed"] == 150 and len(report["problems"]) == 101
    assert report["problems"][-1] == "attribute: 50 more"
    text = tailrace("verify", original, target, code=1).stdout
    assert "attribute: 145 more" in text and len(text.splitlines()) < 20
    assert "150 other differences" in text


def test_files_without_fields_say_what_was_compared(tmp_path):
    original, target = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(original, "w") as file:
        file["a"], file["b"] = "text", ["more", "texts"]
    shutil.copy(original, target)
    text = tailrace("verify", original, target).stdout
    assert text.endswith("no fields; 3 objects and 0 attributes compared, nothing missing\n")
    assert tailrace("verify", original, target, "--only", "nowhere*", code=2)
    text = tailrace("verify", original, target, "--values-only", code=2).stderr
    assert "contains nothing to compare" in text


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_file_that_cannot_be_walked_is_an_error_on_all_ranks(ranks, tmp_path):
    original, target = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(original, "w") as file:
        file["g/a"], file["g/b"] = np.arange(9.0), "text"
    whole = original.read_bytes()
    target.write_bytes(whole[:len(whole) // 2])
    tailrace("verify", original, target, ranks=ranks, code=2, timeout=60)
    tailrace("verify", target, original, ranks=ranks, code=2, timeout=60)


def test_names_are_shown_escaped(tmp_path):
    original, target = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(original, "w") as file:
        file["a\x1b[2Jb\nFAILED c"] = "text"
        file["x"] = 1.0
    with h5py.File(target, "w") as file:
        file["x"] = 1.0
    text = tailrace("verify", original, target, code=1).stdout
    assert "\x1b" not in text and "\nFAILED c" not in text
    assert numbers("verify", original, target, code=1)["structure"]["differences"][0]["path"] == \
        "/a\x1b[2Jb\nFAILED c"


def test_dimensions_of_netcdf_are_compared_by_name(tmp_path):
    """Copies may have other dimension numbers and lists of scales, but not other names."""
    original, target, other = (tmp_path / name for name in ("in.nc", "out.nc", "other.nc"))

    def write(path, order, second="y"):
        with netCDF4.Dataset(path, "w") as file:
            for name in order:
                file.createDimension(name, 4)
            for name in ("x", "y"):
                file.createVariable(name, "f8", (name,))[:] = np.arange(4)
            file.createVariable("u", "f4", ("x", second))[:] = 1
    write(original, "xyz")
    write(target, "zyx")
    write(other, "xyz", "z")
    found = verdict(original, target, "--ignore", "/")[1]
    assert found["problems"] == [], found
    assert "DIMENSION_LIST" in " ".join(verdict(original, other)[1]["problems"])
    tailrace("repack", original, "-o", target, "--force")
    tailrace("verify", original, target)
    with h5py.File(original, "r+") as file:
        for name in ("x", "y", "u"):
            for attribute in list(file[name].attrs):
                del file[name].attrs[attribute]
    tailrace("repack", original, "-o", target, "--netcdf", "--force")
    tailrace("verify", original, target)


def test_values_only_compares_no_more(tmp_path):
    original, target = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(original, "w") as file:
        file["a"], file["b"] = np.arange(9.0), "text"
    with h5py.File(target, "w") as file:
        file.create_dataset("a", data=np.arange(9.0), maxshape=(None,), fillvalue=3)
        file["more"] = 1
    tailrace("verify", original, target, code=1)
    report = numbers("verify", original, target, "--values-only")
    assert report["structure"] is None and len(report["fields"]) == 1
    assert "only values compared" in tailrace("verify", original, target, "--values-only").stdout
