"""tailrace concat: h5py reads the values of the inputs from the output, in order.

Tests run each case of concat_cases.py on 1 to 4 ranks, and every option. test_concat_faults.py
tests failures.
"""

import random
import shutil
import struct

import h5py
import numpy as np
import pytest

import concat_cases
from cli_tools import ENVIRONMENT, datasets, let_clients_forget, numbers, tailrace
from concat_reference import all_objects, check

pytestmark = pytest.mark.sample(3)


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    """Return a function that makes the files of a case once, such as inputs("numbers", 3)."""
    made = {}

    def build(name, n_files=4):
        if (name, n_files) not in made:
            folder = tmp_path_factory.mktemp(f"{name}_{n_files}")
            builder = concat_cases.CASES.get(name) or getattr(concat_cases, name)
            made[name, n_files] = builder(folder, n_files)
        if not made[name, n_files]:
            pytest.skip("the sample files are not there")
        return made[name, n_files]
    return build


def concat(output, files, *options, ranks=1, **keywords):
    """Run concat; return its report."""
    report = numbers("concat", "-o", output, *options, *files, ranks=ranks, **keywords)
    assert report["n_files"] + len(report["skipped"]) == len(files)
    assert not list(output.parent.glob(output.name + ".*")), "something is left beside the output"
    if "-a" in options:  # Clients may have cached the existing file.
        let_clients_forget()
    return report


def chunk_rows(path):
    """Return the first chunk extent of every chunked dataset."""
    with h5py.File(path, "r") as file:
        return {name: item.chunks[0] for name, item in all_objects(file).items()
                if isinstance(item, h5py.Dataset) and item.chunks}


def filters(path, dataset):
    """Return the numbers of a dataset's filters, with their client data."""
    with h5py.File(path, "r") as file:
        properties = file[dataset].id.get_create_plist()
        listed = [properties.get_filter(i) for i in range(properties.get_nfilters())]
        return [(number, data) for number, _, data, _ in listed]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("name", concat_cases.CASES)
def test_contents(name, ranks, inputs, tmp_path):
    report = concat(tmp_path / "out.h5", inputs(name), ranks=ranks)
    check(tmp_path / "out.h5", inputs(name))
    assert report["n_ranks"] == ranks
    assert report["output_bytes"] == (tmp_path / "out.h5").stat().st_size


@pytest.mark.parametrize("name,n_files,ranks", [("numbers", 1, 3), ("storage", 2, 4),
                                                ("large", 3, 4), ("kinds", 1, 1)])
def test_ranks_and_few_files(name, n_files, ranks, inputs, tmp_path):
    concat(tmp_path / "out.h5", inputs(name, n_files), ranks=ranks)
    check(tmp_path / "out.h5", inputs(name, n_files))


def test_report_counts(inputs, tmp_path):
    files = inputs("empties")
    report = concat(tmp_path / "out.h5", files, ranks=2)
    with h5py.File(tmp_path / "out.h5", "r") as file:
        found = [item for item in all_objects(file).values() if isinstance(item, h5py.Dataset)]
        assert report["n_datasets"] == len(found)
        assert report["n_empty"] == sum(len(item) == 0 for item in found)
        assert report["n_rows"] == sum(map(len, found))
        assert report["raw_bytes"] == sum(item.nbytes for item in found)
    assert report["input_bytes"] == sum(path.stat().st_size for path in files)
    assert list(report["stages"]) == ["open", "exchange", "read", "decode", "encode", "write",
                                      "create", "index", "close"]
    assert all(0 <= t["mean_s"] <= t["max_s"] for t in report["stages"].values())


@pytest.mark.parametrize("ranks", [1, 3])
def test_aligned_chunks_are_copied(ranks, inputs, tmp_path):
    report = concat(tmp_path / "out.h5", inputs("aligned"), ranks=ranks)
    check(tmp_path / "out.h5", inputs("aligned"))
    assert report["n_chunks"] == report["n_copied"] == 4 * (2 + 3 + 4 + 5)
    assert report["stages"]["encode"]["max_s"] == report["stages"]["decode"]["max_s"] == 0


def test_only_seams_are_encoded(tmp_path):
    """If a file begins on a chunk border, all of its chunks are copied except the last, incomplete
    one."""
    files = []
    for f, rows in enumerate((8192 * 5, 8192 * 3 + 100)):
        files.append(tmp_path / f"{f}.h5")
        with h5py.File(files[-1], "w") as file:
            file.create_dataset("u", data=np.arange(rows) + f, maxshape=(None,), chunks=(8192,),
                                compression="gzip")
    report = concat(tmp_path / "out.h5", files)
    check(tmp_path / "out.h5", files)
    assert report["n_chunks"] == 9
    assert report["n_copied"] >= 8


def test_tiny_chunks_become_large_ones(inputs, tmp_path):
    """Chunks of 128 elements need an index entry per 512 bytes; the default makes larger chunks."""
    files = inputs("large")
    concat(tmp_path / "out.h5", files)
    before, after = chunk_rows(files[0]), chunk_rows(tmp_path / "out.h5")
    assert all(after[f"/small/{i}"] > before[f"/small/{i}"] for i in range(20))


CHUNKS = [("7x", lambda item: 7), ("16x", lambda item: 16),
          ("4KiB", lambda item: max(1, 4096 // (item.dtype.itemsize * item[0:1].size)))]


@pytest.mark.parametrize("option,rows_of", CHUNKS, ids=[option for option, _ in CHUNKS])
@pytest.mark.parametrize("ranks", [1, 2])
def test_chunk(option, rows_of, ranks, inputs, tmp_path):
    files = inputs("aligned", 2)
    concat(tmp_path / "out.h5", files, "--chunk", option, ranks=ranks)
    check(tmp_path / "out.h5", files)
    with h5py.File(tmp_path / "out.h5", "r") as file:
        for name, rows in chunk_rows(tmp_path / "out.h5").items():
            wanted = rows_of(file[name])
            assert wanted / 2 <= rows <= wanted * 2, name
            assert rows == wanted or option.endswith("B"), name


CODECS = [("none", []), ("deflate", [1]), ("deflate,shuffle=on", [2, 1]), ("zstd", [32015]),
          ("zstd,level=9", [32015])]


@pytest.mark.parametrize("codec,numbers_of_filters", CODECS, ids=[codec for codec, _ in CODECS])
def test_codec(codec, numbers_of_filters, inputs, tmp_path):
    concat(tmp_path / "out.h5", inputs("storage"), "--codec", codec, ranks=2)
    check(tmp_path / "out.h5", inputs("storage"))
    for name in ("gzip", "chunked", "zstd", "blosc"):
        found = [number for number, _ in filters(tmp_path / "out.h5", name)]
        # A request for deflate may add shuffle.
        assert found[-1:] == numbers_of_filters[-1:], name


def test_level(inputs, tmp_path):
    sizes = {}
    for level in (1, 9):
        out = tmp_path / f"{level}.h5"
        sizes[level] = concat(out, inputs("aligned"), "-z", level)["output_bytes"]
        check(out, inputs("aligned"))
        assert filters(out, "ids") == [(1, (level,))]
        assert [number for number, _ in filters(out, "zstd")] == [32015], "is no deflate"
    assert sizes[9] != sizes[1]


@pytest.mark.parametrize("ranks", [1, 3])
def test_contiguous(ranks, inputs, tmp_path):
    for name in ("storage", "different", "shapes"):
        out = tmp_path / f"{name}.h5"
        concat(out, inputs(name), "-c", ranks=ranks)
        assert chunk_rows(out) == {}


def test_contiguous_contents(inputs, tmp_path):
    """Contiguous datasets cannot be unlimited, but must have the right values."""
    files = inputs("different")
    concat(tmp_path / "out.h5", files, "--contiguous", ranks=2)
    with h5py.File(tmp_path / "out.h5", "r") as got:
        for name in got:
            parts = [h5py.File(path, "r")[name][()] for path in files]
            assert np.array_equal(got[name][()], np.concatenate(parts)), name


def test_plain_below(inputs, tmp_path):
    files = inputs("large", 2)
    concat(tmp_path / "out.h5", files, "-m", "64KiB", ranks=2)
    plain = chunk_rows(tmp_path / "out.h5")
    assert "/noise/0" in plain and "/wide" in plain
    assert not [name for name in plain if name.startswith("/small")]
    with h5py.File(tmp_path / "out.h5", "r") as file, h5py.File(files[0], "r") as first, \
            h5py.File(files[1], "r") as second:
        for i in range(20):
            rows = np.concatenate([first[f"small/{i}"], second[f"small/{i}"]])
            assert np.array_equal(file[f"small/{i}"], rows)
            assert file[f"small/{i}"].id.get_offset() is not None


def test_dedup(tmp_path):
    """Equal chunks of a rank point to the same bytes."""
    files = []
    for f in range(3):
        files.append(tmp_path / f"{f}.h5")
        with h5py.File(files[-1], "w") as file:
            rows = np.repeat(np.arange(8), 8192)
            for name in "abc":
                file.create_dataset(name, data=rows, maxshape=(None,), chunks=(8192,),
                                    compression="gzip")
    plain = concat(tmp_path / "plain.h5", files)
    shared = concat(tmp_path / "shared.h5", files, "--dedup")
    check(tmp_path / "shared.h5", files)
    assert plain["n_shared"] == 0
    assert shared["n_shared"] == 3 * 3 * 8 - 8
    assert shared["output_bytes"] < plain["output_bytes"]


def shared_groups(path):
    """Return groups of chunks that share an address, as (dataset, place)."""
    places = {}
    with h5py.File(path, "r") as file:
        for name in file:
            for i in range(file[name].id.get_num_chunks()):
                chunk = file[name].id.get_chunk_info(i)
                places.setdefault(chunk.byte_offset, []).append((name, chunk.chunk_offset))
    return [group for group in places.values() if len(group) > 1]


@pytest.mark.parametrize("second", [[], ["--dedup"]])
@pytest.mark.parametrize("dedup", [True, False])
def test_rows_appended_to_one_of_several_datasets_that_share_chunks(tmp_path, dedup, second):
    """Chunks that change (the last, partial ones) move, and leave the address to the others."""
    files = []
    # Rows of each dataset by file. Each file extends other datasets, by rows that encode to as many
    # bytes as before, to more, or to fewer.
    for f, rows in enumerate([(100, 100, 100, 100), (0, 90, 0, 50), (60, 0, 0, 40), (0, 9, 0, 0)]):
        files.append(tmp_path / f"{f}.h5")
        with h5py.File(files[-1], "w") as file:
            for name, n in zip(["kept", "grows", "still", "noisy", "plain", "other"],
                               (*rows, rows[2], rows[1])):
                data = np.full(n, 7)
                if name == "noisy" and f > 0:
                    data = np.random.default_rng(f).integers(0, 1 << 60, n)
                file.create_dataset(name, data=data, maxshape=(None,), chunks=(128,),
                                    compression=None if name in ("plain", "other") else "gzip")
    output = tmp_path / "out.h5"
    concat(output, files[:1], "--chunk", "128x", *(["--dedup"] if dedup else []))
    groups = shared_groups(output)
    # HDF5 changes chunks without filters in place, so "plain" and "other" share nothing.
    assert groups == ([[(name, (0,)) for name in sorted(("kept", "grows", "still", "noisy"))]]
                      if dedup else [])
    for n in range(2, len(files) + 1):
        report = concat(output, files[n - 1:n], "-a", *second)
        check(output, files[:n])
        # If HDF5 reuses the space of replaced chunks, no chunk may be shared, now or later.
        assert dedup or (not shared_groups(output) and report["n_shared"] == 0)
        assert any("--dedup" in remark for remark in report["remarks"]) == (
            bool(second) and not dedup)


def test_a_file_that_shares_chunks_without_saying_so_is_not_appended_to(tmp_path):
    """Earlier versions of --dedup made such files. HDF5 would reuse the place of a replaced chunk
    although other chunks share it."""
    files = [tmp_path / "0.h5", tmp_path / "1.h5"]
    for path in files:
        with h5py.File(path, "w") as file:
            for name in "ab":
                file.create_dataset(name, data=np.full(100, 7), maxshape=(None,), chunks=(128,),
                                    compression="gzip")
    output = tmp_path / "out.h5"
    output.write_bytes(files[0].read_bytes())
    with h5py.File(output) as file:
        first, second = (file[name].id.get_chunk_info(0).byte_offset for name in "ab")
    content = output.read_bytes()
    content = content.replace(struct.pack("<Q", second), struct.pack("<Q", first))
    output.write_bytes(content)
    assert len(shared_groups(output)) == 1
    for words in ([], ["--dedup"]):
        done = tailrace("concat", "-o", output, "-a", files[1], *words, code=2)
        assert 'chunks of dataset "/a" and dataset "/b" share their bytes' in done.stderr
        assert output.read_bytes() == content


@pytest.mark.parametrize("name", ["large", "storage", "different"])
def test_dense_layout(name, inputs, tmp_path):
    files = inputs(name)
    concat(tmp_path / "out.h5", files, "--layout", "dense", ranks=3)
    check(tmp_path / "out.h5", files)


def test_few_rows_first_do_not_make_tiny_chunks_for_ever(tmp_path):
    """Chunk shapes of an output with few or no rows must suit rows that are appended later."""
    files = []
    for f, rows in enumerate([(5, 0), (30_000, 30_000)]):
        files.append(tmp_path / f"{f}.h5")
        with h5py.File(files[-1], "w") as file:
            for name, n_rows in zip("ab", rows):
                file.create_dataset(name, data=np.arange(n_rows, dtype="i4"), maxshape=(None,),
                                    chunks=(128,), compression="gzip")
    concat(tmp_path / "out.h5", files[:1])
    report = concat(tmp_path / "out.h5", files[1:], "-a")
    check(tmp_path / "out.h5", files)
    assert report["n_chunks"] == 1 + -(-30_005 // 128)


def test_dense_layout_with_contiguous_data_behind_large_chunks(tmp_path):
    """Contiguous data need no addresses from the round's end, so chunks that wait for it must not
    delay them."""
    files = []
    for f in range(2):
        files.append(tmp_path / f"{f}.h5")
        with h5py.File(files[-1], "w") as file:
            rows = np.arange(3_000_000 + f) * 1.5
            file.create_dataset("a", data=rows, maxshape=(None,), chunks=(65536,))
            file.create_dataset("b", data=rows[:200_000])
    concat(tmp_path / "out.h5", files, "--layout", "dense", "--threads", 1)
    check(tmp_path / "out.h5", files)


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_more_data_than_memory(ranks, inputs, tmp_path):
    memory = 2 << 20
    report = concat(tmp_path / "out.h5", inputs("large"), "-b", "2MiB", "--chunk", "64KiB",
                    ranks=ranks)
    check(tmp_path / "out.h5", inputs("large"))
    assert report["raw_bytes"] > 3 * memory
    assert report["n_rounds"] > 1
    assert report["peak_memory_bytes"] <= memory
    assert report["memory_cap_bytes"] == memory


@pytest.mark.parametrize("layout", ["claimed", "dense"])
def test_ranks_on_several_nodes(layout, inputs, tmp_path):
    """Pairs of ranks act as nodes, so that claims travel between nodes."""
    environment = {**ENVIRONMENT, "TAILRACE_RANKS_PER_NODE": "2"}
    concat(tmp_path / "out.h5", inputs("large"), "--layout", layout, "-b", "2MiB", "--chunk",
           "64KiB", ranks=4, environment=environment)
    check(tmp_path / "out.h5", inputs("large"))


def test_threads(inputs, tmp_path):
    report = concat(tmp_path / "out.h5", inputs("large", 2), "--threads", 3)
    check(tmp_path / "out.h5", inputs("large", 2))
    assert report["n_threads"] == 3


def expected_keys(files):
    """Return each group's keys: events are numbered in the order of /spill."""
    keys, n_events = {}, 0
    for path in files:
        with h5py.File(path, "r") as file:
            def tuples(group):
                columns = [file[f"{group}/{name}"][:, 0] for name in ("run", "subrun", "evt")]
                return list(zip(*columns))
            numbered = {}
            for event in tuples("/spill"):
                numbered.setdefault(event, n_events + len(numbered))
            for group in ("/spill", "/rec/tracks", "/rec/nothing"):
                keys.setdefault(group, []).extend(numbered[event] for event in tuples(group))
            n_events += len(numbered)
    return keys


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_keys(ranks, inputs, tmp_path):
    files = inputs("spills")
    concat(tmp_path / "out.h5", files, "-k", "run,subrun,evt", ranks=ranks)
    expected = expected_keys(files)
    check(tmp_path / "out.h5", files, extra=[f"{group}/evt.seq" for group in expected])
    with h5py.File(tmp_path / "out.h5", "r") as file:
        for group, keys in expected.items():
            key = file[f"{group}/evt.seq"]
            assert key.dtype == np.dtype("i8")
            assert key[()].ravel().tolist() == keys, group
            assert len(key) == len(file[f"{group}/evt"])
        assert "evt.seq" not in file["other"]


def test_keys_of_an_appended_file(inputs, tmp_path):
    files = inputs("spills")
    concat(tmp_path / "out.h5", files[:2], "-k", "run,subrun,evt")
    concat(tmp_path / "out.h5", files[2:], "-k", "run,subrun,evt", "-a", ranks=2)
    with h5py.File(tmp_path / "out.h5", "r") as file:
        for group, keys in expected_keys(files).items():
            assert file[f"{group}/evt.seq"][()].ravel().tolist() == keys, group


@pytest.mark.parametrize("ranks", [1, 3])
def test_sort(ranks, inputs, tmp_path):
    files = inputs("spills")
    mixed = [files[i] for i in (2, 0, 3, 1)]
    report = concat(tmp_path / "out.h5", mixed, "--sort", ranks=ranks)
    assert report["inputs"] == list(map(str, files))
    check(tmp_path / "out.h5", files)
    by_value = concat(tmp_path / "value.h5", mixed, "--sort=/spill/subrun", ranks=ranks)
    assert by_value["inputs"] == report["inputs"]
    # Files with equal sort values keep the given order.
    alike = concat(tmp_path / "alike.h5", mixed, "--sort=/spill/run", ranks=ranks)
    assert alike["inputs"] == list(map(str, mixed))


APPENDED = [(name, []) for name in ("large", "numbers", "shapes", "storage", "holes", "empties",
                                    "objects", "kinds", "different", "newer")]
APPENDED += [(name, options) for name in ("large", "empties", "different")
             for options in (["--layout", "dense"], ["--dedup"], ["--chunk", "30x"])]


@pytest.mark.sample(6)
@pytest.mark.parametrize("name,options", APPENDED,
                         ids=[" ".join([name, *options]) for name, options in APPENDED])
def test_append(name, options, inputs, tmp_path):
    """Append three times: to partial chunks, to datasets without rows, with existing shapes."""
    files = inputs(name)
    out = tmp_path / "out.h5"
    # This order gives different numbers of rows to the appends: 64, none, 5, 37.
    ordered = [files[i] for i in (2, 1, 3, 0)]
    if name == "objects":
        ordered = files  # links and attributes come from the first
    concat(out, ordered[:1], *options, ranks=2)
    for n, ranks in ((2, 1), (3, 3), (4, 2)):
        report = numbers("concat", "-o", out, "-a", *options, ordered[n - 1], ranks=ranks)
        assert report["n_files"] == 1
        check(out, ordered[:n])


def test_append_leaves_full_chunks_alone(inputs, tmp_path):
    files = inputs("aligned")
    out = tmp_path / "out.h5"
    concat(out, files[:3])
    report = numbers("concat", "-o", out, "-a", files[3])
    assert report["n_chunks"] == report["n_copied"] == 4 * 5
    check(out, files)


def test_lists(inputs, tmp_path):
    """Lists may have comments, blank lines, carriage returns and spaces, or be standard input."""
    files = [shutil.copy(path, tmp_path / f"a name {i}.h5")
             for i, path in enumerate(inputs("shapes"))]
    listed = tmp_path / "list.txt"
    text = "# inputs\r\n\r\n  " + "\r\n\n# more\n".join(map(str, files))
    listed.write_bytes(text.encode())
    tailrace("concat", "-o", tmp_path / "out.h5", "-i", listed, ranks=3)
    check(tmp_path / "out.h5", files)


def test_report_for_people(inputs, tmp_path):
    done = tailrace("concat", "-o", tmp_path / "out.h5", *inputs("numbers"), ranks=2)
    for word in ("4 files", "datasets", "copied as stored", "encoded again", "memory", "decode",
                 "2 ranks"):
        assert word in done.stdout, done.stdout
    quiet = tailrace("concat", "-o", tmp_path / "quiet.h5", "-q", *inputs("numbers"))
    assert quiet.stdout == "" and quiet.stderr == ""


@pytest.mark.parametrize("seed", range(6))
def test_random_requests(seed, inputs, tmp_path):
    """Combine options randomly, on any number of ranks."""
    choose = random.Random(seed)
    for _ in range(5):
        # Case "storage" is excluded: its filters are set up for one chunk shape.
        name = choose.choice(["large", "different", "holes", "numbers", "shapes", "newer"])
        files = choose.sample(inputs(name), choose.randint(1, 4))
        options = choose.choice([[], ["--chunk", f"{choose.randint(1, 300)}x"],
                                 ["--chunk", f"{choose.randint(1, 64)}KiB"]])
        options = options + choose.choice([[], ["--codec", "none"], ["--codec", "deflate"],
                                           ["-z", choose.randint(0, 9)]])
        options = options + choose.choice([[], ["--layout", "dense"]])
        options = options + choose.choice([[], ["--dedup"]])
        options = options + choose.choice([[], ["-b", "10MiB"]])
        out = tmp_path / "out.h5"
        concat(out, files, *options, "--force", ranks=choose.randint(1, 4))
        check(out, files)


def different(path, f, change=None):
    """Write a file with every kind of object that is not appended; `change` changes the file."""
    with h5py.File(path, "w") as file:
        concat_cases.dataset(file, "u", np.arange(40) + f)
        file.attrs["title"] = "hits"
        file["u"].attrs["units"] = "m"
        file["version"] = 12
        file["nothing"] = h5py.Empty("f4")
        file.create_group("g/inner").attrs["low"] = np.arange(3)
        file["pair"] = np.dtype([("a", "i4"), ("b", "f8")])
        file["soft"] = h5py.SoftLink("/u")
        file["outer"] = h5py.ExternalLink("other.h5", "/u")
        file["twin"] = file["g/inner"]
        if change is not None:
            change(file)
    return path


def replaced(name, value):
    def change(file):
        if name in file:
            del file[name]
        file[name] = value
    return change


def attribute(name, value, path="/"):
    return lambda file: file[path].attrs.__setitem__(name, value)


DIFFERENCES = {
    'group "/": attribute "title"': attribute("title", "misses"),
    'group "/": attribute "run"': attribute("run", 7),
    'group "/g/inner": attribute "low"': attribute("low", np.arange(3.0), "g/inner"),
    'group "/g": attribute "shape"': attribute("shape", np.zeros((2, 3)), "g"),
    'dataset "/u": attribute "note"': attribute("note", "later", "u"),
    'dataset "/u": attribute "target"': lambda file: attribute("target", file["u"].ref, "u")(file),
    'dataset "/version"': replaced("version", 13),
    'dataset "/version" ': replaced("version", "12"),
    'dataset "/nothing"': replaced("nothing", np.float32(0)),
    'named type "/pair"': replaced("pair", np.dtype([("a", "i4"), ("c", "f8")])),
    'link "/soft"': replaced("soft", h5py.SoftLink("/version")),
    'link "/outer"': replaced("outer", h5py.ExternalLink("other.h5", "/v")),
    'link "/new"': replaced("new", h5py.SoftLink("/u")),
    'group "/more"': lambda file: file.create_group("more"),
    'named type "/other"': replaced("other", np.dtype("i4")),
    'link "/twin"': lambda file: file.__delitem__("twin"),
    'group "/g/inner": attribute "low" ': lambda file: file["g/inner"].attrs.__delitem__("low"),
}


@pytest.mark.parametrize("name", DIFFERENCES)
def test_what_only_later_inputs_have_is_named(name, tmp_path):
    """One remark, with the number of inputs and the first of them; verify --concat says the same;
    an output that grows is compared with, too."""
    files = [different(tmp_path / f"{f}.h5", f, DIFFERENCES[name] if f in (2, 3) else None)
             for f in range(5)]
    out = tmp_path / "out.h5"
    for ranks in (1, 3):
        remarks = concat(out, files, "--force", ranks=ranks)["remarks"]
        assert len(remarks) == 1 and remarks[0].startswith(name.strip()), remarks
        assert "2 inputs (first: " in remarks[0] and "2.h5)" in remarks[0]
        report = numbers("verify", "--concat", out, *files, ranks=ranks)
        assert report["ok"] and report["remarks"] == remarks
    check(out, files)
    concat(out, files[:1], "--force")
    remarks = concat(out, files[1:], "-a", ranks=2)["remarks"]
    assert len(remarks) == 1 and remarks[0].startswith(name.strip()), remarks
    assert "2 inputs (first: " in remarks[0] and "output" in remarks[0]
    remarks = concat(out, files[2:4], "-a", ranks=2)["remarks"]
    assert len(remarks) == 1 and "the output keeps its own" in remarks[0], remarks


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("chunk", [16, 64])
def test_an_append_leaves_no_bytes_behind_the_end(chunk, ranks, tmp_path):
    """HDF5 keeps the place of a chunk without filters, whose new values were written elsewhere."""
    files = []
    for f in range(3):
        files.append(tmp_path / f"{f}.h5")
        with h5py.File(files[-1], "w") as file:
            concat_cases.dataset(file, "u", np.random.default_rng(f).random((40, 3)), chunk=chunk)
    out = tmp_path / "out.h5"
    concat(out, files[:1], ranks=ranks)
    for f in (1, 2):
        concat(out, files[f:f + 1], "-a", ranks=ranks)
        end = struct.unpack_from("<Q", out.read_bytes(), 28)[0]
        assert end == out.stat().st_size
        report = numbers("recover", out)
        assert report["actions"] == [] and report["state"] == "whole"
    check(out, files)


def test_bytes_outside_the_files_are_remarks_of_verify(tmp_path):
    files = []
    for f in range(3):
        files.append(tmp_path / f"{f}.h5")
        with h5py.File(files[-1], "w", userblock_size=512 if f == 1 else 0) as file:
            concat_cases.dataset(file, "u", np.arange(9) + f)
        if f == 2:
            with open(files[-1], "ab") as raw:
                raw.write(b"behind")
    out = tmp_path / "out.h5"
    assert len(concat(out, files, ranks=2)["remarks"]) == 2
    for ranks in (1, 2):
        report = numbers("verify", "--concat", out, *files, ranks=ranks)
        assert report["ok"] and len(report["remarks"]) == 2
        assert "user blocks in front of 1 input" in report["remarks"][0]
        assert "behind the end of the HDF5 file of 1 input" in report["remarks"][1]
    with open(out, "ab") as raw:
        raw.write(b"behind")
    remarks = numbers("verify", "--concat", out, *files)["remarks"]
    assert len(remarks) == 3 and "out.h5: bytes behind the end" in remarks[2]


def test_verify_compares_links(tmp_path):
    files = [different(tmp_path / f"{f}.h5", f) for f in range(2)]
    out = tmp_path / "out.h5"
    concat(out, files)
    for change, words in ((lambda file: file.__delitem__("soft"), '"/soft" is missing'),
                          (lambda file: file.__setitem__("new", h5py.SoftLink("/u")),
                           '"/new" is not in any input'),
                          (replaced("outer", h5py.SoftLink("/u")), '"/outer" has another target')):
        shutil.copy(out, tmp_path / "bad.h5")
        with h5py.File(tmp_path / "bad.h5", "a") as file:
            change(file)
        done = tailrace("verify", "--concat", tmp_path / "bad.h5", *files, code=1)
        assert f"link {words}" in " ".join(done.stdout.split()), done.stdout


def test_equal_inputs_have_no_remarks(tmp_path):
    files = [different(tmp_path / f"{f}.h5", f) for f in range(4)]
    out = tmp_path / "out.h5"
    assert concat(out, files, ranks=3)["remarks"] == []
    report = numbers("verify", "--concat", out, *files, ranks=2)
    assert report["ok"] and report["remarks"] == []
    assert concat(out, files, "-a", ranks=3)["remarks"] == []


@pytest.mark.parametrize("ranks", [1, 2])
def test_units_that_differ_are_refused(ranks, tmp_path):
    files = [different(tmp_path / "0.h5", 0),
             different(tmp_path / "1.h5", 1, attribute("units", "km", "u"))]
    out = tmp_path / "out.h5"
    done = tailrace("concat", "-o", out, *files, ranks=ranks, code=2)
    assert "1.h5" in done.stderr and 'dataset "/u": attribute "units"' in done.stderr
    assert not out.exists()
    remarks = concat(out, files, "--on-different", "keep-first", ranks=ranks)["remarks"]
    assert len(remarks) == 1 and 'attribute "units"' in remarks[0]
    tailrace("verify", "--concat", out, *files, ranks=ranks, code=1)
    tailrace("verify", "--concat", out, "--on-different", "keep-first", *files, ranks=ranks)


@pytest.mark.parametrize("ranks", [1, 4])
def test_many_different_names_are_few_remarks(ranks, tmp_path):
    """Names beyond 50 are counted as more; the counts of the named ones are of all ranks."""
    def change(first):
        def make(file):
            for i in range(first, first + 60):
                file.attrs[f"a{i:03}"] = first
        return make
    files = [different(tmp_path / f"{f}.h5", f, change(10 * f) if f else None) for f in range(8)]
    remarks = concat(tmp_path / "out.h5", files, ranks=ranks)["remarks"]
    assert len(remarks) == 51
    for i, line in enumerate(remarks[:50]):
        n = sum(10 * f <= i + 10 < 10 * f + 60 for f in range(1, 8))
        assert f'attribute "a{i + 10:03}" of {n} input{"s" * (n > 1)} (first: ' in line, line
        assert "1.h5)" in line
    assert remarks[50] == "more attributes differ between inputs; the first 50 are named"


@pytest.mark.parametrize("ranks", [1, 3])
def test_what_is_not_kept_is_named(ranks, tmp_path):
    """Remarks name user blocks, checksums and compact storage that the output does not keep."""
    files = []
    for f in range(3):
        files.append(tmp_path / f"{f}.h5")
        with h5py.File(files[-1], "w", userblock_size=512 if f else 0) as file:
            concat_cases.dataset(file, "checked", np.arange(40) + f, fletcher32=True)
            concat_cases.compact(file, "small", np.arange(5) + f)
        if f:
            with open(files[-1], "r+b") as raw:
                raw.write(b"in front of all")
    remarks = concat(tmp_path / "out.h5", files, ranks=ranks)["remarks"]
    check(tmp_path / "out.h5", files)
    assert len(remarks) == 2
    assert any("/small" in line for line in remarks)
    assert any("user blocks in front of 2 inputs" in line for line in remarks)
    remarks = concat(tmp_path / "zstd.h5", files, "--codec", "zstd", ranks=ranks)["remarks"]
    assert any("checksums are not kept" in line and "/checked" in line for line in remarks)


@pytest.mark.parametrize("bound", ["rel=1e-3", "abs=1e-3"])
def test_one_step_files_of_trz_need_one_bound(bound, tmp_path):
    """rel gives each file other filter parameters. The error names what docs/concat.md offers."""
    files = []
    for at in range(5):
        field = np.random.default_rng(at).normal(size=(1, 96, 200)).cumsum(axis=2).astype("f4")
        with h5py.File(tmp_path / f"in{at}.h5", "w") as file:
            file.create_dataset("u", data=field, maxshape=(None, 96, 200), chunks=(1, 96, 200))
        files.append(tmp_path / f"{at}.h5")
        tailrace("repack", tmp_path / f"in{at}.h5", "-o", files[-1], "--bound", bound,
                 "--codec", "trz")
    if bound.startswith("abs"):
        concat(tmp_path / "out.h5", files)
    else:
        done = tailrace("concat", "-o", tmp_path / "out.h5", *files, code=3)
        assert "--codec deflate" in done.stderr and "bound abs= instead of rel=" in done.stderr
        assert not (tmp_path / "out.h5").exists()
        concat(tmp_path / "out.h5", files, "--codec", "deflate")
    values = [datasets(file)["u"] for file in files]
    assert np.array_equal(datasets(tmp_path / "out.h5")["u"], np.concatenate(values))
