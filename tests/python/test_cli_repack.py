"""tailrace repack: real files, every codec, 1 to 4 ranks, and the values for stock readers."""

import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import time

import h5py
import numpy as np
import pytest

from cli_tools import (ENVIRONMENT, attributes, command, data_file, datasets, largest_error,
                       numbers, own_lines, program, smooth, tailrace)

pytestmark = pytest.mark.sample(2)

# A covering subset: every file, every codec, every number of ranks.
CASES = [
    ("nyx64_s060.h5", "sz3", "rel=1e-3", 1),
    ("nyx64_s140.h5", "zfp", "rel=1e-4", 2),
    ("nyx128_s040.h5", "sz3", "rel=1e-2", 4),
    ("nyx64_steps090_099.h5", "none", "", 3),
    ("nyx64_steps090_099.h5", "portable", "psnr=70", 2),
    ("nyx64_particles_s090.h5", "zstd", "", 3),
    ("nyx64_particles_s090.h5", "sz3", "rel=1e-3", 4),
    ("lammps_lj_early.h5", "portable", "rel=1e-4", 1),
    ("lammps_lj_early.h5", "zfp", "abs=1e-2", 3),
    ("climate.h5", "portable", "abs=0.01", 4),
    ("climate.h5", "sz3", "abs=0.01", 2),
    ("climate.h5", "deflate", "", 1),
    ("hep/sample_r11981_s06.h5", "deflate", "", 4),
    ("hep/sample_r11981_s07.h5", "zfp", "rel=1e-2", 2),
    ("hep/sample_r11981_s08.h5", "zstd", "", 1),
    ("hep/sample_r11981_s09.h5", "portable", "rel=1e-3", 3),
]


@pytest.mark.sample(4)
@pytest.mark.parametrize("name,codec,bound,ranks", CASES)
def test_real_file(tmp_path, name, codec, bound, ranks):
    source = data_file(name, tmp_path)
    target = tmp_path / "out.h5"
    options = ["--codec", codec] + (["--bound", bound] if bound else [])
    report = numbers("repack", source, "-o", target, *options, ranks=ranks)["files"][0]
    tailrace("verify", source, target, ranks=1 + ranks % 2)

    before, after = datasets(source), datasets(target)
    assert sorted(before) == sorted(after)
    assert [f["path"] for f in report["fields"]] == ["/" + path for path in before]
    assert report["file_bytes"] == target.stat().st_size
    for field in report["fields"]:
        path = field["path"][1:]
        error = largest_error(before[path], after[path])
        assert error <= field["absolute_bound"], path
        recorded = attributes(target, path)
        if field["absolute_bound"] == 0:  # An attribute of the file covers all exact datasets.
            lossy = any(each["absolute_bound"] > 0 for each in report["fields"])
            assert ("tailrace_file" in attributes(target, "/")) == lossy
            assert not any(name.startswith("tailrace_") for name in recorded)
        else:
            assert recorded["tailrace_codec"].decode() == field["codec"]
            assert recorded["tailrace_absolute_bound"] == field["absolute_bound"]
        if field["verified"]:
            assert error == pytest.approx(field["max_error"], rel=1e-6)


def test_stock_tools_take_the_output(tmp_path):
    source = data_file("nyx64_s060.h5", tmp_path)
    target = tmp_path / "out.h5"
    tailrace("repack", source, "-o", target, "--codec", "sz3", "--bound", "rel=1e-3", ranks=2)
    copied = tmp_path / "copied.h5"
    for words in (["h5dump", "-d", "/native_fields/temperature", "-s", "0,0,0", "-c", "1,1,4",
                   target],
                  ["h5stat", target], ["h5ls", "-r", target],
                  ["h5repack", "-f", "GZIP=1", target, copied],
                  ["h5diff", target, copied]):
        if shutil.which(words[0]) is None:
            pytest.skip(f"{words[0]} is not installed")
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=600,
                              env=ENVIRONMENT)
        assert done.returncode == 0, words[0] + done.stdout + done.stderr
        assert "error" not in done.stderr.lower(), done.stderr


def test_layouts_hold_the_same_values(tmp_path):
    source = data_file("nyx64_s060.h5", tmp_path)
    before = datasets(source)
    for layout, codec in (("claimed", "zstd"), ("dense", "zstd"), ("contiguous", "none")):
        target = tmp_path / f"{layout}.h5"
        tailrace("repack", source, "-o", target, "--layout", layout, "--codec", codec, ranks=3)
        after = datasets(target)
        assert all(np.array_equal(before[path], after[path]) for path in before), layout
    with h5py.File(tmp_path / "contiguous.h5") as file:
        assert file["native_fields/temperature"].chunks is None


def mixed_input(path):
    """Write floats, integers, a coordinate, a small table and a text into one file."""
    with h5py.File(path, "w") as file:
        file["run/temperature"] = 1000 * smooth((40, 48, 56), 1)
        file["run/velocity_x"] = smooth((40, 48, 56), 2)
        file["run/velocity_y"] = smooth((40, 48, 56), 3)
        file["run/cell_kind"] = np.arange(40 * 48 * 56, dtype="i4").reshape(40, 48, 56) % 7
        file["coefficients"] = np.linspace(0, 1, 12)
        file["run/z"] = np.linspace(0, 1, 4000)
        file["run/z"].make_scale("z")
        file["run"].attrs["title"] = "a run"
        file["names"] = np.array([b"one", b"two"])
        file["step"] = np.float64(3.5)


def test_field_patterns(tmp_path):
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    mixed_input(source)
    report = numbers("repack", source, "-o", target, "--codec", "sz3", "--bound", "rel=1e-3",
                     "--field", "velocity_?:codec=zfp,bound=abs=0.02",
                     "--field", "/run/velocity_y:bound=abs=0.05,chunk=20x24x28",
                     "--field", "coeff*:bound=abs=1e-6", ranks=2)["files"][0]
    by_path = {field["path"]: field for field in report["fields"]}
    assert by_path["/run/temperature"]["codec"] == "sz3"
    assert (by_path["/run/velocity_x"]["codec"], by_path["/run/velocity_x"]["absolute_bound"]) == (
        "zfp", 0.02)
    assert (by_path["/run/velocity_y"]["codec"], by_path["/run/velocity_y"]["absolute_bound"]) == (
        "zfp", 0.05)
    assert by_path["/run/velocity_y"]["chunk_shape"] == [20, 24, 28]
    assert by_path["/run/cell_kind"]["kept_exact_because"] == "integers"
    assert by_path["/run/z"]["kept_exact_because"] == "coordinate"
    assert by_path["/step"]["kept_exact_because"] == "small"
    assert by_path["/coefficients"]["absolute_bound"] == 1e-6
    tailrace("verify", source, target)
    with h5py.File(target) as file:
        assert file["run"].attrs["title"] == "a run"
        assert list(file["names"]) == [b"one", b"two"]
        assert file["step"][()] == 3.5


def test_only_and_exclude(tmp_path):
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    mixed_input(source)
    tailrace("repack", source, "-o", target, "--only", "velocity_*", "--exclude", "*_y")
    with h5py.File(target) as file:
        assert list(file["run"]) == ["velocity_x"]
    tailrace("verify", source, target, "--only", "velocity_x")
    tailrace("verify", source, target, code=1)


def test_raw_and_npy(tmp_path):
    values = smooth((30, 40, 50))
    values.tofile(tmp_path / "u.bin")
    np.save(tmp_path / "u.npy", values)
    for name, options in (("u.bin", ["--raw", "f32:30x40x50"]), ("u.npy", [])):
        target = tmp_path / (name + ".h5")
        tailrace("repack", tmp_path / name, "-o", target, *options, "--bound", "abs=0.001",
                 "--codec", "portable", ranks=2)
        assert largest_error(values, datasets(target)["u"]) <= 0.001
        tailrace("verify", tmp_path / name, target, *options)
    # Outputs of several inputs in a folder get the inputs' names.
    np.save(tmp_path / "v.npy", values + 1)
    (tmp_path / "many").mkdir()
    tailrace("repack", tmp_path / "u.npy", tmp_path / "v.npy", "-o", tmp_path / "many")
    assert sorted(p.name for p in (tmp_path / "many").iterdir()) == ["u.h5", "v.h5"]
    assert np.array_equal(datasets(tmp_path / "many" / "v.h5")["v"], values + 1)


CDL = """netcdf ocean {
dimensions: time = UNLIMITED ; lat = 30 ; lon = 40 ;
variables:
  double lat(lat) ; lat:units = "degrees_north" ;
  double lon(lon) ; lon:units = "degrees_east" ;
  double time(time) ; time:units = "days since 2000-01-01" ;
  float sst(time, lat, lon) ; sst:units = "K" ; sst:_FillValue = 1.e+20f ;
  :title = "made by ncgen" ;
data:
  lat = %s ; lon = %s ; time = 0, 1, 2 ; sst = %s ;
}
"""


@pytest.mark.parametrize("kind", ["classic", "64-bit data", "nc4"])
def test_netcdf(tmp_path, kind):
    if shutil.which("ncgen") is None:
        pytest.skip("ncgen is not installed")
    sst = 280 + 10 * smooth((3, 30, 40))
    texts = ["_" if i % 11 == 0 else repr(float(v)) for i, v in enumerate(sst.ravel())]
    (tmp_path / "ocean.cdl").write_text(CDL % (", ".join(str(i) for i in range(30)),
                                               ", ".join(str(i) for i in range(40)),
                                               ", ".join(texts)))
    source, target = tmp_path / "ocean.nc", tmp_path / "small.nc"
    subprocess.run(["ncgen", "-k", kind, "-o", source, tmp_path / "ocean.cdl"], check=True)
    report = numbers("repack", source, "-o", target, "--bound", "abs=0.01", "--codec", "portable",
                     ranks=2)["files"][0]
    by_path = {field["path"]: field for field in report["fields"]}
    assert by_path["/lat"]["kept_exact_because"] == "coordinate"
    assert by_path["/sst"]["absolute_bound"] == 0.01
    tailrace("verify", source, target)
    netCDF4 = pytest.importorskip("netCDF4")
    with netCDF4.Dataset(source) as before, netCDF4.Dataset(target) as after:
        assert after.dimensions["time"].isunlimited()
        assert after.title == "made by ncgen"
        assert np.array_equal(before["sst"][:].mask, after["sst"][:].mask)
        assert np.ma.max(np.ma.abs(before["sst"][:] - after["sst"][:])) <= 0.01
        assert np.array_equal(before["lat"][:], after["lat"][:])


def test_more_ranks_than_chunks(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["u"] = smooth((16, 16))
        file["empty"] = np.zeros((0, 5), "f8")
        file["scalar"] = 4.25
    tailrace("repack", tmp_path / "in.h5", "-o", tmp_path / "out.h5", "--codec", "zstd", ranks=4)
    tailrace("verify", tmp_path / "in.h5", tmp_path / "out.h5", ranks=3)
    after = datasets(tmp_path / "out.h5")
    assert after["empty"].shape == (0, 5) and after["scalar"] == 4.25


def peak_resident_bytes(process_id):
    """Return the largest VmHWM of the process and its children."""
    ids, peak = [process_id], 0
    while ids:
        entry = pathlib.Path("/proc") / str(ids.pop())
        try:
            ids += map(int, (entry / "task" / entry.name / "children").read_text().split())
            if "tailrace" not in (entry / "comm").read_text():
                continue
            for line in (entry / "status").read_text().splitlines():
                if line.startswith("VmHWM"):
                    peak = max(peak, 1024 * int(line.split()[1]))
        except (FileNotFoundError, ProcessLookupError):
            continue
    return peak


@pytest.mark.parametrize("ranks", [1, 2])
def test_other_chunks_within_the_memory_cap(tmp_path, ranks):
    """Convert maps to time series and back, within the memory limit."""
    values = smooth((96, 256, 256)) + np.arange(96, dtype="f4")[:, None, None]
    with h5py.File(tmp_path / "maps.h5", "w") as file:
        file.create_dataset("u", data=values, chunks=(1, 256, 256), compression=1, shuffle=True)
    for source, target, chunk in (("maps", "series", (96, 32, 32)),
                                  ("series", "back", (2, 256, 256))):
        report = numbers("repack", tmp_path / f"{source}.h5", "-o", tmp_path / f"{target}.h5",
                         "--chunk", "x".join(map(str, chunk)), "--codec", "deflate,level=1",
                         "--memory", "20MB", ranks=ranks)
        entry = report["files"][0]
        assert entry["memory_cap_bytes"] == 20_000_000
        assert 5_000_000 < entry["peak_memory_bytes"] <= 20_000_000
        assert entry["scratch_bytes"] == (values.nbytes if takes_scratch_files(tmp_path) else 0)
        with h5py.File(tmp_path / f"{target}.h5") as file:
            assert file["u"].chunks == chunk
            assert file["u"][...].tobytes() == values.tobytes()


def in_maps(path, shape, chunks, name="u", **keywords):
    """Write deflated maps of compressible values."""
    values = smooth(shape) + np.arange(shape[0], dtype="f4").reshape(-1, *[1] * (len(shape) - 1))
    values = np.round(values * 64) / 64
    with h5py.File(path, "w") as file:
        file.create_dataset(name, data=values, chunks=chunks, compression=1, shuffle=True,
                            **keywords)
    return values


#: Extents, chunks before and chunks after; memory holds only a small part of the values.
RECHUNKED = [((96, 80_001), (1, 80_001), (96, 300)),
             ((65, 201, 303), (1, 201, 303), (65, 16, 32)),
             ((65, 201, 303), (65, 7, 13), (1, 201, 303)),
             ((31, 5, 83, 97), (1, 5, 83, 97), (31, 1, 16, 32)),
             ((31, 5, 83, 97), (31, 1, 16, 32), (1, 5, 83, 97))]


def takes_scratch_files(folder):
    """Return True for local disks: scratch files are not made in memory or on other machines."""
    kind = subprocess.run(["stat", "-f", "-c", "%T", folder], capture_output=True, text=True,
                          check=True).stdout.strip()
    return kind in ("ext2/ext3", "xfs", "btrfs", "f2fs", "zfs", "bcachefs", "overlayfs")


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("shape,before,after", RECHUNKED)
def test_other_chunks_through_a_scratch_file(tmp_path, shape, before, after, ranks):
    """Stored chunks are decoded once, and only the output is left."""
    values = in_maps(tmp_path / "in.h5", shape, before)
    report = numbers("repack", tmp_path / "in.h5", "-o", tmp_path / "out.h5", "--chunk",
                     "x".join(map(str, after)), "--codec", "deflate,level=1", "--memory", "6MB",
                     ranks=ranks)["files"][0]
    assert report["peak_memory_bytes"] <= 6_000_000
    if ranks == 1 and takes_scratch_files(tmp_path):
        assert report["scratch_bytes"] >= values.nbytes / 2
    with h5py.File(tmp_path / "out.h5") as file:
        assert file["u"].chunks == after
        assert file["u"][...].tobytes() == values.tobytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.h5", "out.h5"]


def test_a_range_of_values_goes_through_the_scratch_file_too(tmp_path):
    """If a bound needs the range, all values are read twice, but chunks are decoded once."""
    values = in_maps(tmp_path / "in.h5", (65, 201, 303), (1, 201, 303))
    report = numbers("repack", tmp_path / "in.h5", "-o", tmp_path / "out.h5", "--chunk",
                     "65x16x32", "--bound", "rel=1e-3", "--codec", "portable", "--memory",
                     "6MB")["files"][0]
    assert report["scratch_bytes"] == (values.nbytes if takes_scratch_files(tmp_path) else 0)
    with h5py.File(tmp_path / "out.h5") as file:
        assert np.abs(file["u"][...] - values).max() <= report["fields"][0]["absolute_bound"]


def test_without_room_for_a_scratch_file(tmp_path):
    """If file sizes are limited, chunks are decoded repeatedly, without a message."""
    values = in_maps(tmp_path / "in.h5", (65, 201, 303), (1, 201, 303))
    words = command("repack", tmp_path / "in.h5", "-o", tmp_path / "out.h5", "--chunk",
                    "65x16x32", "--codec", "deflate,level=1", "--memory", "6MB", "--json", "-",
                    "--quiet")
    done = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    had_one = json.loads(done.stdout)["files"][0]["scratch_bytes"] > 0
    assert had_one == takes_scratch_files(tmp_path)
    (tmp_path / "out.h5").unlink()
    done = subprocess.run(words, env=ENVIRONMENT, capture_output=True, text=True, check=True,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE,
                                                                (15_000_000, 15_000_000)))
    assert json.loads(done.stdout)["files"][0]["scratch_bytes"] == 0 and done.stderr == ""
    with h5py.File(tmp_path / "out.h5") as file:
        assert file["u"][...].tobytes() == values.tobytes()


def test_a_scratch_that_cannot_be_made_where_it_was_asked_for_is_told(tmp_path):
    """A remark reports an unusable scratch folder, because repack takes many times as long."""
    in_maps(tmp_path / "in.h5", (65, 201, 303), (1, 201, 303))
    entry = numbers("repack", tmp_path / "in.h5", "-o", tmp_path / "out.h5", "--chunk", "65x16x32",
                    "--codec", "deflate,level=1", "--memory", "6MB", "--scratch",
                    "/proc/self")["files"][0]
    assert entry["scratch_bytes"] == 0
    assert len(entry["remarks"]) == 1 and "/proc/self" in entry["remarks"][0]


@pytest.mark.parametrize("where", ["off", "elsewhere", "memory"])
def test_where_scratch_files_go(tmp_path, where):
    """Scratch files are off, or go to the user's folder on any file system, which stays empty."""
    values = in_maps(tmp_path / "in.h5", (65, 201, 303), (1, 201, 303))
    words = ("repack", tmp_path / "in.h5", "-o", tmp_path / "out.h5", "--chunk", "65x16x32",
             "--codec", "deflate,level=1", "--memory", "6MB")
    said = own_lines(tailrace(*words, "--scratch", tmp_path / "nowhere", code=2).stderr)
    assert len(said) == 1 and "--scratch" in said[0] and "nowhere" in said[0]
    assert not (tmp_path / "out.h5").exists()
    folder = {"off": "off", "elsewhere": tmp_path / "elsewhere", "memory": "/dev/shm"}[where]
    (tmp_path / "elsewhere").mkdir()
    entry = numbers(*words, "--scratch", folder)["files"][0]
    assert entry["scratch_bytes"] == (0 if where == "off" else values.nbytes)
    assert entry["remarks"] == []
    with h5py.File(tmp_path / "out.h5") as file:
        assert file["u"][...].tobytes() == values.tobytes()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_others_are_served_while_a_scratch_is_filled(tmp_path):
    """Ranks act as two nodes, so that claims travel through rank 0's main thread."""
    environment = {**ENVIRONMENT, "TAILRACE_RANKS_PER_NODE": "1"}
    values = in_maps(tmp_path / "in.h5", (65, 201, 303), (1, 201, 303))
    entry = numbers("repack", tmp_path / "in.h5", "-o", tmp_path / "out.h5", "--chunk", "65x16x32",
                    "--codec", "deflate,level=1", "--memory", "6MB", "--scratch", tmp_path,
                    ranks=2, environment=environment)["files"][0]
    assert entry["scratch_bytes"] >= values.nbytes / 2
    with h5py.File(tmp_path / "out.h5") as file:
        assert file["u"][...].tobytes() == values.tobytes()


def test_a_scratch_file_goes_with_its_process(tmp_path):
    """A process is killed while its scratch file exists; the kill leaves only the usual files."""
    if not takes_scratch_files(tmp_path):
        pytest.skip("files lie in memory here")
    in_maps(tmp_path / "in.h5", (65, 403, 406), (1, 403, 406))
    words = command("repack", tmp_path / "in.h5", "-o", tmp_path / "out.h5", "--chunk",
                    "65x16x32", "--codec", "deflate,level=9", "--memory", "20MB", "--quiet")
    process = subprocess.Popen(words, env=ENVIRONMENT)
    folder = pathlib.Path("/proc") / str(process.pid) / "fd"

    def scratch_is_open():
        try:
            return any("(deleted)" in os.readlink(entry) and str(tmp_path) in os.readlink(entry)
                       for entry in folder.iterdir())
        except OSError:
            return False

    seen = False
    while process.poll() is None and not seen:
        seen = scratch_is_open()
    process.kill()
    process.wait()
    assert seen
    left = {path.name for path in tmp_path.iterdir()}
    assert left <= {"in.h5", "out.h5.partial", "out.h5.lock"}


@pytest.mark.full
@pytest.mark.parametrize("ranks", [1, 2])
def test_a_stored_chunk_that_is_too_large_for_the_memory(tmp_path, ranks):
    """The error comes before an output exists, and names the required memory, which suffices."""
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    values = in_maps(source, (4, 1500, 2000), (2, 1500, 2000), name="tas")
    words = ("repack", source, "-o", target, "--chunk", "1x250x250", "--codec", "deflate,level=1")
    said = own_lines(tailrace(*words, "--memory", "30MB", ranks=ranks, code=3).stderr)
    assert len(said) == 1 and '"/tas"' in said[0] and "22.9 MiB" in said[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.h5"]
    enough = int(re.search(r"at least ([0-9]+)MB are needed", said[0]).group(1))
    tailrace(*words, "--memory", f"{enough - 1}MB", ranks=ranks, code=3)
    entry = numbers(*words, "--memory", f"{enough}MB", ranks=ranks)["files"][0]
    assert entry["remarks"] == []
    # The peak does not include a filter's block.
    assert entry["peak_memory_bytes"] <= enough * 1e6 - 9 / 8 * 4 * 2 * 1500 * 2000
    with h5py.File(target) as file:
        assert file["tas"][...].tobytes() == values.tobytes()
    # Copied chunks are not decoded.
    in_maps(source, (4, 1500, 2000), (4, 1500, 2000))
    tailrace("repack", source, "-o", tmp_path / "no.h5", "--memory", "150MB", ranks=ranks, code=3)
    tailrace("repack", source, "-o", tmp_path / "copy.h5", "--publish=as-stored",
             "--memory", "150MB",
             ranks=ranks)


@pytest.mark.parametrize("ranks", [1, 2])
def test_input_larger_than_the_memory_cap(tmp_path, ranks):
    block = smooth((16, 256, 256)).tobytes()
    n_blocks = 600_000_000 // len(block)
    with open(tmp_path / "big.bin", "wb") as file:
        for _ in range(n_blocks):
            file.write(block)
    target, report = tmp_path / "big.h5", tmp_path / "report.json"
    words = command("repack", tmp_path / "big.bin", "--raw", f"f32:{16 * n_blocks}x256x256", "-o",
                    target, "--codec", "zstd,level=1", "--memory", "256MB", "--fsync", "off",
                    "--json", report, "--quiet", ranks=ranks)
    process = subprocess.Popen(words, env=ENVIRONMENT)
    peak = 0
    while process.poll() is None:
        peak = max(peak, peak_resident_bytes(process.pid))
        time.sleep(0.02)
    assert process.returncode == 0
    assert 0 < peak < 256_000_000
    entry = json.loads(report.read_text())["files"][0]
    assert entry["peak_memory_bytes"] <= entry["memory_cap_bytes"] == 256_000_000
    with h5py.File(target) as file:
        for first in (0, 16 * (n_blocks // 2), 16 * (n_blocks - 1)):
            assert file["big"][first:first + 16].tobytes() == block


def test_trace(tmp_path):
    source = data_file("nyx64_s060.h5", tmp_path)
    tailrace("repack", source, "-o", tmp_path / "out.h5", "--codec", "zstd", "--threads", "1",
             "--trace", tmp_path / "trace.json", ranks=2)
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = {(e["pid"], e["args"]["name"]) for e in events if e["name"] == "process_name"}
    assert names == {(0, "rank 0"), (1, "rank 1")}
    lanes = {e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert {"main", "encode 1", "I/O"} <= lanes
    spans = [e for e in events if e["ph"] == "X"]
    assert all(e["dur"] >= 0 and e["ts"] >= 0 for e in spans)
    encoded = [e for e in spans if e["cat"] == "encode"]
    n_bytes = sum(values.nbytes for values in datasets(source).values())
    assert sum(e["args"]["bytes"] for e in encoded) == n_bytes
    writes = sorted((e["args"]["address"], e["args"]["bytes"])
                    for e in spans if e["cat"] == "write")
    assert all(a + n <= b for (a, n), (b, _) in zip(writes, writes[1:]))


def test_table_fits_a_terminal(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as file:
        for i in range(40):
            name = f"a/group/with/quite/a/long/path/and_a_long_field_name_number_{i}"
            file[name] = smooth((20, 20, 20 + i), i)
    done = tailrace("repack", tmp_path / "in.h5", "-o", tmp_path / "out.h5", "--bound", "rel=1e-3",
                    ranks=2)
    # The launcher's width is unknown: output is like that for a pipe, with 25 of 40 rows.
    assert len(done.stdout.splitlines()) < 110
    assert "and_a_long_field_name_number_39" in done.stdout
    assert "15 more" in done.stdout and "hidden behind" in done.stdout
    assert done.stderr == ""  # No progress bar, because stderr is not a terminal.
    assert own_lines(done.stderr) == []


def test_plugin_path_serves_writing_and_reading(tmp_path):
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    mixed_input(source)
    folder = ENVIRONMENT["HDF5_PLUGIN_PATH"]
    bare = {name: text for name, text in ENVIRONMENT.items() if name != "HDF5_PLUGIN_PATH"}
    tailrace("repack", source, "-o", target, "--codec", "zfp", "--bound", "rel=1e-3",
             "--plugin-path", folder, environment=bare)
    tailrace("verify", source, target, "--plugin-path", folder, environment=bare)


def test_the_builds_own_plugin_folder_serves_both(tmp_path):
    """Without variables, like in ./demo, programs use the plug-in folder of the build."""
    cache = pathlib.Path(program()).resolve().parents[1] / "CMakeCache.txt"
    if not (cache.exists() and "TAILRACE_DEFAULT_PLUGIN_PATH:STRING=/" in cache.read_text()):
        pytest.skip("this build has no folder of plug-ins of its own")
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    mixed_input(source)
    bare = {name: text for name, text in ENVIRONMENT.items() if name != "HDF5_PLUGIN_PATH"}
    tailrace("repack", source, "-o", target, "--codec", "sz3", "--bound", "rel=1e-3",
             environment=bare)
    tailrace("verify", source, target, environment=bare)


def test_contiguous_fields_in_slabs(tmp_path):
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    mixed_input(source)
    for ranks in (1, 3):
        tailrace("repack", source, "-o", target, "--force", "--layout", "contiguous", "--chunk",
                 "50kB", ranks=ranks)
        tailrace("verify", source, target)
    done = tailrace("repack", source, "-o", target, "--force", "--layout", "contiguous", "--chunk",
                    "8x8x8", code=2)
    assert "no chunks, so chunk=8x8x8 does not apply" in done.stderr


def test_an_undeclared_fill_value_is_refused(tmp_path):
    values = smooth((40, 50, 60))
    values[:, :10] = -1e10
    np.save(tmp_path / "u.npy", values)

    def repack(*options, code=0):
        return tailrace("repack", tmp_path / "u.npy", "-o", tmp_path / "out.h5", "--force",
                        "--codec", "portable", *options, code=code)

    for bound in (("--bound", "rel=1e-3"), ("--bound", "psnr=80"), ("--target", "psnr=60")):
        said = " ".join(repack(*bound, code=2).stderr.split())
        assert "--field '/u:fill=-1e+10'" in said and "24000 times" in said, said
        assert "--fill -1e+10" in said and "--allow-wide-bound" in said
        assert not (tmp_path / "out.h5").exists()
    for declared in (("--field", "/u:fill=-1e+10"), ("--fill", "-1e10")):
        done = repack("--bound", "rel=1e-3", *declared)
        assert "fill value" not in done.stdout + done.stderr
        assert largest_error(values, datasets(tmp_path / "out.h5")["u"]) < 0.01
        verified = tailrace("verify", tmp_path / "u.npy", tmp_path / "out.h5")
        assert "DOUBTFUL" not in verified.stdout
    for allowed in (("--allow-wide-bound",), ("--field", "/u:allow-wide-bound=on")):
        done = repack("--bound", "rel=1e-3", *allowed)
        assert "-1e+10 occurs 24000 times" in " ".join(done.stderr.split())


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_fill_value_that_the_user_declares_is_recorded(ranks, tmp_path):
    """verify, another repack and the Python package leave it out like one of the file's own."""
    values, again = smooth((40, 50, 60)), tmp_path / "again.h5"
    values[:, :10] = -1e10
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["u"], file["v"] = values, smooth((40, 50, 60))
        for name, fill in (("nan", np.nan), ("cf", np.float32(1e20))):  # Stated by the file.
            file[name] = smooth((40, 50, 60))
            file[name][:, :5] = file[name].attrs["_FillValue"] = fill
    asked = ["--bound", "rel=1e-3", "--codec", "trz", "--field", "u:fill=-1e10",
             "--field", "cf:fill=1e20"]
    tailrace("repack", tmp_path / "in.h5", "-o", tmp_path / "out.h5", *asked, ranks=ranks)

    def check(copy, psnr):
        tailrace("verify", tmp_path / "in.h5", copy, "--json", tmp_path / "v.json", ranks=ranks)
        fields = {field["path"]: field for field in
                  json.loads((tmp_path / "v.json").read_text())["fields"]}
        assert psnr < fields["/u"]["psnr_db"] < 100 and not fields["/u"]["doubtful"], fields["/u"]
        with h5py.File(copy) as file:
            for name in ("v", "nan", "cf"):
                assert "tailrace_fill_value" not in file[name].attrs, name
            return file["u"].attrs.get("tailrace_fill_value")

    assert check(tmp_path / "out.h5", 50) == -1e10
    # Later copies need no --field: exact ones, copied chunks, and another loss.
    for way in (["--codec", "deflate"], ["--publish=as-stored"],
                ["--bound", "abs=0.01", "--codec", "trz", "--again"]):
        tailrace("repack", tmp_path / "out.h5", "-o", again, "--force", *way, ranks=ranks)
        assert check(again, 30) == -1e10, way
    tailrace("repack", tmp_path / "in.h5", "-o", again, "--force", "--codec", "deflate", "--field",
             "u:fill=-1e10", ranks=ranks)
    with h5py.File(again) as file:
        assert "tailrace_fill_value" not in file["u"].attrs, "an exact copy needs no record"


def test_an_absolute_bound_that_erases_the_values_is_doubted(tmp_path):
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(source, "w") as file:
        file["pr"] = (2.6e-4 * np.random.default_rng(1).random((40, 64))).astype("f4")
        file["same"] = np.full((40, 64), 3, "f4")
        file["t"] = 280 + 5 * np.random.default_rng(2).random((40, 64))
    for codec, ranks in (("trz", 1), ("portable", 3)):
        done = tailrace("repack", source, "-o", target, "--force", "--codec", codec, "--bound",
                        "abs=0.01", ranks=ranks)
        said = " ".join(done.stderr.split())
        assert 'field "/pr": bound abs=0.01 is at least half' in said and "abs=2.6e-07" in said
        assert said.count("at least half") == 1, said
        checked = tailrace("verify", source, target, "--json", tmp_path / "v.json", "--report",
                           tmp_path / "v.html")
        assert "DOUBTFUL /pr" in checked.stdout and "1 DOUBTFUL)" in checked.stdout
        found = json.loads((tmp_path / "v.json").read_text())
        assert [field["path"] for field in found["fields"] if field["doubtful"]] == ["/pr"]
        assert len(found["doubts"]) == 1 and "at least half of the range" in found["doubts"][0]
        page = (tmp_path / "v.html").read_text()
        assert 0 < page.index("DOUBTFUL /pr") < page.index("All variables")
    # A bound that has changed nothing erases nothing.
    tailrace("repack", source, "-o", target, "--force")
    exact = tailrace("verify", source, target, "--bound", "abs=0.01")
    assert "DOUBTFUL" not in exact.stdout


def test_verify_doubts_a_bound_that_an_undeclared_fill_value_widens(tmp_path):
    values = smooth((40, 50, 60))
    values[:, :10] = -1e10
    np.save(tmp_path / "u.npy", values)
    tailrace("repack", tmp_path / "u.npy", "-o", tmp_path / "u.h5", "--bound", "rel=1e-3",
             "--codec", "portable", "--allow-wide-bound")
    done = tailrace("verify", tmp_path / "u.npy", tmp_path / "u.h5", "--json",
                    tmp_path / "v.json", "--report", tmp_path / "v.html")
    assert "DOUBTFUL /u" in done.stdout and "1 DOUBTFUL)" in done.stdout
    found = json.loads((tmp_path / "v.json").read_text())
    assert found["n_failed"] == 0 and found["fields"][0]["doubtful"]
    assert len(found["doubts"]) == 1 and "-1e+10 occurs 24000 times" in found["doubts"][0]
    page = (tmp_path / "v.html").read_text()
    assert 0 < page.index("DOUBTFUL /u") < page.index("All variables")
    quiet = tailrace("verify", tmp_path / "u.npy", tmp_path / "u.h5", "-q")
    assert not quiet.stdout and "DOUBTFUL /u" in " ".join(quiet.stderr.split())
    # This also holds for the user's bound: a PSNR is relative to the range, too.
    done = tailrace("verify", tmp_path / "u.npy", tmp_path / "u.h5", "--bound", "psnr=20")
    assert "DOUBTFUL /u" in done.stdout


def test_broad_distributions_are_written_with_a_remark(tmp_path):
    density = np.exp(12 * smooth((40, 50, 60)).astype("f8"))
    np.save(tmp_path / "rho.npy", density)
    done = tailrace("repack", tmp_path / "rho.npy", "-o", tmp_path / "rho.h5", "--bound",
                    "rel=1e-2", "--codec", "trz")
    said = " ".join(done.stderr.split())
    assert said.count("of the nonzero values are smaller") == 1
    assert "pw_rel=0.01" in said and "guard=log=0.01" in said
    proposed = re.search(r"bound=(abs=[^ ]+)", said).group(1)
    done = tailrace("verify", tmp_path / "rho.npy", tmp_path / "rho.h5")
    assert "DOUBTFUL /rho" in done.stdout
    for bound in (proposed, "pw_rel=0.01"):
        done = tailrace("repack", tmp_path / "rho.npy", "-o", tmp_path / "rho.h5", "--bound",
                        bound, "--codec", "trz", "--force")
        assert "smaller" not in done.stderr
        done = tailrace("verify", tmp_path / "rho.npy", tmp_path / "rho.h5")
        assert "DOUBTFUL" not in done.stdout


def test_a_dropped_lossy_codec_is_named(tmp_path):
    """Without a codec or bound, lossy values are decoded and stored exactly: repack says so."""
    source, lossy = tmp_path / "run.h5", tmp_path / "lossy.h5"
    values = np.sin(np.arange(64 * 1024) / 300).reshape(64, 1024)
    with h5py.File(source, "w") as file:
        file["u"] = values
        file["g/v"] = values + 1
        file["exact"] = values
    tailrace("repack", source, "-o", lossy, "--codec", "trz", "--bound", "abs=1e-3",
             "--field", "exact:bound=none")
    remark = ("the values of lossy codec trz are decoded and stored exactly, without that codec; "
              "--publish as-stored copies the chunks as they are: /g/v, /u")

    def remarks_of(*options):
        report = tmp_path / "report.json"
        done = tailrace("repack", lossy, "-o", tmp_path / "out.h5", "--force", "--json", report,
                        *options)
        found = [line for line in json.loads(report.read_text())["files"][0]["remarks"]
                 if "lossy codec" in line]
        assert done.stderr.count("lossy codec") == len(found), done.stderr
        return found

    assert remarks_of() == [remark]
    assert remarks_of("--codec", "deflate") == []
    assert remarks_of("--publish", "as-stored") == []
    assert remarks_of("--only", "exact") == []
    assert remarks_of("--again", "--bound", "abs=1e-2") == []
