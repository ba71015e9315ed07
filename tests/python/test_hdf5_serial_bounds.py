"""Serial programs and tools with libtailrace_hdf5_serial.so preloaded and TAILRACE_OPTIONS.

Other codecs and bounds replace the program's filters. Files are compared with plain ones."""

import os
import re
import shutil
import subprocess
import sys

import h5py
import numpy as np
import pytest
from cli_tools import numbers, tailrace
from hdf5_runs import built

pytestmark = pytest.mark.sample(2)

LOSSY_TEMP = 3  # Number of chunks of 4 records for 10 records.


def preloaded(words, options, code=0, **environment):
    """Run a program with Tailrace preloaded and these options; return its stderr."""
    done = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, timeout=600,
        env={**os.environ, "LD_PRELOAD": str(built("lib", "libtailrace_hdf5_serial.so")),
             "TAILRACE_REPORT": "1", "HDF5_PLUGIN_PATH": "", "TAILRACE_OPTIONS": options,
             **environment})
    assert done.returncode == code or (code is None and done.returncode != 0), done.stderr
    return done.stderr


def counts_of(said):
    found = re.search(r"(\d+) chunks encoded .* (\d+) completed, (\d+) left to HDF5; (\d+) "
                      r"decoded; (\d+) encoded within bounds", said)
    assert found, said
    return dict(zip(("encoded", "completed", "left", "decoded", "lossy"), map(int, found.groups())))


def stored(path):
    """Read every dataset's values with h5py and our plug-ins, in a separate process."""
    code = ("import sys, h5py, numpy as np\n"
            "found = {}\n"
            "def note(name, item):\n"
            "    if isinstance(item, h5py.Dataset): found[name] = item[()]\n"
            "h5py.File(sys.argv[1]).visititems(note)\n"
            "np.savez(sys.argv[2], **found)\n")
    values = f"{path}.npz"
    subprocess.run([sys.executable, "-c", code, str(path), values], check=True, timeout=600,
                   env={**os.environ, "HDF5_PLUGIN_PATH": str(built("lib", "hdf5", "plugin"))})
    return dict(np.load(values))


def filters(path, name):
    with h5py.File(path) as file:
        list_of = file[name].id.get_create_plist()
        return [list_of.get_filter(i)[3].decode() for i in range(list_of.get_nfilters())]


def attributes(path, name):
    with h5py.File(path) as file:
        return {key: value.decode() if isinstance(value, bytes) else value
                for key, value in file[name].attrs.items() if key.startswith("tailrace")}


def worst(native, ours, name):
    """Return the largest error; special values and fill values must be equal."""
    a = native[name].astype("f8")
    b = ours[name].astype("f8")
    assert a.shape == b.shape
    measured = np.abs(a) < 1e30
    assert (a[~measured] == b[~measured]).all()
    return np.abs(a - b)[measured].max()


@pytest.fixture(scope="module", name="native")
def native_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("root_rank") / "native.h5"
    subprocess.run([built("bin", "hdf5_serial", "root_rank"), path], check=True, timeout=600)
    return path


def root_rank(path, options, code=0, more=(), **environment):
    words = [built("bin", "hdf5_serial", "root_rank"), path, *more]
    return preloaded(words, options, code, **environment)


@pytest.mark.parametrize("threads", ["1", "3"])
def test_a_bound_takes_the_place_of_filters(tmp_path, native, threads):
    ours = tmp_path / "ours.h5"
    said = root_rank(ours, "bound=abs=1e-2", TAILRACE_THREADS=threads)
    counts = counts_of(said)
    # temp 3, wind 2, patched 4, plain 1, masked 1. In patched a row is rewritten five times; its
    # chunk is exact from then on.
    assert counts["lossy"] == LOSSY_TEMP + 2 + 4 + 1 + 1
    # More chunks are encoded by Tailrace, or by HDF5 if they replace a chunk of equal length: that
    # row's chunk five times, cell (a coordinate), and counts (integers).
    assert counts["encoded"] + counts["left"] == counts["lossy"] + 5 + 2
    assert counts["completed"] == 5
    before, after = stored(native), stored(ours)
    assert before.keys() == after.keys()
    for name in ("temp", "physics/wind", "patched", "plain", "masked"):
        assert 0 < worst(before, after, name) <= 1e-2, name
        assert filters(ours, name) == ["trz"]
        notes = attributes(ours, name)
        assert notes["tailrace_codec"] == "trz"
        assert notes["tailrace_bound_mode"] == "abs"
        assert notes["tailrace_bound_asked"] == notes["tailrace_absolute_bound"] == 1e-2
    for name in ("counts", "cell"):
        assert worst(before, after, name) == 0
        assert attributes(ours, name) == {}
    assert filters(ours, "counts") == ["shuffle", "deflate"]
    with h5py.File(native) as a, h5py.File(ours) as b:
        assert b["temp"].chunks == a["temp"].chunks and b["temp"].maxshape == a["temp"].maxshape
        assert b["temp"].id.get_storage_size() < a["temp"].id.get_storage_size() / 2
        # Rewritten rows and points are exact.
        exact = np.s_[30]
        assert (before["patched"][exact] == after["patched"][exact]).all()
        for point in ((70, 3), (50, 100), (71, 4)):
            assert before["patched"][point] == after["patched"][point]
    # verify and info read the bounds from the file.
    report = numbers("verify", native, ours)
    assert report["n_failed"] == 0
    bounds = {field["path"]: field["absolute_bound"] for field in report["fields"]}
    assert bounds["/temp"] == bounds["/masked"] == 1e-2
    assert "abs=0.01" in tailrace("info", ours).stdout


@pytest.mark.parametrize("options, relative", [
    ("codec=portable,bound=rel=1e-4", True), ("codec=trz,bound=rel=1e-3", True),
    ("temp: bound=abs=0.5; */wind: codec=trz,preset=ratio,bound=pw_rel=1e-3", False),
])
def test_bounds_of_all_modes(tmp_path, native, options, relative):
    ours = tmp_path / "ours.h5"
    said = root_rank(ours, options)
    assert counts_of(said)["lossy"] >= LOSSY_TEMP + 2
    before, after = stored(native), stored(ours)
    if relative:
        fraction = float(options.rsplit("=", 1)[1])
        for name in ("temp", "physics/wind", "patched", "plain", "masked"):
            kept = before[name][np.abs(before[name]) < 1e30]
            bound = fraction * (float(kept.max()) - float(kept.min()))
            told = attributes(ours, name)["tailrace_absolute_bound"]
            assert 0 < worst(before, after, name) <= told <= bound * (1 + 1e-12), name
            assert told > 0.5 * bound
        if "portable" in options:
            assert filters(ours, "temp") == ["shuffle", "deflate"]
    else:
        assert 0.01 < worst(before, after, "temp") <= 0.5
        a, b = (each["physics/wind"].astype("f8") for each in (before, after))
        assert 0 < (np.abs(a - b) / np.abs(a)).max() <= 1e-3
        for name in ("patched", "plain", "masked", "cell", "counts"):
            assert worst(before, after, name) == 0
            assert filters(ours, name) == filters(native, name)
    tailrace("verify", native, ours)


def test_a_codec_without_a_bound_loses_nothing(tmp_path, native):
    ours = tmp_path / "ours.h5"
    counts = counts_of(root_rank(ours, "codec=xor; plain: codec=none; patched: bound=none"))
    assert counts["lossy"] == 0
    before, after = stored(native), stored(ours)
    for name in before:
        assert worst(before, after, name) == 0
        assert attributes(ours, name) == {}
    assert filters(ours, "temp") == ["xor"]
    assert filters(ours, "plain") == []


def test_records_that_are_appended_keep_their_bound(tmp_path):
    native, ours = tmp_path / "native.h5", tmp_path / "ours.h5"
    program = built("bin", "hdf5_serial", "root_rank")
    for more in ([], ["append"]):
        subprocess.run([program, native, *more], check=True, timeout=600)
    root_rank(ours, "bound=rel=1e-3")
    told = attributes(ours, "temp")["tailrace_absolute_bound"]
    # The file has two records of the chunk of records 8 to 11: that chunk is now exact. The next
    # chunk is new.
    counts = counts_of(root_rank(ours, "bound=rel=1e-3", more=["append"]))
    assert (counts["lossy"], counts["encoded"], counts["completed"]) == (1, 2, 1)
    before, after = stored(native), stored(ours)
    assert before["temp"].shape[0] == 16
    assert (before["temp"][10:12] == after["temp"][10:12]).all()
    assert 0 < np.abs(before["temp"][12:] - after["temp"][12:]).max() <= told
    assert worst(before, after, "temp") <= attributes(ours, "temp")["tailrace_absolute_bound"]
    # With a different bound, or none, the appended values lose nothing.
    for options in ("bound=abs=3", ""):
        again = tmp_path / "again.h5"
        root_rank(again, "bound=rel=1e-3")
        assert counts_of(root_rank(again, options, more=["append"]))["lossy"] == 0
        assert (before["temp"][10:] == stored(again)["temp"][10:]).all()


@pytest.mark.parametrize("options, named", [
    ("bund=abs=1", 'unknown option "bund"'), ("temp: codec=sz3,bound=abs=1", "sz3"),
    ("bound=abs=-1", "bound"), ("layout=dense", "option layout=dense: not served"),
    ("temp*: verify=on", "option verify=on: not served"), ("mode=async", "option mode="),
    ("component:a: bound=abs=1", "component:"), ("codec=trz,level=77", "level"),
    ("/no/such/file", "neither options nor the path"),
])
def test_wrong_options_fail_the_create(tmp_path, options, named):
    path = tmp_path / "none.h5"
    said = root_rank(path, options, code=3)
    lines = [line for line in said.splitlines() if line.startswith("tailrace: H5Fcreate: ")]
    assert len(lines) == 1, said
    assert str(path) in lines[0] and "TAILRACE_OPTIONS" in lines[0] and named in lines[0]
    assert not path.exists()


def test_what_fits_no_dataset_fails_its_create_and_idle_globs_are_named(tmp_path):
    path = tmp_path / "a.h5"
    said = root_rank(path, "plain: codec=trz,chunk=3x4x5", code=1)
    assert "tailrace: H5Dcreate: dataset \"/plain\"" in said
    said = root_rank(path, "temp: bound=abs=1,guard=region=*x*x0..2:0.5", code=3)
    assert ('options of "temp": option guard=region=*x*x0..2:0.5: not served by the serial HDF5'
            in said)
    # Options without a codec or a bound have no effect.
    root_rank(path, "plain: chunk=3x5")
    with h5py.File(path) as file:
        assert file["plain"].chunks is None
    root_rank(path, "masked: chunk=3x5,codec=xor")
    with h5py.File(path) as file:
        assert file["masked"].chunks == (96, 160)
    said = root_rank(path, "temp*: bound=abs=1; tmep: bound=abs=1; /physics/w?nd: codec=xor; "
                           "wind/*: codec=xor")
    lines = [line for line in said.splitlines() if "nothing in the file" in line]
    assert lines == [f"tailrace: {path}: these options match nothing in the file: "
                     '"tmep", "wind/*"']


@pytest.mark.parametrize("when", [[], ["opened"], ["closed"]])
def test_chunks_that_the_program_encodes_are_not_taken_for_ours(tmp_path, when):
    said = root_rank(tmp_path / "a.h5", "codec=xor", code=5, more=["chunk", *when])
    assert "tailrace: H5Dwrite_chunk: " in said
    assert not stored(tmp_path / "a.h5")["encoded"].any()
    root_rank(tmp_path / "a.h5", "other: codec=xor", more=["chunk", *when])
    root_rank(tmp_path / "a.h5", "", more=["chunk", *when])


def remarks(said):
    """Remarks about options, reported when a file is closed."""
    return [line.split(": ", 2)[2] for line in said.splitlines()
            if line.startswith("tailrace: /") and ".h5: " in line]


def test_copies_by_hdf5_have_filters_and_words_of_their_sources(tmp_path):
    path = tmp_path / "a.h5"
    # The exit code is 10 plus the number of refused calls: all three.
    said = root_rank(path, "codec=xor", code=13, more=["copies"])
    assert said.count("tailrace: H5Dwrite_chunk: ") == 3
    exact = stored(path)
    assert exact["made/field"].any()
    said = root_rank(path, "bound=abs=1e-2", code=13, more=["copies"])
    lossy = stored(path)
    assert 0 < worst(exact, lossy, "made/field") <= 1e-2
    for name in ("one", "whole/field"):
        assert (exact[name] == exact["made/field"]).all()
        assert (lossy[name] == lossy["made/field"]).all()
        assert filters(path, name) == ["trz"]
        assert attributes(path, name) == attributes(path, "made/field")
        assert attributes(path, name)["tailrace_absolute_bound"] == 1e-2
    assert remarks(said) == ["options do not apply to datasets that are created without a name "
                             '(H5Dcreate_anon): "(without a name)"']
    # Datasets that options do not create stay as the program defines them.
    said = root_rank(path, "one: bound=abs=1; whole/*: codec=xor", more=["copies"])
    assert ("options do not apply to the copies of H5Ocopy, which are stored like their sources: "
            '"/one", "/whole/field"') in remarks(said)
    assert "H5Dwrite_chunk" not in root_rank(path, "", more=["copies"])


@pytest.mark.parametrize("options", ["codec=xor", "bound=abs=1e-2"])
def test_copies_of_what_is_open_to_be_read_alone_are_protected(tmp_path, options):
    path = tmp_path / "a.h5"
    said = root_rank(path, options, code=11, more=["apart"])
    assert said.count("tailrace: H5Dwrite_chunk: ") == 1
    # Options do not apply to integers, with or without a name.
    assert "H5Dcreate_anon" not in said
    assert filters(path, "copy") == ["xor" if "xor" in options else "trz"]
    assert "H5Dwrite_chunk" not in root_rank(path, "", more=["apart"])


@pytest.mark.parametrize("options, told", [
    ("bound=abs=1,chunk=1MiB",
     ["chunk= applies only to datasets that the program does not chunk; others keep the program's "
     'chunks: '
      '"/cell", "/masked", "/patched", "/physics/wind", "/temp"']),
    ("temp: bound=abs=1; plain: chunk=3x5; masked: guard=sign",
     ["chunk= and guard= have no effect without codec= or bound= in these options: "
      '"/masked", "/plain"']),
    ("chunk=1MiB,guard=sign",
     ["chunk= and guard= have no effect without codec= or bound= in these options"]),
    ("counts: codec=trz,bound=abs=1; temp: bound=abs=1",
     ['codecs and bounds apply only to native f32 and f64 values: "/counts"']),
    # Matches of wildcards may be unintended, so no remark is made.
    ("*: bound=abs=1", []),
])
def test_what_is_not_done_as_asked_is_said(tmp_path, options, told):
    path = tmp_path / "a.h5"
    assert remarks(root_rank(path, options)) == told


def test_threads_that_are_no_number_are_named(tmp_path):
    said = root_rank(tmp_path / "a.h5", "", TAILRACE_THREADS="two")
    assert said.count("TAILRACE_THREADS=two: expected 1 to 1024; using all cores") == 1


@pytest.mark.full
def test_a_coordinate_may_become_one_behind_its_values(tmp_path):
    native, ours, late = tmp_path / "native.h5", tmp_path / "ours.h5", tmp_path / "late.h5"
    program = built("bin", "hdf5_serial", "root_rank")
    subprocess.run([program, native, "scale"], check=True, timeout=600)
    before = stored(native)
    # The axis waits in memory, while full batches of temp are encoded.
    said = root_rank(ours, "bound=abs=1e-3", more=["scale"])
    assert counts_of(said)["lossy"] == 150
    assert worst(before, stored(ours), "axis") == 0
    assert 0 < worst(before, stored(ours), "temp") <= 1e-3
    assert attributes(ours, "axis") == {}
    assert "dimension scale" not in said
    # Flushed before it becomes a scale, the dataset gets the requested bound and a message.
    said = root_rank(late, "bound=abs=1e-3", more=["scale", "flushed"])
    assert 0 < worst(before, stored(late), "axis") <= 1e-3
    assert said.count('dataset "/axis" became a dimension scale') == 1
    # An option with the dataset's name is intended.
    said = root_rank(late, "axis: bound=abs=1e-3", more=["scale"])
    assert 0 < worst(before, stored(late), "axis") <= 1e-3
    assert "dimension scale" not in said


def test_what_waits_for_a_flush_makes_room_first(tmp_path):
    """Complete chunks are encoded before partial ones, which would be exact from then on."""
    counts = counts_of(root_rank(tmp_path / "a.h5", "bound=abs=1e-3", more=["long"]))
    assert (counts["lossy"], counts["encoded"]) == (70 + 1, 70 + 1)
    assert (counts["completed"], counts["left"]) == (0, 0)


def test_filters_of_a_list_without_chunks_are_replaced_too(tmp_path):
    root_rank(tmp_path / "a.h5", "", code=5, more=["flat"])
    root_rank(tmp_path / "a.h5", "bound=abs=1e-2", more=["flat"])
    assert filters(tmp_path / "a.h5", "flat") == ["trz"]


def test_files_of_other_writers_are_read_by_all_threads(tmp_path, native):
    """The files have trz, with the bound in the filter's entry, and xor; no plug-in is needed."""
    for codec in ("trz,bound=abs=1e-2", "xor"):
        name, *bound = codec.split(",bound=")
        there, again = tmp_path / f"{name}.h5", tmp_path / f"{name}_again.h5"
        tailrace("repack", native, "-o", there, "--codec", name,
                 *(["--bound", bound[0]] if bound else []))
        counts = counts_of(preloaded(["h5repack", "-f", "GZIP=1", there, again], ""))
        assert counts["decoded"] >= 7
        before, after = stored(there), stored(again)
        for name_of in before:
            assert worst(before, after, name_of) == 0


@pytest.mark.parametrize("options", ["codec=trz", "codec=xor", "codec=portable", "bound=none"])
def test_all_ways_to_write_leave_the_same_values(tmp_path, options):
    """The patterns of test_hdf5_serial; datasets stay open, so HDF5 runs filters while the process
    ends."""
    names = ["whole", "by_rows", "partly", "grows", "selected", "transformed", "left_open"]
    program = built("bin", "hdf5_serial", "serial_patterns")
    native, ours = tmp_path / "native.h5", tmp_path / "ours.h5"
    subprocess.run([program, native], check=True, timeout=600)
    said = preloaded([program, ours], ";".join(f"{name}: {options}" for name in names))
    assert counts_of(said)["encoded"] > 500
    before, after = stored(native), stored(ours)
    assert before.keys() == after.keys()
    for name, values in before.items():
        assert values.tobytes() == after[name].tobytes(), name
    assert ("trz" in filters(ours, "grows")) == ("trz" in options)


def test_attributes_can_be_left_out(tmp_path):
    path = tmp_path / "a.h5"
    counts = counts_of(root_rank(path, "bound=abs=1e-2,attributes=off"))
    assert counts["lossy"] > 0
    assert attributes(path, "temp") == {}


@pytest.mark.full
def test_no_allocation_that_fails_ends_the_program(tmp_path, native):
    """An exception that leaves a call would end the program, which is in C."""
    failing = built("bin", "hdf5_serial", "failing_new.so")
    both = f"{failing} {built('lib', 'libtailrace_hdf5_serial.so')}"

    def attempt(which):
        path = tmp_path / f"{which}.h5"
        done = subprocess.run(
            [built("bin", "hdf5_serial", "root_rank"), path], capture_output=True, text=True,
            timeout=600, check=False,
            env={**os.environ, "LD_PRELOAD": both, "TAILRACE_OPTIONS": "bound=abs=1e-2",
                 "TAILRACE_THREADS": "1", "FAILING_NEW": str(which)})
        assert done.returncode >= 0, (which, done.stderr)
        return done, path

    n = int(re.search(r"asked for memory: (\d+)", attempt(0)[0].stderr).group(1))
    assert n > 1000
    n_failed = 0
    before = stored(native)
    for which in [*range(1, 12), *(round(20 * (n / 20) ** (i / 29)) for i in range(30))]:
        done, path = attempt(which)
        told = "not enough memory" in done.stderr or "HDF5-DIAG" in done.stderr
        assert told or done.returncode == 0, (which, done.stderr)
        n_failed += told
        if told:
            continue
        # HDF5 or Tailrace has written all values without that allocation.
        after = stored(path)
        for name in before:
            assert worst(before, after, name) <= 1e-2
    assert n_failed > 8


# --- Tools

SHAPE = (24, 96, 144)


@pytest.fixture(scope="module", name="climate")
def climate_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("climate") / "in.nc"
    steps, rows, columns = np.meshgrid(*map(np.arange, SHAPE), indexing="ij")
    values = 280 + 20 * np.sin(columns * 0.05 + steps * 0.1) * np.cos(rows * 0.03)
    with h5py.File(path, "w", track_order=True) as file:
        for name, n in zip(("time", "lat", "lon"), SHAPE):
            axis = file.create_dataset(name, data=np.linspace(0, 359.3, n))
            axis.make_scale(name)
        for name in ("tas", "pr"):
            data = file.create_dataset(name, data=values.astype("f4"), chunks=(1, *SHAPE[1:]))
            for i, axis in enumerate(("time", "lat", "lon")):
                data.dims[i].attach_scale(file[axis])
    return path


COMMANDS = {
    "nccopy": ["nccopy", "-d", "1", "-s"],
    "h5repack": ["h5repack", "-f", "SHUF", "-f", "GZIP=4"],
    "ncks": ["ncks", "-O", "-h", "-4", "-L", "1"],
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_tools_write_within_the_bound_and_read_it_again(tmp_path, climate, command):
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    ours, again = tmp_path / "ours.nc", tmp_path / "again.nc"
    said = preloaded([*command, climate, ours], "tas: bound=abs=1e-2; p*: bound=rel=1e-3")
    before, after = stored(climate), stored(ours)
    assert 0 < worst(before, after, "tas") <= 1e-2
    assert 0 < worst(before, after, "pr") <= attributes(ours, "pr")["tailrace_absolute_bound"]
    assert filters(ours, "tas") == ["trz"]
    for name in ("time", "lat", "lon"):
        assert worst(before, after, name) == 0
        assert "trz" not in filters(ours, name)
    if command[0] != "ncks":  # ncks closes stderr, so the report is lost.
        assert counts_of(said)["lossy"] == 2 * SHAPE[0]
    # Without options and plug-in, the program's own filters store the same values.
    said = preloaded([*command, ours, again], "")
    assert (stored(again)["tas"] == after["tas"]).all()
    assert "trz" not in filters(again, "tas")
    if command[0] != "ncks":
        counts = counts_of(said)
        assert counts["lossy"] == 0 and counts["decoded"] >= 2 * SHAPE[0]
    # A bound may be requested again for data copied with their attributes.
    preloaded([*command, ours, again], "tas: bound=abs=0.5")
    assert attributes(again, "tas")["tailrace_absolute_bound"] == 0.5
    assert worst(after, stored(again), "tas") <= 0.5


@pytest.mark.sample(4)
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
@pytest.mark.parametrize("options", ["bound=abs=0.5", "bound=pw_rel=1e-3",
                                     "bound=abs=0.5,attributes=off"])
def test_what_an_input_said_of_itself_does_not_stay(tmp_path, climate, command, options):
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    noted, ours = tmp_path / "noted.nc", tmp_path / "ours.nc"
    shutil.copy(climate, noted)
    said = {"codec": "trz", "codec_version": "0.1", "bound_mode": "component",
            "bound_asked": 1e-9, "absolute_bound": 1e-9, "guard": "sign", "max_error": 1e-10,
            "component_bounds": [1e-9, 1e-9], "component_runs": [1, 2], "version": "0.1"}
    with h5py.File(noted, "r+") as file:
        for name, value in said.items():
            file["tas"].attrs[f"tailrace_{name}"] = (
                np.bytes_(value) if isinstance(value, str) else value)
        file["tas"].attrs["tailrace_covered_cells"] = np.array([3, 4], "u8")
    preloaded([*command, noted, ours], f"{options}; pr: bound=none")
    notes = attributes(ours, "tas")
    assert list(notes.pop("tailrace_covered_cells")) == [3, 4]  # Not about the encoding.
    assert 1e-9 < worst(stored(noted), stored(ours), "tas") <= 0.5
    if "off" in options:
        assert notes == {}
        return
    asked, bound = options.rsplit("=", 1)
    mode = asked.split("=")[1]
    told = {"codec", "codec_version", "bound_mode", "bound_asked", "version"}
    told |= {"absolute_bound"} if mode == "abs" else set()
    assert notes.keys() == {f"tailrace_{name}" for name in told}
    assert (notes["tailrace_bound_mode"], notes["tailrace_bound_asked"]) == (mode, float(bound))
    assert notes["tailrace_version"] != "0.1"
    with h5py.File(ours, "r+") as file:  # With this attribute, verify would look for boxes.
        del file["tas"].attrs["tailrace_covered_cells"]
    # The program alone may change more than values: ncks sorts variables, and writes fill values.
    plain = tmp_path / "plain.nc"
    subprocess.run([*command, climate, plain], check=True, capture_output=True)
    fields = {field["path"]: field for field in numbers("verify", plain, ours)["fields"]}
    assert fields["/tas"]["max_error"] > 1e-9
