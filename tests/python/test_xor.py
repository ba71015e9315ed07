"""Codec xor through its plug-in libh5xor.so, in three stock HDF5s, and its format.

The plain decoder of xor_reference.py, which uses only trz/docs/trz-format.md, decodes every chunk
that h5py's HDF5 makes through the plug-in. Chunk sizes are compared with the paper's scheme.
"""

import pathlib
import shutil
import subprocess
import sys
import textwrap
import zlib

import h5py
import numpy as np
import pytest

from cli_tools import ENVIRONMENT, REAL_DATA, ROOT, program, tailrace

sys.path.insert(0, str(ROOT / "trz" / "tests" / "reference"))
import xor_reference  # noqa: E402

FILTER = 482


def plugin_folder():
    folder = pathlib.Path(program()).resolve().parents[1] / "lib" / "hdf5" / "plugin"
    if not (folder / "libh5xor.so").exists():
        pytest.skip(f"{folder}/libh5xor.so is not built")
    return folder


def run(*words, code=0):
    """Run a command with an HDF5 that finds only our plug-ins."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                          timeout=600,
                          env={**ENVIRONMENT, "HDF5_PLUGIN_PATH": str(plugin_folder())})
    assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def python(text, code=0):
    return run(sys.executable, "-c", textwrap.dedent(text), code=code)


def bits(array):
    return np.ascontiguousarray(array).reshape(-1).view(f"u{array.dtype.itemsize}")


def samples():
    """Return arrays by name: smooth, rough, masked, integers, and special floating-point values."""
    random = np.random.default_rng(7)
    walk = np.cumsum(random.normal(size=(6, 31, 70)), axis=-1)
    smooth = np.sin(np.add.outer(np.linspace(0, 4, 40), np.linspace(0, 9, 90))) + 2
    odd = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 5e-324, 1e308] * 300)
    odd.view("u8")[::7] = 0x7FF8000000000123  # NaN with a payload
    masked = smooth.astype("f4")
    masked[:17] = -1e34
    return {
        "walk_f4": walk.astype("f4"), "walk_f8": walk, "smooth_f4": smooth.astype("f4"),
        "smooth_f8": smooth, "narrow_in_wide": smooth.astype("f4").astype("f8"), "odd": odd,
        "masked": masked, "constant": np.full((50, 100), 3.25, "f4"),
        "counts": np.arange(9000, dtype="i4") // 7, "times": 10**9 + np.arange(5000) * 60,
        "short": (walk * 10).astype("i2"), "bytes": (walk * 3).astype("u1"),
        "noise": random.integers(0, 2**32, 3000, dtype="u4"),
        "particles": random.normal(size=(700, 6)).astype("f4"), "one": np.array([7.5]),
        "strings": np.array([b"abc", b"abd", b"xyz"] * 500),
    }


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Write each sample as one chunk with h5py, in a process that has the plug-in."""
    folder = tmp_path_factory.mktemp("xor")
    source, target = folder / "source.h5", folder / "target.h5"
    with h5py.File(source, "w") as file:
        for name, values in samples().items():
            file.create_dataset(name, data=values)
    python(f"""
        import h5py
        with h5py.File({str(source)!r}) as source, h5py.File({str(target)!r}, "w") as file:
            for name in source:
                u = source[name][...]
                file.create_dataset(name, data=u, chunks=u.shape, compression={FILTER})
        with h5py.File({str(source)!r}) as source, h5py.File({str(target)!r}) as file:
            for name in source:
                assert source[name][...].tobytes() == file[name][...].tobytes(), name
    """)
    return source, target


def test_the_format_is_what_the_page_says(written):
    """An independent decoder decodes our chunks."""
    with h5py.File(written[1]) as file:
        for name, values in samples().items():
            chunk = file[name].id.read_direct_chunk((0,) * values.ndim)[1]
            decoded = xor_reference.decode(chunk)
            assert decoded.tobytes() == values.tobytes(), name
            # Client data: version with a flag for the next words, element's bytes, extents.
            number, flags, words, filter_name = file[name].id.get_create_plist().get_filter(0)
            assert (number, flags, filter_name) == (FILTER, 1, b"xor")
            assert words == (1 | 1 << 16, values.dtype.itemsize, *values.shape)


def test_no_sample_takes_more_than_the_papers_scheme(written):
    """A small excess is allowed for the chunk's header and the beginnings of rows."""
    with h5py.File(written[1]) as file:
        for name, values in samples().items():
            if values.dtype.itemsize in (4, 8) and values.dtype.kind != "S":
                theirs = xor_reference.paper_bytes(values)
                assert file[name].id.get_storage_size() <= theirs + 32, name


REAL = [("nyx64_s060.h5", 6), ("nyx64_s140.h5", 6), ("climate.h5", 8),
        ("nyx64_particles_s090.h5", 6), ("lammps_lj_early.h5", 4)]


@pytest.mark.parametrize("name,n_fields", REAL)
def test_real_fields_take_less_than_by_the_papers_scheme(name, n_fields, tmp_path):
    if not (REAL_DATA / name).exists():
        pytest.skip("no real data beside the repository")
    packed = tmp_path / "packed.h5"
    tailrace("repack", REAL_DATA / name, "-o", packed, "--codec", "xor", "--bound", "none")
    tailrace("verify", REAL_DATA / name, packed)
    found = []

    def compare(path, theirs):
        if isinstance(theirs, h5py.Dataset) and theirs.dtype.kind == "f":
            ours = h5py.File(packed)[path].id.get_storage_size()
            assert ours <= xor_reference.paper_bytes(theirs[...]), path
            found.append(path)

    with h5py.File(REAL_DATA / name) as file:
        file.visititems(compare)
    assert len(found) == n_fields


def test_golden_chunk():
    chunk = (ROOT / "tests" / "golden" / "codec_xor_0.1.0.bin").read_bytes()
    values = np.abs(np.arange(4096) % 2000 - 1000).astype("f4") * np.float32(0.37)
    np.testing.assert_array_equal(xor_reference.decode(chunk), bits(values))


def test_tailrace_writes_what_hdf5_writes(written, tmp_path):
    """Tailrace and HDF5's pipeline write equal chunks and client data, and read each other's."""
    source, target = written
    ours, plain = tmp_path / "ours.h5", tmp_path / "plain.h5"
    tailrace("repack", source, "-o", ours, "--codec", "xor", "--bound", "none", "--only",
             "walk_f8", "--only", "short", "--chunk", "64MiB")
    with h5py.File(ours) as our_file, h5py.File(target) as their_file:
        for name in ("walk_f8", "short"):
            mine, other = our_file[name].id, their_file[name].id
            zero = (0,) * our_file[name].ndim
            assert mine.read_direct_chunk(zero) == other.read_direct_chunk(zero)
            assert (mine.get_create_plist().get_filter(0)[2]
                    == other.get_create_plist().get_filter(0)[2])
    tailrace("verify", source, ours, "--only", "walk_f8", "--only", "short")
    tailrace("repack", target, "-o", plain, "--codec", "deflate", "--only", "walk_f8")
    with h5py.File(plain) as file:
        np.testing.assert_array_equal(bits(file["walk_f8"][...]), bits(samples()["walk_f8"]))


def test_concat_needs_no_plugin(tmp_path):
    """Encoded chunks are decoded, shifted and encoded again by the codec itself."""
    nowhere = {**ENVIRONMENT, "HDF5_PLUGIN_PATH": str(tmp_path)}
    parts, packed = [], []
    for i in range(2):
        plain, xored = tmp_path / f"plain{i}.h5", tmp_path / f"xor{i}.h5"
        parts.append(np.cumsum(np.random.default_rng(i).normal(size=(1000 + i, 4)), axis=0))
        with h5py.File(plain, "w") as file:
            file.create_dataset("u", data=parts[-1], chunks=(128, 4), maxshape=(None, 4))
        tailrace("repack", plain, "-o", xored, "--codec", "xor", environment=nowhere)
        packed.append(xored)
    for name, options in (("kept.h5", ()), ("anew.h5", ("--codec", "xor,dimension=2"))):
        tailrace("concat", *packed, "-o", tmp_path / name, *options, environment=nowhere)
        tailrace("repack", tmp_path / name, "-o", tmp_path / f"read_{name}", "--codec", "none",
                 environment=nowhere)
        with h5py.File(tmp_path / f"read_{name}") as file:
            np.testing.assert_array_equal(file["u"][...], np.concatenate(parts))


def test_stock_tools(written, tmp_path):
    """h5repack applies and removes the filter; h5dump and h5diff read the values."""
    if shutil.which("h5repack") is None:
        pytest.skip("no h5repack")
    source, target = written
    packed, plain = tmp_path / "packed.h5", tmp_path / "plain.h5"
    option = tailrace("filter-args", "-c", "xor,dimension=2").stdout.strip()
    assert option == f"UD={FILTER},0,1,{1 | 2 << 8}"
    run("h5repack", "-f", option, source, packed)
    run("h5diff", source, packed)
    run("h5repack", "-f", "NONE", target, plain)
    run("h5diff", source, plain)
    assert f"FILTER_ID {FILTER}" in run("h5dump", "-p", "-H", "-d", "walk_f8", packed).stdout
    run("h5dump", "-d", "walk_f8", "-o", tmp_path / "dump.bin", "-b", "LE", target)
    dumped = np.fromfile(tmp_path / "dump.bin", "f8")
    np.testing.assert_array_equal(dumped, samples()["walk_f8"].reshape(-1))


def test_netcdf4_reads_beside_h5py(written):
    pytest.importorskip("netCDF4")
    python(f"""
        import h5py, netCDF4
        with h5py.File({str(written[0])!r}) as source:
            u = source["smooth_f8"][...]
        with netCDF4.Dataset({str(written[1])!r}) as file:
            assert (file["smooth_f8"][...] == u).all()
        with h5py.File({str(written[1])!r}) as file:
            assert (file["smooth_f8"][...] == u).all()
    """)


@pytest.mark.parametrize("first", ["", "del h5py.h5z.register_filter"], ids=["h5py", "h5py_3.7"])
def test_the_package_registers_it_with_h5py(tmp_path, first):
    """`import tailrace` suffices without a plug-in folder, even with Debian 12's h5py, which cannot
    register filters."""
    plugin = plugin_folder() / "libh5trz.so"
    if not plugin.exists():
        pytest.skip(f"{plugin} is not built")
    text = f"""
        import h5py, numpy as np
        {first}
        import tailrace
        u = np.sin(np.linspace(0, 9, 6000)).reshape(60, 100)
        with h5py.File({str(tmp_path / 'out.h5')!r}, "w") as file:
            file.create_dataset("t", data=u, chunks=(30, 100), **tailrace.Trz(abs=1e-3))
            file.create_dataset("u", data=u, chunks=(30, 100), **tailrace.Xor())
            file.create_dataset("v", data=u, chunks=(30, 100), compression=tailrace.Xor(2))
        with h5py.File({str(tmp_path / 'out.h5')!r}) as file:
            assert (file["u"][...] == u).all() and (file["v"][...] == u).all()
            assert abs(file["t"][...] - u).max() <= 1e-3 and (file["t"][...] != u).any()
            assert file["v"].id.get_create_plist().get_filter(0)[2][0] == 1 | 1 << 16 | 2 << 8
            assert file["u"].id.get_storage_size() < u.nbytes
    """
    environment = {k: v for k, v in ENVIRONMENT.items() if k != "HDF5_PLUGIN_PATH"}
    environment.update(PYTHONPATH=str(ROOT / "python"), TAILRACE_H5TRZ=str(plugin))
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True,
                          text=True, timeout=600, env=environment)
    assert done.returncode == 0, done.stderr


def test_damage_is_an_error_in_words(written, tmp_path):
    """h5dump and h5py refuse a damaged chunk, with the reason on the error stack."""
    bent = tmp_path / "bent.h5"
    shutil.copy(written[1], bent)
    with h5py.File(bent, "a") as file:
        dataset = file["walk_f4"].id
        chunk = bytearray(dataset.read_direct_chunk((0, 0, 0))[1])
        chunk[len(chunk) // 2] ^= 8
        dataset.write_direct_chunk((0, 0, 0), bytes(chunk))
    done = python(f"import h5py; h5py.File({str(bent)!r})['walk_f4'][...]", code=1)
    assert "OSError" in done.stderr
    if shutil.which("h5dump") is not None:
        done = run("h5dump", "--enable-error-stack", "-d", "walk_f4", bent, code=1)
        assert "checksum is wrong" in done.stdout + done.stderr


@pytest.mark.parametrize("at, bit, why", [
    (3, 2, "format version 3, expected 1"), (8, 32, "unknown feature bits 0x20"),
    (8, 64, "unknown feature bits 0x40"), (8, 128, "unknown feature bits 0x80")])
def test_a_chunk_of_a_later_xor_is_refused_by_name(written, tmp_path, at, bit, why):
    newer = tmp_path / "newer.h5"
    shutil.copy(written[1], newer)
    with h5py.File(newer, "a") as file:
        dataset = file["walk_f4"].id
        chunk = bytearray(dataset.read_direct_chunk((0, 0, 0))[1])
        chunk[at] |= bit
        chunk[4:8] = zlib.crc32(chunk[8:]).to_bytes(4, "little")
        dataset.write_direct_chunk((0, 0, 0), bytes(chunk))
    done = python(f"import h5py; h5py.File({str(newer)!r})['walk_f4'][...]", code=1)
    assert "OSError" in done.stderr
    if shutil.which("h5dump") is not None:
        done = run("h5dump", "--enable-error-stack", "-d", "walk_f4", newer, code=1)
        assert f"needs a newer xor: {why}" in done.stdout + done.stderr


def test_settings_that_make_no_sense(tmp_path):
    done = tailrace("filter-args", "-c", "xor,dimension=4", code=2)
    assert "dimension" in done.stderr
    python(f"""
        import h5py, numpy as np
        with h5py.File({str(tmp_path / 'out.h5')!r}, "w") as file:
            try:
                file.create_dataset("u", data=np.zeros(9), compression={FILTER},
                                    compression_opts=(1 | 9 << 8,))
            except (ValueError, OSError, RuntimeError) as error:
                assert "dimension" in str(error) or "set local" in str(error), error
            else:
                raise AssertionError("taken")
    """)
