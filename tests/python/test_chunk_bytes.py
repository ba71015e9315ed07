"""Chunk bytes of our files, compared with those that h5py and hdf5plugin write.

The same values, filters and chunks are written by `tailrace repack` and by h5py. h5py uses HDF5's
own pipeline with the plug-ins of hdf5plugin. Every chunk must have the same bytes and filter mask.
Chunks of our own lossy codecs are only read with h5py.
"""

import os
import pathlib
import subprocess

import h5py
import numpy as np
import pytest

hdf5plugin = pytest.importorskip("hdf5plugin")

ROOT = pathlib.Path(__file__).resolve().parents[2]
TAILRACE = pathlib.Path(os.environ.get("TAILRACE", ROOT / "build" / "bin" / "tailrace"))
CHUNK = (16, 32, 32)
SHAPE = (32, 64, 64)
BOUND = 0.0625  # a power of two: the same number in every packing


def has_own_zstd():
    """True if the program is linked to a libzstd (by MPI, for instance), which plug-ins then use,
    too."""
    listed = subprocess.run(["ldd", str(TAILRACE)], capture_output=True, text=True)
    return "libzstd" in listed.stdout


pytestmark = pytest.mark.skipif(not TAILRACE.exists(), reason=f"{TAILRACE} is not built")


def smooth_field(dtype):
    """Return a smooth field with noise: compressible, but without trivial chunks."""
    z, y, x = np.meshgrid(*(np.arange(n) for n in SHAPE), indexing="ij")
    noise = np.random.default_rng(7).normal(size=SHAPE)
    return (100 * np.sin(z / 9 + y / 17) + 40 * np.cos(x / 23) + 0.2 * noise).astype(dtype)


def repack(source, target, *options):
    chunk = "x".join(map(str, CHUNK))
    command = [str(TAILRACE), "repack", str(source), "-o", str(target), "--chunk", chunk, *options]
    environment = {
        "OMPI_ALLOW_RUN_AS_ROOT": "1",
        "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
        **os.environ,
        "HDF5_PLUGIN_PATH": hdf5plugin.PLUGIN_PATH,
    }
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr


def chunks_of(path, name="u"):
    """Return {offset: (filter mask, stored bytes)} of all chunks."""
    with h5py.File(path, "r") as file:
        dataset = file[name]
        n_chunks = dataset.id.get_num_chunks()
        offsets = [dataset.id.get_chunk_info(i).chunk_offset for i in range(n_chunks)]
        return {offset: dataset.id.read_direct_chunk(offset) for offset in offsets}


def filters_of(path, name="u"):
    with h5py.File(path, "r") as file:
        plist = file[name].id.get_create_plist()
        return [plist.get_filter(i)[:3] for i in range(plist.get_nfilters())]


@pytest.fixture
def source(tmp_path, request):
    path = tmp_path / "source.h5"
    with h5py.File(path, "w") as file:
        file["u"] = smooth_field(getattr(request, "param", "f4"))
    return path


CASES = {
    "deflate,engine=zlib": {"shuffle": True, "compression": "gzip", "compression_opts": 4},
    "deflate,engine=zlib,level=9,shuffle=off": {"compression": "gzip", "compression_opts": 9},
    "zstd": {"shuffle": True, **hdf5plugin.Zstd(3)},
    "zstd,level=7,shuffle=off": dict(hdf5plugin.Zstd(7)),
    "lz4": {"shuffle": True, **hdf5plugin.LZ4()},
    "bitshuffle": dict(hdf5plugin.Bitshuffle()),
    "blosc2": dict(hdf5plugin.Blosc2(cname="lz4", clevel=5)),
    "sz3": dict(hdf5plugin.SZ3(absolute=BOUND)),
    "zfp": dict(hdf5plugin.Zfp(accuracy=BOUND)),
    "sperr": dict(hdf5plugin.Sperr(absolute=BOUND)),
}


@pytest.mark.parametrize("source", ["f4", "f8"], indirect=True)
@pytest.mark.parametrize("codec", CASES)
def test_same_bytes_as_h5py(codec, source, tmp_path):
    ours = tmp_path / "ours.h5"
    theirs = tmp_path / "theirs.h5"
    options = ["--codec", codec]
    if codec in ("sz3", "zfp", "sperr"):
        options += ["--bound", f"abs={BOUND}"]
    repack(source, ours, *options)
    with h5py.File(source) as file, h5py.File(theirs, "w") as out:
        out.create_dataset("u", data=file["u"][...], chunks=CHUNK, **CASES[codec])
    assert [(f[0], f[2]) for f in filters_of(ours)] == [(f[0], f[2]) for f in filters_of(theirs)]
    if codec.startswith(("zstd", "sz3")) and has_own_zstd():
        # Versions of zstd give different bytes; plugin_codec_test compares within one process.
        with h5py.File(ours) as file, h5py.File(theirs) as out:
            np.testing.assert_array_equal(file["u"][...], out["u"][...])
    else:
        assert chunks_of(ours) == chunks_of(theirs)


@pytest.mark.parametrize("source", ["f4", "f8"], indirect=True)
@pytest.mark.parametrize("codec", ["deflate", "portable", "portable,engine=zlib,level=6"])
def test_stock_hdf5_reads_our_own_codecs(codec, source, tmp_path):
    ours = tmp_path / "ours.h5"
    lossy = codec.startswith("portable")
    repack(source, ours, "--codec", codec, *(["--bound", f"abs={BOUND}"] if lossy else []))
    assert [f[0] for f in filters_of(ours)] == [h5py.h5z.FILTER_SHUFFLE, h5py.h5z.FILTER_DEFLATE]
    with h5py.File(source) as file, h5py.File(ours) as out:
        original, decoded = file["u"][...], out["u"][...]
    if lossy:
        error = np.abs(original.astype("f8") - decoded.astype("f8")).max()
        assert 0 < error <= BOUND
    else:
        np.testing.assert_array_equal(original, decoded)


def test_portable_is_gzip_of_its_own_values(source, tmp_path):
    """h5py's gzip makes portable's chunk from the values that portable decodes to."""
    ours = tmp_path / "ours.h5"
    theirs = tmp_path / "theirs.h5"
    repack(source, ours, "--codec", "portable,engine=zlib", "--bound", f"abs={BOUND}")
    with h5py.File(ours) as file, h5py.File(theirs, "w") as out:
        out.create_dataset("u", data=file["u"][...], chunks=CHUNK, shuffle=True, compression="gzip")
    assert chunks_of(ours) == chunks_of(theirs)


def test_portable_keeps_special_values(tmp_path):
    source = tmp_path / "source.h5"
    ours = tmp_path / "ours.h5"
    values = smooth_field("f4")
    values[::3] = np.nan
    values[1, ::2] = np.inf
    values[4] = -0.0
    with h5py.File(source, "w") as file:
        file["u"] = values
    repack(source, ours, "--codec", "portable", "--bound", f"abs={BOUND}")
    with h5py.File(ours) as file:
        decoded = file["u"][...]
    special = ~np.isfinite(values) | (values == 0)
    np.testing.assert_array_equal(values[special].view("u4"), decoded[special].view("u4"))
    assert np.abs(values[~special].astype("f8") - decoded[~special]).max() <= BOUND


@pytest.mark.parametrize("codec", ["none", "deflate", "portable"])
def test_golden_chunks_are_read_by_stock_hdf5(codec, tmp_path):
    """tests/golden has one chunk per codec and version, with the values computed here."""
    golden = (ROOT / "tests" / "golden" / f"codec_{codec}_0.1.0.bin").read_bytes()
    filters = {} if codec == "none" else {"shuffle": True, "compression": "gzip"}
    path = tmp_path / "golden.h5"
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("u", shape=(4096,), dtype="f4", chunks=(4096,), **filters)
        dataset.id.write_direct_chunk((0,), golden)
    with h5py.File(path) as file:
        decoded = file["u"][...]
    values = np.abs(np.arange(4096) % 2000 - 1000).astype("f4") * np.float32(0.37)
    assert np.abs(values.astype("f8") - decoded).max() <= (0.5 if codec == "portable" else 0)
