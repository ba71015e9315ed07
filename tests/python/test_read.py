"""Reading and exporting, on 1 to 4 ranks, compared with h5py: every codec, every storage."""

import ctypes
import json
import os
import pathlib
import subprocess
import sys

import h5py
import hdf5plugin
import netCDF4
import numpy as np
import pytest

from cli_tools import bench_script, own_lines, smooth, tailrace

CODECS = {
    "gzip": dict(compression="gzip", shuffle=True),
    "zstd": dict(**hdf5plugin.Zstd()),
    "blosc": dict(**hdf5plugin.Blosc()),
    "lz4": dict(**hdf5plugin.LZ4()),
    "bitshuffle": dict(**hdf5plugin.Bitshuffle()),
    "sz3": dict(**hdf5plugin.SZ3(absolute=1e-3)),
    "zfp": dict(**hdf5plugin.Zfp(accuracy=1e-3)),
    "scaleoffset": dict(scaleoffset=3),
    "none": dict(),
}


def make_file(path):
    """Write datasets of every codec and kind."""
    with h5py.File(path, "w") as file:
        for name, settings in CODECS.items():
            file.create_dataset(f"codecs/{name}", data=smooth((37, 40, 22)), chunks=(16, 16, 16),
                                **settings)
        file["contiguous"] = smooth((50, 31))
        file.create_dataset("big", data=smooth((30, 30)).astype(">f8"), chunks=(9, 30),
                            compression="gzip")
        file["integers"] = np.arange(1000, dtype="i2").reshape(10, 100)
        file["half"] = smooth((20, 10)).astype("f2")
        file["scalar"] = 2.5
        file.create_dataset("unwritten", (20, 30), "i4", chunks=(7, 7), fillvalue=-3)
        file.create_dataset("empty", (0, 3), "f4")
        file["title"] = "not numbers"
        file["codecs"].attrs["note"] = "kept"


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_all_datasets_as_npy(tmp_path, ranks):
    make_file(tmp_path / "in.h5")
    done = tailrace("export", tmp_path / "in.h5", "-o", tmp_path / "out", "--format", "npy",
                    "--read-options", "memory=1MiB", ranks=ranks)
    assert "title" in done.stderr
    with h5py.File(tmp_path / "in.h5") as file:
        for name in [*(f"codecs/{c}" for c in CODECS), "contiguous", "big", "integers", "half",
                     "scalar", "unwritten", "empty"]:
            got = np.load(tmp_path / "out" / (name.replace("/", ".") + ".npy"))
            wanted = file[name][()]
            assert got.shape == wanted.shape
            assert np.array_equal(got, wanted), name


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_slab_as_raw(tmp_path, ranks):
    make_file(tmp_path / "in.h5")
    tailrace("export", tmp_path / "in.h5", "-o", tmp_path / "u.bin", "--only", "/codecs/zstd",
             "--slab", "3:36:2,:,5:6", ranks=ranks)
    with h5py.File(tmp_path / "in.h5") as file:
        wanted = file["codecs/zstd"][3:36:2, :, 5:6]
    assert np.array_equal(np.fromfile(tmp_path / "u.bin", "f4").reshape(wanted.shape), wanted)


@pytest.mark.parametrize("ranks", [1, 2])
def test_hdf5_keeps_everything_else(tmp_path, ranks):
    make_file(tmp_path / "in.h5")
    tailrace("export", tmp_path / "in.h5", "-o", tmp_path / "out.h5", ranks=ranks)
    with h5py.File(tmp_path / "in.h5") as before, h5py.File(tmp_path / "out.h5") as after:
        assert after["codecs"].attrs["note"] == "kept"
        assert after["title"][()] == before["title"][()]
        for name in CODECS:
            dataset = after[f"codecs/{name}"]
            assert dataset._filters == {}
            assert np.array_equal(dataset[()], before[f"codecs/{name}"][()]), name


def test_dimensions_without_variables_are_not_exported(tmp_path):
    with netCDF4.Dataset(tmp_path / "in.nc", "w") as file:
        file.createDimension("x", 5)
        file.createDimension("t", 3)
        file.createVariable("t", "f8", ("t",))[:] = [0, 1, 2]
        file.createVariable("u", "f4", ("t", "x"))[:] = 1
    tailrace("export", tmp_path / "in.nc", "-o", tmp_path / "out", "--format", "npy")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["t.npy", "u.npy"]


@pytest.mark.full
def test_what_cannot_be_exported_is_said(tmp_path):
    make_file(tmp_path / "in.h5")
    source = tmp_path / "in.h5"
    cases = [
        (("-o", tmp_path / "a.npy", "--only", "/no"), "no dataset matches"),
        (("-o", tmp_path / "a.npy", "--only", "/title"), "only numbers"),
        (("-o", tmp_path / "a.bin", "--only", "/contiguous", "--slab", "0:51,:"),
         "must be ascending and end at 50 at most"),
        (("-o", tmp_path / "a.bin", "--only", "/contiguous", "--slab", "0:5"), "found 1"),
        (("-o", tmp_path / "a.bin", "--only", "/contiguous", "--slab", "x"), "expected START:END"),
        (("-o", tmp_path / "a.x", "--format", "csv"), "expected hdf5, npy or raw"),
        (("-o", tmp_path / "no" / "a.npy", "--only", "/big"), "cannot create"),
    ]
    for arguments, words in cases:
        for ranks in (1, 2):
            done = tailrace("export", source, *arguments, ranks=ranks, code=2)
            lines = own_lines(done.stderr)
            assert len(lines) == 1 and words in lines[0], lines
    (tmp_path / "there.npy").write_bytes(b"mine")
    tailrace("export", source, "-o", tmp_path / "there.npy", "--only", "/big", code=2)
    assert (tmp_path / "there.npy").read_bytes() == b"mine"
    tailrace("export", source, "-o", tmp_path / "there.npy", "--only", "/big", "--force")
    assert np.load(tmp_path / "there.npy").shape == (30, 30)
    assert list(tmp_path.glob("*.partial")) == []


@pytest.mark.parametrize("ranks", [1, 2])
def test_damage_is_named(tmp_path, ranks):
    path = tmp_path / "in.h5"
    make_file(path)
    with h5py.File(path) as file:
        chunk = file["codecs/gzip"].id.get_chunk_info(4)
    bytes_of_file = bytearray(path.read_bytes())
    bytes_of_file[chunk.byte_offset + 2:chunk.byte_offset + 40] = bytes(38)
    path.write_bytes(bytes_of_file)
    done = tailrace("export", path, "-o", tmp_path / "a.npy", "--only", "/codecs/gzip",
                    ranks=ranks, code=2)
    assert "/codecs/gzip" in done.stderr and f"address {chunk.byte_offset}" in done.stderr
    assert not (tmp_path / "a.npy").exists()
    path.write_bytes(bytes_of_file[:len(bytes_of_file) // 2])
    tailrace("export", path, "-o", tmp_path / "a.npy", "--only", "/big", ranks=ranks, code=2)


def test_a_missing_plugin_is_named(tmp_path):
    make_file(tmp_path / "in.h5")
    # Replace filter 32015 by an unknown number.
    path = tmp_path / "in.h5"
    content = path.read_bytes()
    content = content.replace((32015).to_bytes(2, "little"), (33999).to_bytes(2, "little"))
    path.write_bytes(content)
    done = tailrace("export", path, "-o", tmp_path / "a.npy", "--only", "/codecs/zstd", code=2)
    assert "33999" in done.stderr


def library():
    root = pathlib.Path(os.environ.get("TAILRACE", "")).resolve().parent.parent
    path = root / "lib" / "libtailrace.so"
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return ctypes.CDLL(str(path))


def test_the_benchmark_compares_answers(tmp_path):
    library()
    root = pathlib.Path(os.environ["TAILRACE"]).resolve().parent.parent
    done = subprocess.run(
        [sys.executable, bench_script("read.py"), "--library", root / "lib" / "libtailrace.so",
         "--codecs", "gzip,none", "--extent", "32", "--chunk", "16", "--rounds", "1", "--budget",
         "0", "--out", tmp_path / "read.json"], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "read.json").read_text())["rows"]
    assert len(rows) == 40 and all(row["tailrace_s"] > 0 for row in rows)


def test_random_slabs_through_the_c_api(tmp_path):
    """Read like lab/bench/papers/read.py: one process, several threads of the library."""
    make_file(tmp_path / "in.h5")
    lib = library()
    reader = ctypes.c_void_p()
    options = f"threads=2,plugin-path={hdf5plugin.PLUGINS_PATH}".encode()
    path = str(tmp_path / "in.h5").encode()
    assert lib.tailrace_reader_open(path, None, ctypes.c_size_t(0), options,
                                    ctypes.byref(reader)) == 0
    random = np.random.default_rng(4)
    with h5py.File(tmp_path / "in.h5") as file:
        for name in [f"codecs/{c}" for c in CODECS] + ["contiguous", "big"]:
            number = ctypes.c_size_t()
            assert lib.tailrace_reader_find(reader, name.encode(), ctypes.byref(number)) == 0
            dataset = file[name]
            native = dataset.dtype.newbyteorder("=")
            for _ in range(12):
                start = [int(random.integers(0, n)) for n in dataset.shape]
                stride = [int(random.integers(1, 4)) for _ in start]
                count = [int(random.integers(1, (n - 1 - s) // t + 2))
                         for n, s, t in zip(dataset.shape, start, stride)]
                values = np.empty(count, native)
                array = ctypes.c_uint64 * len(start)
                assert lib.tailrace_reader_read(
                    reader, number, array(*start), array(*count), array(*stride),
                    ctypes.c_void_p(values.ctypes.data), ctypes.c_size_t(values.nbytes)) == 0
                where = tuple(slice(s, s + (c - 1) * t + 1, t)
                              for s, c, t in zip(start, count, stride))
                assert np.array_equal(values, dataset[where]), (name, where)
    assert lib.tailrace_reader_close(reader) == 0
