"""Serial programs and tools with libtailrace_hdf5_serial.so preloaded.

Values are the same, Tailrace encodes all chunks, and files are not larger."""

import os
import re
import shutil
import subprocess

import h5py
import numpy as np
import pytest
from hdf5_runs import built

SHAPE = (24, 96, 144)
CHUNK = (1, 96, 144)


def run(words, **environment):
    """Run a program, which must succeed; return its stderr."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                          timeout=600, env={**os.environ, **environment})
    assert done.returncode == 0, done.stderr
    return done.stderr


def run_served(words, **environment):
    """Run a program with the library preloaded; return its counts by name."""
    said = run(words, LD_PRELOAD=str(built("lib", "libtailrace_hdf5_serial.so")),
               TAILRACE_REPORT="1", **environment)
    counts = re.search(
        r"(?P<encoded>\d+) chunks encoded \(\d+ bytes to \d+\), (?P<completed>\d+) completed, "
        r"(?P<left>\d+) left to HDF5; (?P<decoded>\d+) decoded", said)
    return {name: int(n) for name, n in counts.groupdict().items()} if counts else None


def tool(name):
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    return name


def expect_equal(one, other):
    run([tool("h5diff"), one, other])
    # h5diff skips objects that it cannot compare, and reports that only on stdout.
    with h5py.File(one) as a, h5py.File(other) as b:
        names = []
        a.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset)
                     else None)
        assert names
        for name in names:
            assert a[name].shape == b[name].shape
            assert a[name][()].tobytes() == b[name][()].tobytes(), name


@pytest.fixture(scope="module", name="classic")
def classic_file(tmp_path_factory):
    """Write a netCDF-4 file without compression, with two variables over time."""
    path = tmp_path_factory.mktemp("serial") / "in.nc"
    values = np.round(np.random.default_rng(1).normal(280, 5, SHAPE), 1).astype("f4")
    with h5py.File(path, "w") as file:
        for name in ("tas", "pr"):
            file.create_dataset(name, data=values, chunks=CHUNK)
        file["tas"].attrs["units"] = "K"
    return path


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_patterns_leave_the_same_values(tmp_path, threads):
    program = built("bin", "hdf5_serial", "serial_patterns")
    run([program, tmp_path / "native.h5"])
    counts = run_served([program, tmp_path / "ours.h5"], TAILRACE_THREADS=str(threads))
    expect_equal(tmp_path / "native.h5", tmp_path / "ours.h5")
    assert counts["encoded"] > 500
    assert counts["completed"] > 100
    assert counts["decoded"] > 500
    with h5py.File(tmp_path / "native.h5") as a, h5py.File(tmp_path / "ours.h5") as b:
        for name in ("whole", "by_rows", "grows"):
            assert b[name].id.get_storage_size() <= 1.01 * a[name].id.get_storage_size()


def test_off_leaves_all_to_hdf5(tmp_path):
    program = built("bin", "hdf5_serial", "serial_patterns")
    run([program, tmp_path / "native.h5"])
    assert run_served([program, tmp_path / "ours.h5"], TAILRACE_HDF5="off") is None
    assert (tmp_path / "ours.h5").stat().st_size == (tmp_path / "native.h5").stat().st_size


COMMANDS = {
    "nccopy": ["nccopy", "-d", "1", "-s"],
    "nccopy rechunks": ["nccopy", "-d", "1", "-c", "tas:7,20,50"],
    "h5repack": ["h5repack", "-f", "SHUF", "-f", "GZIP=4"],
    "h5repack, checksums": ["h5repack", "-f", "SHUF", "-f", "GZIP=1", "-f", "FLET"],
    "ncks": ["ncks", "-O", "-h", "-4", "-L", "1"],
}


@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_tools_write_the_same_values(tmp_path, classic, command):
    tool(command[0])
    run([*command, classic, tmp_path / "native.nc"])
    counts = run_served([*command, classic, tmp_path / "ours.nc"])
    expect_equal(tmp_path / "native.nc", tmp_path / "ours.nc")
    # No output is larger, and the next tool reads a compressed one.
    size = (tmp_path / "native.nc").stat().st_size
    assert (tmp_path / "ours.nc").stat().st_size <= 1.01 * size
    again = run_served([*command, tmp_path / "ours.nc", tmp_path / "again.nc"])
    expect_equal(tmp_path / "native.nc", tmp_path / "again.nc")
    if command[0] == "ncks":
        # ncks closes stderr, so the report is lost, but the bytes are not those of zlib.
        with h5py.File(tmp_path / "native.nc") as a, h5py.File(tmp_path / "ours.nc") as b:
            assert a["tas"].id.get_storage_size() != b["tas"].id.get_storage_size()
    else:
        with h5py.File(tmp_path / "ours.nc") as file:
            n_chunks = sum(file[name].id.get_num_chunks() for name in ("tas", "pr"))
        assert (counts["encoded"], counts["left"]) == (n_chunks, 0)
        assert (again["encoded"], again["left"]) == (n_chunks, 0)
        assert again["decoded"] >= n_chunks


def test_damaged_chunks_are_refused_as_hdf5_does(tmp_path):
    path = tmp_path / "damaged.h5"
    with h5py.File(path, "w") as file:
        data = file.create_dataset("x", (8, 64), "f4", chunks=(2, 64), compression="gzip",
                                   fletcher32=True)
        data[...] = np.arange(512, dtype="f4").reshape(8, 64)
        place = data.id.get_chunk_info(2)
    bytes_there = bytearray(path.read_bytes())
    bytes_there[place.byte_offset + place.size // 2] ^= 0xFF
    path.write_bytes(bytes_there)
    words = [tool("h5dump"), "-d", "x", str(path)]
    native = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600)
    ours = subprocess.run(words, capture_output=True, text=True, check=False, timeout=600,
                          env={**os.environ,
                               "LD_PRELOAD": str(built("lib", "libtailrace_hdf5_serial.so"))})
    assert native.returncode != 0
    assert (ours.returncode, ours.stdout) == (native.returncode, native.stdout)


def test_the_library_brings_neither_mpi_nor_hdf5():
    said = subprocess.run(["ldd", built("lib", "libtailrace_hdf5_serial.so")], capture_output=True,
                          text=True, check=True).stdout
    assert "libc.so" in said
    assert "libmpi" not in said
    assert "libhdf5" not in said
