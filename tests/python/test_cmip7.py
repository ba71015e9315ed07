"""`repack --publish cmip7` and layout front: metadata before the first chunk, CMIP7's chunks.

The file's own addresses prove the layout: from the first byte of data to the end the file has only
data, so that all metadata are in front. pyfive and CMIP7's own check must agree, if installed.
"""

import contextlib
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import time

import h5py
import numpy as np
import pytest

from cli_tools import (ENVIRONMENT, REAL_DATA, ROOT, command, data_file, datasets, numbers,
                       own_lines, tailrace)

pytestmark = pytest.mark.sample(3)

netCDF4 = pytest.importorskip("netCDF4")

MIB4 = 4 << 20
END_PAD = 8  # Unused bytes behind the last block (docs/format.md).
LAT, LON = 90, 144
ROW = LAT * LON * 4


def values_of(shape, seed=1):
    axes = np.meshgrid(*[np.linspace(0, 5, n, dtype="f4") for n in shape], indexing="ij",
                       sparse=True)
    smooth = sum(np.sin(axis * (i + 1)) for i, axis in enumerate(axes))
    noise = np.random.default_rng(seed).standard_normal(shape, dtype="f4")
    return (280 + 20 * smooth + 0.01 * noise).astype("f4")


def write_cmip(path, n_times=200, levels=0, form="NETCDF4_CLASSIC", chunk_rows=1, unlimited=True,
               filters=None):
    """Write a file like published ones: variable, time and its bounds in small chunks."""
    filters = {"zlib": True, "complevel": 1} if filters is None else filters
    name = "ta" if levels else "tas"
    with netCDF4.Dataset(path, "w", format=form) as file:
        file.Conventions, file.variable_id, file.mip_era = "CF-1.11", name, "CMIP7"
        for i in range(12):  # More than an object header stores in HDF5's default form.
            file.setncattr(f"further_info_{i}", f"https://example.org/{i}")
        dimensions = ("time", "plev", "lat", "lon") if levels else ("time", "lat", "lon")
        sizes = {"time": None if unlimited else n_times, "plev": levels, "lat": LAT, "lon": LON,
                 "bnds": 2}
        for dimension in (*dimensions, "bnds"):
            file.createDimension(dimension, sizes[dimension])
        chunked = form.startswith("NETCDF4")
        shape = tuple(sizes[d] or n_times for d in dimensions)
        more = dict(filters, chunksizes=(chunk_rows, *shape[1:])) if chunked else {}
        by_step = {"chunksizes": (1,)} if chunked and unlimited else {}
        time = file.createVariable("time", "f8", ("time",), **by_step)
        time.units, time.bounds, time.calendar = "days since 1850-01-01", "time_bnds", "noleap"
        bounds = file.createVariable("time_bnds", "f8", ("time", "bnds"))
        for axis in dimensions[1:]:
            file.createVariable(axis, "f8", (axis,))[:] = np.arange(sizes[axis])
        variable = file.createVariable(name, "f4", dimensions, fill_value=np.float32(1e20), **more)
        variable.standard_name, variable.units = "air_temperature", "K"
        variable.cell_methods = "time: mean"
        days = np.arange(n_times) + 0.5
        time[:], bounds[:] = days, np.stack([days - 0.5, days + 0.5], axis=1)
        values = values_of(shape)
        values[0, ..., :3] = 1e20
        variable[:] = np.ma.masked_equal(values, np.float32(1e20))
    return name


def raw_extents(path):
    """Return (start, end) of all stored chunks and contiguous datasets, in the file's order."""
    found = []
    with h5py.File(path, "r") as file:
        def look(_, item):
            if not isinstance(item, h5py.Dataset):
                return
            if item.chunks:
                for i in range(item.id.get_num_chunks()):
                    chunk = item.id.get_chunk_info(i)
                    found.append((chunk.byte_offset, chunk.byte_offset + chunk.size))
            elif item.id.get_offset() is not None:
                found.append((item.id.get_offset(), item.id.get_offset() + item.nbytes))
        file.visititems(look)
    return sorted(found)


def assert_front(path):
    """Check that nothing lies between data, nor after the last of them."""
    extents = raw_extents(path)
    assert extents
    # Contiguous data begin at multiples of 8; such gaps are too small for any block of HDF5.
    gaps = [(first, second) for first, second in zip(extents, extents[1:])
            if not 0 <= second[0] - first[1] < 8]
    assert not gaps, gaps[:5]
    assert 0 <= path.stat().st_size - extents[-1][1] - END_PAD < 8
    # So no metadata lie among data. The addresses of headers from HDF5 must agree:
    with h5py.File(path, "r") as file:
        headers = [h5py.h5o.get_info(file.id).addr]
        file.visititems(lambda _, item: headers.append(h5py.h5o.get_info(item.id).addr))
    assert max(headers) < extents[0][0]


def assert_chunks(path, name):
    with h5py.File(path, "r") as file:
        for whole in ("time", file["time"].attrs["bounds"] if "time" in file else None):
            whole = whole.decode() if isinstance(whole, bytes) else whole
            if whole in file and file[whole].chunks:
                assert file[whole].id.get_num_chunks() == 1, whole
        item = file[name]
        if item.chunks and item.id.get_num_chunks() > 1:
            assert np.prod(item.chunks) * item.dtype.itemsize >= MIB4, item.chunks


def assert_checked(path):
    """Check with the readers of published files: CMIP7's own check, and the library that it
    uses."""
    pyfive = pytest.importorskip("pyfive")
    with pyfive.File(str(path)) as file, h5py.File(path, "r") as stock:
        assert file.consolidated_metadata
        for name in ("tas", "ta", "time", "time_bnds"):
            if name in stock:
                np.testing.assert_array_equal(file[name][()], stock[name][()])
    check = pathlib.Path(sys.executable).parent / "check_cmip7_packing"
    if check.exists():
        done = subprocess.run([sys.executable, check, path], capture_output=True, text=True,
                              timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.startswith("PASS"), done.stdout


def assert_same(first, second):
    """Check that netCDF4-python reads the same model and values, and that nothing was added."""
    with netCDF4.Dataset(first) as a, netCDF4.Dataset(second) as b:
        assert a.__dict__.keys() == b.__dict__.keys()
        assert {d: (len(x), x.isunlimited()) for d, x in a.dimensions.items()} == \
               {d: (len(x), x.isunlimited()) for d, x in b.dimensions.items()}
        assert list(a.variables) == list(b.variables)
        for name, item in a.variables.items():
            other = b.variables[name]
            assert item.dimensions == other.dimensions and item.dtype == other.dtype
            assert list(item.__dict__) == list(other.__dict__), name
            item.set_auto_mask(False)
            other.set_auto_mask(False)
            np.testing.assert_array_equal(item[:], other[:])


def kind_of(path):
    if shutil.which("ncdump") is None:
        pytest.skip("ncdump is not installed")
    return subprocess.run(["ncdump", "-k", path], capture_output=True, text=True, timeout=600,
                          check=True).stdout.strip()


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_maps_of_one_step_a_chunk(tmp_path, ranks):
    source, target = tmp_path / "in.nc", tmp_path / "out.nc"
    write_cmip(source)
    target.write_bytes(b"an older file")
    numbers("repack", source, "-o", target, "--publish=cmip7", "--force", ranks=ranks)
    assert_front(target)
    assert_chunks(target, "tas")
    assert_same(source, target)
    with h5py.File(target, "r") as file:
        item = file["tas"]
        rows = item.chunks[0]
        assert item.chunks[1:] == (LAT, LON) and MIB4 <= rows * ROW < 2 * MIB4
        for name in ("tas", "time", "time_bnds"):
            assert (file[name].compression, file[name].shuffle, file[name].fletcher32) == \
                   ("gzip", True, True), name
    assert kind_of(target) == kind_of(source) == "netCDF-4 classic model"
    tailrace("verify", source, target)
    assert_checked(target)


CASES = {
    "levels": dict(n_times=30, levels=19),
    "one chunk": dict(n_times=20, chunk_rows=20),
    "netCDF-4": dict(form="NETCDF4"),
    "classic": dict(form="NETCDF3_CLASSIC"),
    "CDF-5": dict(form="NETCDF3_64BIT_DATA", unlimited=False),
    "no record dimension": dict(unlimited=False, filters={}),
    "many chunks": dict(n_times=700),
}


@pytest.mark.parametrize("case", CASES)
def test_every_kind_of_input(tmp_path, case):
    source, target = tmp_path / "in.nc", tmp_path / "out.nc"
    name = write_cmip(source, **CASES[case])
    numbers("repack", source, "-o", target, "--publish=cmip7", ranks=2)
    assert_front(target)
    assert_chunks(target, name)
    assert_same(source, target)
    assert_checked(target)


def raw_chunks(path):
    with h5py.File(path, "r") as file:
        return {(name, i): item.id.read_direct_chunk(item.id.get_chunk_info(i).chunk_offset)
                for name, item in file.items() if isinstance(item, h5py.Dataset) and item.chunks
                for i in range(item.id.get_num_chunks())}


def test_chunks_that_fit_are_copied(tmp_path):
    """Chunks of CMIP7's tool and of Tailrace are copied byte for byte, whatever their filters."""
    source, target, again = (tmp_path / f"{name}.nc" for name in ("in", "out", "again"))
    rows = MIB4 // ROW  # One more row exceeds 4 MiB; the check accepts that.
    write_cmip(source, n_times=3 * rows, chunk_rows=rows,
               filters={"zlib": True, "complevel": 9, "shuffle": False})
    report = numbers("repack", source, "-o", target, "--publish=cmip7", ranks=2)["files"][0]
    codecs = {field["path"]: field["codec"] for field in report["fields"]}
    assert codecs["/tas"] == "stored" and codecs["/time"] == "deflate"
    before, after = raw_chunks(source), raw_chunks(target)
    assert [after["tas", i] for i in range(3)] == [before["tas", i] for i in range(3)]
    assert_front(target)
    assert_same(source, target)
    assert_checked(target)

    tailrace("repack", target, "-o", again, "--publish=cmip7")
    assert raw_chunks(again) == raw_chunks(target)
    assert_front(again)
    # An explicit codec has priority: no chunk is copied.
    tailrace("repack", target, "-o", again, "--publish=cmip7", "--codec", "deflate,level=1",
             "--force")
    with h5py.File(again, "r") as file:
        assert file["tas"].compression_opts == 1 and not file["tas"].fletcher32
    assert_same(source, again)


@pytest.mark.full
@pytest.mark.parametrize("ranks", [1, 3])
def test_for_readers_over_a_network(tmp_path, ranks):
    """--publish cloud makes chunks of 8 to 16 MiB, or a single chunk; a second run copies all."""
    mib = 1 << 20
    source, target, again = (tmp_path / f"{name}.h5" for name in ("in", "out", "again"))
    values = values_of((96, 512, 256))  # 48 MiB
    with h5py.File(source, "w") as file:
        file.create_dataset("small_chunks", data=values, chunks=(1, 64, 256), compression="gzip")
        file.create_dataset("large_chunk", data=values, chunks=values.shape, compression="gzip")
        file.create_dataset("plain", data=values)
        file.create_dataset("fits", data=values, chunks=(24, 512, 256), compression="gzip")
        file.create_dataset("one_chunk", data=values[:3], chunks=(3, 512, 256), compression="gzip")
        file.create_dataset("small", data=values[0, :3, :4])
    report = numbers("repack", source, "-o", target, "--publish=cloud", ranks=ranks)["files"][0]
    codecs = {field["path"]: field["codec"] for field in report["fields"]}
    assert codecs == {"/small_chunks": "deflate", "/large_chunk": "deflate", "/plain": "deflate",
                      "/fits": "stored", "/one_chunk": "stored", "/small": "none"}
    assert_front(target)
    with h5py.File(source, "r") as old, h5py.File(target, "r") as new:
        for name in old:
            assert np.array_equal(old[name][()], new[name][()]), name
            if new[name].size > values.size // 2:
                assert 8 * mib <= np.prod(new[name].chunks) * 4 <= 16 * mib, name
                assert not new[name].fletcher32
    tailrace("repack", target, "-o", again, "--publish=cloud", ranks=ranks)
    assert raw_chunks(again) == raw_chunks(target)
    assert_front(again)
    # An explicit codec has priority, even if readers then need its plug-in.
    bounded = tmp_path / "bounded.h5"
    tailrace("repack", source, "-o", bounded, "--publish=cloud", "--codec", "trz",
             "--bound", "abs=0.01")
    assert bounded.stat().st_size < target.stat().st_size / 2
    tailrace("verify", source, bounded)


def test_chunks_that_were_never_written(tmp_path):
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(source, "w") as file:
        file.attrs["variable_id"] = "v"
        item = file.create_dataset("v", (4, 1024, 1024), "f4", chunks=(1, 1024, 1024),
                                   compression="gzip", fillvalue=7)
        item[1], item[3] = 1, np.arange(1 << 20, dtype="f4").reshape(1024, 1024)
    tailrace("repack", source, "-o", target, "--publish=cmip7", ranks=2)
    assert_front(target)
    assert np.array_equal(datasets(source)["v"], datasets(target)["v"])
    assert raw_chunks(target) == raw_chunks(source)  # Only two chunks are stored.


@pytest.mark.parametrize("ranks", [1, 2])
def test_objects_that_are_no_fields(tmp_path, ranks):
    """Metadata of texts, compounds, groups, links, many members and attributes are in front."""
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(source, "w", libver="v110") as file:
        group = file.create_group("deep/er")
        for i in range(40):
            group.create_dataset(f"member_{i}", data=np.arange(3000) + i, chunks=(100,))
            group.attrs[f"attribute_{i}"] = "x" * 500
        group["soft"] = h5py.SoftLink("/deep/er/member_1")
        file["hard"] = group["member_2"]
        file["texts"] = np.array(["short", "longer text"] * 50, dtype=object)
        pairs = np.zeros(200, [("a", "i4"), ("b", "f8")])
        pairs["a"] = np.arange(200)
        file.create_dataset("pairs", data=pairs, chunks=(50,), compression="gzip")
        file.create_dataset("plain_pairs", data=pairs)
        file["number"] = 3.5
        file["reference"] = group.ref
    tailrace("repack", source, "-o", target, "--publish=cmip7", ranks=ranks)
    before, after = datasets(source), datasets(target)
    assert before.keys() == after.keys()
    for name in before.keys() - {"reference"}:
        assert np.array_equal(before[name], after[name]), name
    extents = raw_extents(target)
    # HDF5 itself has written some of these data, and may leave a gap.
    with h5py.File(target, "r") as file:
        headers = []
        file.visititems(lambda _, item: headers.append(h5py.h5o.get_info(item.id).addr))
        assert file[file["reference"][()]].name == "/deep/er"
        assert len(file["deep/er"].attrs) == 40
    chunks = [extent for extent in extents if extent[1] - extent[0] > 64]
    assert max(headers) < chunks[0][0]
    pyfive = pytest.importorskip("pyfive")
    with pyfive.File(str(target)) as file:
        assert file.consolidated_metadata
        assert np.array_equal(file["deep/er/member_7"][:], before["deep/er/member_7"])


def test_a_bound(tmp_path):
    source, target = tmp_path / "in.nc", tmp_path / "out.nc"
    write_cmip(source)
    tailrace("repack", source, "-o", target, "--publish=cmip7", "--bound", "abs=0.01", ranks=2)
    assert_front(target)
    assert_chunks(target, "tas")
    before, after = datasets(source), datasets(target)
    assert np.max(np.abs(before["tas"] - after["tas"])) <= np.float32(0.01)
    assert np.array_equal(before["time_bnds"], after["time_bnds"])
    with h5py.File(target, "r") as file:
        assert file["tas"].attrs["tailrace_bound_asked"] == 0.01
        assert not [name for name in file["time"].attrs if name.startswith("tailrace")]
    tailrace("verify", source, target)
    assert_checked(target)


@pytest.mark.parametrize("options, word", [
    (["--codec", "trz", "--bound", "rel=1e-3"], "every reader can decode (deflate, portable)"),
    (["--chunk", "1MiB"], "4MiB"),
    (["--chunk", "10x90x144"], "4MiB"),
    (["--field", "tas:chunk=10x90x144"], "chunk="),
    (["--field", "tas:layout=dense"], "layout="),
])
def test_what_is_not_served(tmp_path, options, word):
    source, target = tmp_path / "in.nc", tmp_path / "out.nc"
    write_cmip(source, n_times=20)
    for ranks in (1, 2):
        done = tailrace("repack", source, "-o", target, "--publish=cmip7", *options, code=2,
                        ranks=ranks)
        lines = own_lines(done.stderr)
        assert len(lines) == 1 and word in lines[0], done.stderr
        assert not target.exists()


def test_a_layout_front_of_one_field_is_refused(tmp_path):
    source, target = tmp_path / "in.nc", tmp_path / "out.nc"
    write_cmip(source, n_times=20)
    done = tailrace("repack", source, "-o", target, "--field", "tas:layout=front", code=2, ranks=2)
    assert "layout=front applies to the whole file" in done.stderr
    done = tailrace("concat", source, "-o", target, "--layout", "arena", code=2)
    assert "option layout=arena: not served by concat" in done.stderr


@pytest.mark.parametrize("name", ["nyx64_s060.h5", "climate.h5", "nyx64_particles_s090.h5",
                                  "lammps_lj_early.h5"])
def test_layout_front_by_itself(tmp_path, name):
    """Any file and codec can have the layout without CMIP7's rules."""
    source, target = data_file(name, tmp_path), tmp_path / "out.h5"
    tailrace("repack", source, "-o", target, "--layout", "front", "--chunk", "256KiB", ranks=2)
    assert_front(target)
    tailrace("verify", source, target)
    pyfive = pytest.importorskip("pyfive")
    with pyfive.File(str(target)) as file:
        assert file.consolidated_metadata
    tailrace("repack", source, "-o", target, "--layout", "front", "--bound", "rel=1e-3", "--codec",
             "trz", "--allow-wide-bound", "--force", ranks=3)
    assert_front(target)
    tailrace("verify", source, target)
    numbers("info", target)


def real_files():
    """Return real files of other programs, and the netCDF files of iris-sample-data."""
    files = [path for path in REAL_DATA.rglob("*") if path.suffix in (".h5", ".nc")]
    files += (ROOT / "tests" / "golden").glob("netcdf4*.nc")
    try:
        import iris_sample_data
    except ImportError:
        return sorted(files)
    return sorted(files + list(pathlib.Path(iris_sample_data.path).rglob("*.nc")))


@pytest.mark.sample(6)
@pytest.mark.parametrize("path", real_files(), ids=lambda path: path.name)
def test_real_files(tmp_path, path):
    target = tmp_path / f"out{path.suffix}"
    tailrace("repack", path, "-o", target, "--publish=cmip7", ranks=2)
    assert_checked(target)
    after = datasets(target)
    extents = raw_extents(target)
    with h5py.File(target, "r") as file:
        headers = [h5py.h5o.get_info(file[name].id).addr for name in after]
    assert not extents or max(headers) < extents[0][0]
    with h5py.File(path, "r") if h5py.is_hdf5(path) else contextlib.nullcontext() as file:
        for name in after if file else ():
            if file[name].dtype.kind in "fiu":
                np.testing.assert_array_equal(file[name][()], after[name])


# --- Failures

def test_a_kill_at_any_moment(tmp_path):
    """The complete older file stays, or the new one has replaced it."""
    source, target, done = (tmp_path / f"{name}.nc" for name in ("in", "out", "done"))
    write_cmip(source, n_times=300)
    began = time.monotonic()
    tailrace("repack", source, "-o", done, "--publish=cmip7")
    took_s = time.monotonic() - began
    outcomes = {"old": 0, "new": 0}
    for share in np.linspace(0.05, 1, 8):
        target.write_bytes(b"an older file")
        with subprocess.Popen(command("repack", source, "-o", target, "--publish=cmip7", "--force",
                                      "-q"),
                              env=ENVIRONMENT) as process:
            time.sleep(took_s * share)
            process.send_signal(signal.SIGKILL)
        if target.read_bytes() == b"an older file":
            outcomes["old"] += 1
        else:
            outcomes["new"] += 1
            assert_front(target)
            assert_same(source, target)
    assert outcomes["old"] > 0
    # Files that the last kill has left do not interfere.
    tailrace("repack", source, "-o", target, "--publish=cmip7", "--force")
    assert_front(target)
    assert_same(source, target)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["done.nc", "in.nc", "out.nc"]


def test_a_disk_that_fills_up(tmp_path):
    source, target = tmp_path / "in.nc", tmp_path / "out.nc"
    write_cmip(source)
    target.write_bytes(b"an older file")
    limit = 1 << 20
    words = command("repack", source, "-o", target, "--publish=cmip7", "--force")
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, env=ENVIRONMENT,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE,
                                                                (limit, limit)))
    assert done.returncode == 3, done.stdout + done.stderr
    assert target.read_bytes() == b"an older file"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.nc", "out.nc"]


def test_added_to_later(tmp_path):
    """netCDF-4 adds attributes, records and variables behind the data; everything can be read."""
    source, target = tmp_path / "in.nc", tmp_path / "out.nc"
    write_cmip(source, n_times=40)
    tailrace("repack", source, "-o", target, "--publish=cmip7")
    with netCDF4.Dataset(target, "a") as file:
        file.history = "changed"
        file.variables["tas"][40] = 1
        file.variables["time"][40] = 40.5
    after = datasets(target)
    assert np.array_equal(after["tas"][:40], datasets(source)["tas"])
    assert np.all(after["tas"][40] == 1)


