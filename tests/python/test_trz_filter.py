"""Filter plug-in libh5trz.so in three stock HDF5s: h5py's, netCDF4's, and that of Debian's tools.

Each wheel brings its own HDF5 and one process may hold both, so every test that loads the plug-in
runs in a separate process. The package is imported from the source tree, with the library of the
build; test_python_wheel.py builds the wheel like a user.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import textwrap

import h5py
import numpy as np
import pytest

from cli_tools import ENVIRONMENT, ROOT, program, smooth, tailrace

SHAPE, CHUNK, BOUND = (48, 40, 64), (16, 40, 32), 1e-3


def plugin():
    """Return the plug-in of the build under test."""
    path = pathlib.Path(program()).resolve().parents[1] / "lib" / "hdf5" / "plugin" / "libh5trz.so"
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return path


def run(*words, with_plugin=True, package=False, code=0):
    """Run a command in an environment with the plug-in's folder, the package, both, or neither."""
    environment = {k: v for k, v in ENVIRONMENT.items() if k != "HDF5_PLUGIN_PATH"}
    if with_plugin:
        environment["HDF5_PLUGIN_PATH"] = str(plugin().parent)
    if package:
        environment["PYTHONPATH"] = str(ROOT / "python")
        environment["TAILRACE_H5TRZ"] = str(plugin())
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True,
                          timeout=600, env=environment)
    assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def python(text, **keywords):
    """Run Python source."""
    return run(sys.executable, "-c", textwrap.dedent(text), **keywords)


def stored_chunks(path, name="u"):
    with h5py.File(path, "r") as file:
        dataset = file[name]
        places = [dataset.id.get_chunk_info(i).chunk_offset
                  for i in range(dataset.id.get_num_chunks())]
        return {place: dataset.id.read_direct_chunk(place) for place in places}


def filter_of(path, name="u"):
    with h5py.File(path, "r") as file:
        return file[name].id.get_create_plist().get_filter(0)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "source.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset("u", data=smooth(SHAPE), chunks=CHUNK)
        file.create_dataset("wide", data=smooth(SHAPE, 1).astype("f8"), chunks=CHUNK)
        file.create_dataset("counts", data=np.arange(6000, dtype="i4") % 97, chunks=(500,))
        file.create_dataset("names", data=np.array([b"abc"] * 1000), chunks=(100,))
    return path


def values(path, name="u"):
    with h5py.File(path, "r") as file:
        return file[name][...]


def write_with_h5py(source, target, keywords, imports="", **environment):
    return python(f"""
        import h5py
        {imports}
        with h5py.File({str(source)!r}) as source, h5py.File({str(target)!r}, "w") as file:
            for name in ("u", "wide"):
                file.create_dataset(name, data=source[name][...], chunks={CHUNK}, {keywords})
        with h5py.File({str(target)!r}) as file, h5py.File({str(source)!r}) as source:
            for name in ("u", "wide"):
                error = abs(file[name][...].astype("f8") - source[name][...]).max()
                assert 0 < error <= {BOUND}, error
    """, **environment)


@pytest.mark.parametrize("way", ["package", "plugin folder", "both"])
def test_h5py_writes_and_reads(way, source, tmp_path):
    target = tmp_path / "out.h5"
    keywords = tailrace("filter-args", "-c", "trz", "-b", f"abs={BOUND}", "--format",
                        "h5py").stdout.strip()
    if way == "plugin folder":
        write_with_h5py(source, target, keywords)
    else:
        write_with_h5py(source, target, f"**tailrace.Trz(abs={BOUND})", "import tailrace",
                        package=True, with_plugin=way == "both")
    number, flags, words, name = filter_of(target)
    assert (number, flags, name) == (481, 1, b"trz")
    # Client data: the user's words, then the chunk's type and rank, and its extents.
    assert words[4:] == (3 << 8, *CHUNK) and words[0] == 1 | 1 << 8 | 1 << 16


def test_h5py_without_the_filter_fails(source, tmp_path):
    target = tmp_path / "out.h5"
    write_with_h5py(source, target, f"**tailrace.Trz(abs={BOUND})", "import tailrace",
                    package=True, with_plugin=False)
    done = python(f"import h5py; h5py.File({str(target)!r})['u'][...]", with_plugin=False, code=1)
    assert "OSError" in done.stderr  # h5py shows a searched folder, not the filter's number


def test_chunks_equal_those_of_tailrace(source, tmp_path):
    """HDF5's own pipeline stores the same bytes through the plug-in as Tailrace."""
    theirs, ours = tmp_path / "theirs.h5", tmp_path / "ours.h5"
    settings = {"": "", ",preset=fast": ", preset='fast'", ",preset=ratio": ", preset='ratio'",
                ",predictor=lorenzo,dimension=2,lossless=on":
                    ", predictor='lorenzo', dimension=2, lossless=True"}
    whole = "x".join(map(str, CHUNK))
    with h5py.File(source, "a") as file:
        for name in ("u", "wide"):  # whole chunks only: Tailrace pads the others differently
            cut = file[name][..., :32]
            del file[name]
            file.create_dataset(name, data=cut, chunks=CHUNK)
    for of_tailrace, of_package in settings.items():
        write_with_h5py(source, theirs, f"**tailrace.Trz(abs={BOUND}{of_package})",
                        "import tailrace", package=True)
        tailrace("repack", source, "-o", ours, "--force", "--only", "u", "--only", "wide",
                 "--codec", f"trz{of_tailrace}", "--bound", f"abs={BOUND}", "--chunk", whole)
        for name in ("u", "wide"):
            assert stored_chunks(ours, name) == stored_chunks(theirs, name), of_tailrace
            assert filter_of(ours, name)[2] == filter_of(theirs, name)[2]


def test_tailrace_reads_without_the_plugin(source, tmp_path):
    target, again = tmp_path / "out.h5", tmp_path / "again.h5"
    write_with_h5py(source, target, f"**tailrace.Trz(abs={BOUND})", "import tailrace",
                    package=True)
    tailrace("verify", source, target, "--bound", f"abs={BOUND}", "--only", "u", "--only", "wide")
    tailrace("repack", target, "-o", again, "--codec", "deflate")
    read = python(f"import h5py; h5py.File({str(again)!r})['u'][...]", with_plugin=False)
    assert read.returncode == 0


def test_stock_tools(source, tmp_path):
    """h5repack encodes, h5diff and h5dump decode; data that are not numbers keep their settings."""
    if shutil.which("h5repack") is None:
        pytest.skip("no h5repack")
    target, plain = tmp_path / "out.h5", tmp_path / "plain.h5"
    option = tailrace("filter-args", "-c", "trz", "-b", f"abs={BOUND}").stdout.strip()
    assert option.startswith("UD=481,0,4,257,0,")
    run("h5repack", "-f", option, source, target)
    assert filter_of(target)[0] == 481 and filter_of(target, "counts")[0] == 481
    with h5py.File(target) as file:
        assert file["names"].id.get_create_plist().get_nfilters() == 0
    run("h5diff", f"--delta={BOUND}", source, target)
    run("h5diff", source, target, "/counts", "/counts")
    assert "FILTER_ID 481" in run("h5dump", "-p", "-H", "-d", "u", target).stdout
    run("h5dump", "-d", "u", "-o", tmp_path / "dump.bin", "-b", "LE", target)
    dumped = np.fromfile(tmp_path / "dump.bin", "f4").reshape(SHAPE)
    assert 0 < np.abs(dumped.astype("f8") - values(source)).max() <= BOUND
    # Remove the filter again.
    run("h5repack", "-f", "NONE", target, plain)
    np.testing.assert_array_equal(values(plain), dumped)


def test_netcdf4_reads_beside_h5py(source, tmp_path):
    """Two HDF5 libraries in one process use the plug-in in turn."""
    pytest.importorskip("netCDF4")
    target = tmp_path / "out.h5"
    keywords = f"compression=481, compression_opts={cd_values('abs=1e-3')}"
    done = python(f"""
        import json, h5py, netCDF4, numpy as np
        with h5py.File({str(source)!r}) as source, h5py.File({str(target)!r}, "w") as file:
            u = source["u"][...]
            file.create_dataset("u", data=u, chunks={CHUNK}, {keywords})
        with netCDF4.Dataset({str(target)!r}) as file:
            v = file["u"][...]
        with h5py.File({str(target)!r}, "a") as file:
            file.create_dataset("w", data=v, chunks={CHUNK}, {keywords})
            w = file["w"][...]
        print(json.dumps([float(abs(u - v).max()), float(abs(v - w).max()),
                          h5py.version.hdf5_version, netCDF4.__hdf5libversion__]))
    """)
    first, second, *versions = json.loads(done.stdout)
    assert 0 < first <= BOUND and second <= BOUND
    assert len(versions) == 2


def cd_values(settings):
    return tuple(json.loads(tailrace("filter-args", "-c", "trz", "-b", settings, "--format",
                                     "json").stdout)["filters"][0]["cd_values"])


def test_fill_values_and_edges(tmp_path):
    """The dataset's fill value is recorded and kept, and HDF5 pads partial chunks with it."""
    target = tmp_path / "out.h5"
    field = smooth((37, 41))
    field[::5, 3] = -999
    field[2, 4], field[3, 4], field[4, 4] = np.nan, np.inf, -0.0
    np.save(tmp_path / "field.npy", field)
    python(f"""
        import h5py, numpy as np, tailrace
        field = np.load({str(tmp_path / 'field.npy')!r})
        with h5py.File({str(target)!r}, "w") as file:
            file.create_dataset("u", data=field, chunks=(16, 16), fillvalue=-999,
                                **tailrace.Trz(abs=0.01))
            file.create_dataset("all", data=field, chunks=(16, 16), **tailrace.Trz())
        with h5py.File({str(target)!r}) as file:
            u = file["u"][...]
            assert (file["all"][...].view("u4") == field.view("u4")).all()
        exact = ~np.isfinite(field) | (field == -999)
        assert (u[exact].view("u4") == field[exact].view("u4")).all()
        assert abs(u[~exact] - field[~exact]).max() <= 0.01
    """, package=True, with_plugin=False)
    words = filter_of(target)[2]
    assert words[0] >> 17 & 1 and len(words) == 4 + 3 + 2
    assert np.array(words[-2:], "u4").view("f8")[0] == -999


@pytest.mark.parametrize("keywords, why", [
    ("data=u.astype('>f4')", "byte order"),
    ("data=u.astype('c8')", "neither an integer nor"),
    ("data=u.astype('f2')", "16 bits"),
    ("data=np.array([b'ab'] * 9), chunks=(3,)", "neither an integer nor"),
    ("data=u.astype('i4'), opts=cd_values(pw_rel=0.1)", "pw_rel"),
    ("data=u, opts=(9, 0, 0, 0)", "word 0 is 9"),
    ("data=u, opts=(1, 0)", "end too early"),
])
def test_refusals_are_told_in_words(keywords, why, tmp_path):
    done = python(f"""
        import h5py, numpy as np
        from tailrace import cd_values
        u = np.zeros((8, 8), "f4")
        def create(data, chunks=(4, 4), opts=cd_values(abs=0.1)):
            with h5py.File({str(tmp_path / 'x.h5')!r}, "w") as file:
                file.create_dataset("u", data=data, chunks=chunks, compression=481,
                                    compression_opts=opts)
        create({keywords})
    """, package=True, code=1)
    assert why in done.stderr, done.stderr


def test_a_damaged_chunk_is_an_error(source, tmp_path):
    target = tmp_path / "out.h5"
    write_with_h5py(source, target, f"**tailrace.Trz(abs={BOUND})", "import tailrace",
                    package=True)
    done = python(f"""
        import h5py, tailrace
        with h5py.File({str(target)!r}, "r+") as file:
            mask, chunk = file["u"].id.read_direct_chunk((0, 0, 0))
            for at in (0, 5, len(chunk) // 2, len(chunk) - 1):
                bent = bytearray(chunk)
                bent[at] ^= 64
                file["u"].id.write_direct_chunk((0, 0, 0), bytes(bent), mask)
                try:
                    file["u"][:16]
                except OSError as error:
                    print(error)
                else:
                    raise SystemExit(f"byte {{at}} was not missed")
    """, package=True)
    # HDF5 2.0 drops a filter's messages from its error stack, and only reports the failure.
    assert done.stdout.count("filter returned failure") == 4, done.stdout


NEWER = [*((3, version, f"format version {version}, expected 1")
           for version in (0, 8, 255)),
         *((9, 3 | bit, f"unknown feature bits 0x{bit:02x}") for bit in (8, 16, 32, 64, 128)),
         *((8, method << 4, f"unknown method {method}") for method in range(11, 16))]


def test_a_chunk_of_a_later_trz_is_refused_by_name(source, tmp_path):
    """h5py fails to read each chunk, and the error stack that h5dump prints says why."""
    target = tmp_path / "out.h5"
    python(f"""
        import zlib, h5py, tailrace
        with h5py.File({str(source)!r}) as source, h5py.File({str(target)!r}, "w") as file:
            u = source["u"][:16, :16, :16]
            for at, byte, why in {NEWER!r}:
                name = why.replace(" ", "_")
                file.create_dataset(name, data=u, chunks=u.shape, **tailrace.Trz(abs={BOUND}))
                mask, chunk = file[name].id.read_direct_chunk((0, 0, 0))
                assert chunk[3] == 1 and chunk[8] >> 4 <= 10 and chunk[9] == 3
                newer = bytearray(chunk)
                newer[at] = byte
                newer[4:8] = zlib.crc32(newer[8:]).to_bytes(4, "little")
                file[name].id.write_direct_chunk((0, 0, 0), bytes(newer), mask)
        with h5py.File({str(target)!r}) as file:
            for name in file:
                try:
                    file[name][...]
                except OSError:
                    continue
                raise SystemExit(f"{{name}} was read")
    """, package=True)
    for _, _, why in NEWER:
        done = run("h5dump", "--enable-error-stack", "-d", why.replace(" ", "_"), target, code=1)
        assert f"trz chunk: needs a newer trz: {why}" in done.stdout + done.stderr


def test_arrays_and_doctests():
    python("""
        import doctest, sys, threading
        import numpy as np, tailrace
        from tailrace import _arrays, _settings
        assert "h5py" not in sys.modules and tailrace.FILTER_ID == 481
        for module in (tailrace, _arrays, _settings):
            assert doctest.testmod(module).failed == 0
        generator = np.random.default_rng(3)
        for dtype in ("f4", "f8"):
            for shape in [(), (1,), (7,), (3, 5), (40, 50, 60), (3, 4, 5, 6, 7)]:
                u = generator.normal(size=shape).astype(dtype)
                for bound in ({"abs": 1e-2}, {"rel": 1e-3}, {"pw_rel": 1e-3}, {"psnr": 70}, {}):
                    v = tailrace.decode(tailrace.encode(u, **bound), np.shape(u))
                    error = np.abs(u.astype("f8") - v)
                    if "abs" in bound: assert (error <= 1e-2).all()
                    if "rel" in bound: assert (error <= 1e-3 * (u.max() - u.min())).all()
                    if "pw_rel" in bound: assert (error <= 1e-3 * np.abs(u.astype("f8"))).all()
                    if not bound: assert (u == v).all()
        for dtype in ("i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i4"):
            u = generator.integers(0, 100, (30, 40)).astype(dtype)
            assert (tailrace.decode(tailrace.encode(u), u.shape) == u).all()
        summary = tailrace.describe(tailrace.encode(np.ones((30, 40), "f4"), abs=1))
        assert summary.dtype == "f4" and summary.n_values == 1200 and summary.method
        u = generator.normal(size=(64, 64, 64)).astype("f4")
        wanted = tailrace.encode(u, abs=0.01)
        found = []
        threads = [threading.Thread(target=lambda: found.append(tailrace.encode(u, abs=0.01)))
                   for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert found == [wanted] * 8
        into = np.empty_like(u)
        assert tailrace.decode(wanted, out=into) is into and abs(into - u).max() <= 0.01
        for call, kind in [
            (lambda: tailrace.encode(u, abs=-1), tailrace.TrzError),
            (lambda: tailrace.encode(u, abs=1, rel=1), tailrace.TrzError),
            (lambda: tailrace.encode(u, preset="best"), tailrace.TrzError),
            (lambda: tailrace.encode(u.astype("c8")), TypeError),
            (lambda: tailrace.encode(u[:0]), tailrace.TrzError),
            (lambda: tailrace.decode(wanted[:-1]), tailrace.TrzError),
            (lambda: tailrace.decode(wanted, (3, 3)), tailrace.TrzError),
            (lambda: tailrace.decode(b""), tailrace.TrzError),
            (lambda: tailrace.decode(wanted, out=np.empty(u.shape)), tailrace.TrzError),
            (lambda: tailrace.decode(wanted, out=u[:32]), tailrace.TrzError),
            (lambda: tailrace.decode(wanted, out=np.empty(u.shape, "f4").T), tailrace.TrzError),
            (lambda: tailrace.Trz(rel=1e-3), tailrace.TrzError),
        ]:
            try:
                call()
            except kind as error:
                assert str(error)
            else:
                raise SystemExit("no error")
    """, package=True)


def test_a_shared_book_travels_in_the_file(tmp_path):
    """Chunks with a book in the client data can be read with the plug-in only."""
    target = tmp_path / "out.h5"
    python(f"""
        import h5py, numpy as np, tailrace
        x = np.linspace(0, 20, 64)
        steps = [(np.sin(x + 0.1 * t)[:, None, None] * np.cos(x)[:, None] + np.sin(2 * x)
                  + np.random.default_rng(t).normal(0, 1e-3, (64, 64, 64))).astype("f4")
                 for t in range(3)]
        book = tailrace.train_book(steps[:1], abs={BOUND})
        with h5py.File({str(target)!r}, "w") as file:
            file.create_dataset("u", data=steps[2], chunks=(32, 32, 32),
                                **tailrace.Trz(abs={BOUND}, book=book))
            file["exact"] = steps[2]
        encoded = tailrace.encode(steps[1][:32], abs={BOUND}, book=book)
        own = tailrace.encode(steps[1][:32], abs={BOUND})
        assert abs(len(encoded) - len(own)) < 0.1 * len(own)
        decoded = tailrace.decode(encoded, (32, 64, 64), book=book)
        assert abs(decoded - steps[1][:32]).max() <= {BOUND}
        for wrong in (None, tailrace.train_book(steps[1:], abs=10 * {BOUND})):
            try:
                tailrace.decode(encoded, book=wrong)
            except tailrace.TrzError as error:
                assert "book" in str(error)
            else:
                raise SystemExit("decoded without its book")
        try:
            tailrace.Trz(abs=1, book=book[:-1])
        except tailrace.TrzError:
            pass
        else:
            raise SystemExit("took half a book")
    """, package=True)
    words = filter_of(target)[2]
    assert words[0] >> 18 & 1 and words[4] == len(words[5:-4]) * 4 - (-words[4] % 4)
    read = python(f"""
        import h5py
        with h5py.File({str(target)!r}) as file:
            assert 0 < abs(file["u"][...] - file["exact"][...]).max() <= {BOUND}
    """)
    assert read.returncode == 0
    tailrace("verify", target, target)
    # Pass the same book to Tailrace by its client data.
    again = tmp_path / "again.h5"
    text = ":".join(map(str, words[4:-4]))
    tailrace("repack", target, "-o", again, "--only", "exact", "--codec", f"trz,book={text}",
             "--bound", f"abs={BOUND}", "--chunk", "32x32x32")
    assert stored_chunks(again, "exact") == stored_chunks(target)
    assert filter_of(again, "exact")[2] == words
    assert "book" in tailrace("repack", target, "-o", tmp_path / "no.h5", "--codec",
                              f"trz,book={text[:-1]}:7", code=2).stderr


def test_the_golden_chunk_is_read(tmp_path):
    """The plug-in reads a chunk of version 0.1.0, whose values are computed here."""
    python(f"""
        import h5py, numpy as np, tailrace
        golden = open({str(ROOT / 'tests' / 'golden' / 'codec_trz_0.1.0.bin')!r}, "rb").read()
        values = np.abs(np.arange(4096) % 2000 - 1000).astype("f4") * np.float32(0.37)
        with h5py.File({str(tmp_path / 'golden.h5')!r}, "w") as file:
            file.create_dataset("u", shape=(4096,), dtype="f4", chunks=(4096,),
                                **tailrace.Trz(abs=0.5))
            file["u"].id.write_direct_chunk((0,), golden)
        with h5py.File({str(tmp_path / 'golden.h5')!r}) as file:
            decoded = file["u"][...]
        assert abs(values.astype("f8") - decoded).max() <= 0.5
        assert (tailrace.decode(golden) == decoded).all()
    """, package=True)


def test_filter_args():
    h5repack = tailrace("filter-args", "-c", "trz,preset=fast", "-b", "pw_rel=0.5").stdout
    assert h5repack == "UD=481,0,4,513,1,0,1071644672\n"
    assert tailrace("filter-args", "-c", "deflate").stdout == "SHUF\nGZIP=4\n"
    assert tailrace("filter-args", "-c", "none").stdout == "NONE\n"
    ranged = tailrace("filter-args", "-c", "trz", "-b", "rel=0.5", "--range", "-1:3").stdout
    assert ranged == "UD=481,0,4,257,0,0,1073741824\n"
    for wrong, why in [
        (("-c", "trz", "-b", "rel=1e-3"), "--range"),
        (("-c", "trz", "-b", "rel=1e-3", "--range", "3:1"), "LEAST:GREATEST"),
        (("-c", "trz,preset=best"), "default, fast, ratio"),
        (("-c", "trz", "--for", "f32"), "--for"),
        (("-c", "portable", "-b", "abs=1"), "rounds"),
        (("-c", "unknown"), "unknown"),
        ((), "--codec"),
    ]:
        assert why in tailrace("filter-args", *wrong, code=2).stderr
