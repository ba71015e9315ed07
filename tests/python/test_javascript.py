"""Codec trz in JavaScript: the plug-in of scripts/build-javascript under node and in Chromium.

h5wasm with the plug-in reads the same values as h5py with the native one, bit for bit. Damaged
chunks have the same outcome under both: an error, or the same values. If tools are missing, tests
are skipped and name them; `scripts/setup --full` installs them.
"""

import functools
import hashlib
import http.server
import itertools
import json
import shutil
import subprocess
import threading
import zlib

import h5py
import numpy as np
import pytest

from cli_tools import ROOT, tailrace
from test_trz_filter import python, stored_chunks

pytestmark = pytest.mark.full
PACKAGE = ROOT / "build" / "javascript" / "tailrace-trz"
TRAP = "RuntimeError"  # JavaScript's error for WebAssembly that accessed memory out of bounds.


@functools.cache
def build():
    """Build the package once. Return the reason if it cannot be built, or an empty text."""
    for tool in ("em++", "node", "npm"):
        if shutil.which(tool) is None:
            return f"no {tool} here (scripts/setup --full installs it)"
    done = subprocess.run([ROOT / "scripts" / "build-javascript"], capture_output=True, text=True,
                          timeout=1800)
    assert done.returncode == 0, done.stderr[-3000:]
    return ""


@pytest.fixture(name="package")
def built_package():
    if reason := build():
        pytest.skip(reason)
    return PACKAGE


def under_node(package, path):
    """Read with h5wasm; return {dataset: SHA-256 of its values' bytes, or "error: ..."}."""
    program = ROOT / "tests" / "javascript" / "hash_datasets.mjs"
    done = subprocess.run(["node", program, package, path], capture_output=True, text=True,
                          timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def under_h5py(path):
    """Read with h5py and the native plug-in, in a separate process."""
    return json.loads(python(f"""
        import hashlib, json, h5py
        found = {{}}
        with h5py.File({str(path)!r}) as file:
            for name in file:
                try:
                    found[name] = hashlib.sha256(file[name][...].tobytes()).hexdigest()
                except OSError as error:
                    found[name] = f"error: {{error}}"
        print(json.dumps(found))""").stdout)


def field(shape, dtype, seed):
    """Return smooth values with noise; a few are not finite, and one range is constant."""
    random = np.random.default_rng(seed)
    axes = np.meshgrid(*[np.linspace(0, 5 + d, n) for d, n in enumerate(shape)], indexing="ij")
    values = sum(np.sin((d + 1) * axis) for d, axis in enumerate(axes))
    values = (values + 0.01 * random.normal(size=shape)).astype(dtype)
    flat = values.reshape(-1)
    flat[5:flat.size // 8] = 1.5
    flat[-3:] = [np.nan, np.inf, -0.0]
    return values


SHAPES = {"one": ((5001,), (1024,)), "two": ((301, 203), (64, 100)),
          "three": ((41, 52, 63), (16, 52, 32)), "even": ((32, 64), (16, 32))}


@pytest.fixture(name="source")
def source_file(tmp_path):
    """Write fields of one to three dimensions, with partial chunks at edges and without."""
    path = tmp_path / "in.h5"
    with h5py.File(path, "w") as file:
        for seed, (name, (shape, chunk)) in enumerate(SHAPES.items()):
            for dtype in ("f4", "f8"):
                file.create_dataset(f"{name}_{dtype}", data=field(shape, dtype, seed), chunks=chunk)
        integers = np.arange(7000, dtype="i4").reshape(70, 100) % 91
        for dtype in ("i1", "u2", "i4", "u8"):
            file.create_dataset(f"whole_{dtype}", data=integers.astype(dtype), chunks=(32, 32))
    return path


BOUNDS = ["abs=1e-3", "rel=1e-5", "pw_rel=1e-3"]
PRESETS = ["trz", "trz,preset=fast", "trz,preset=ratio", "trz,preset=max"]


@pytest.mark.parametrize(("codec", "bound"), [
    *itertools.product(PRESETS, [None, *BOUNDS]),
    *itertools.product(["trz,coarse=2", "trz,refine=4"], BOUNDS[:2])])
def test_values_are_those_of_h5py(package, source, tmp_path, codec, bound):
    out = tmp_path / "out.h5"
    tailrace("repack", source, "-o", out, "--codec", codec, *(["--bound", bound] if bound else []))
    expected = under_h5py(out)
    assert len(expected) == 12 and not [text for text in expected.values() if "error" in text]
    assert under_node(package, out) == expected
    if bound is None:
        with h5py.File(source) as file:
            assert expected == {name: hashlib.sha256(file[name][...].tobytes()).hexdigest()
                                for name in file}


def sealed(chunk):
    """Return the chunk with a correct checksum (trz/docs/trz-format.md, section 1)."""
    return chunk[:4] + zlib.crc32(chunk[8:]).to_bytes(4, "little") + chunk[8:]


def damaged(chunk, random, seal):
    """Return a copy with one to three changed bits; `seal`: the checksum is corrected."""
    bytes_ = bytearray(chunk)
    for _ in range(random.integers(1, 4)):
        bytes_[random.integers(8 if seal else 0, len(bytes_))] ^= 1 << random.integers(8)
    if random.random() < 0.1:
        bytes_ = bytes_[:random.integers(12, len(bytes_))]
    return sealed(bytes(bytes_)) if seal else bytes(bytes_)


@pytest.mark.parametrize("seal", [False, True], ids=["checksums wrong", "checksums right"])
def test_damaged_chunks_are_refused_as_by_h5py(package, source, tmp_path, seal):
    """Read 1,000 chunks, 990 of them damaged, with wrong and with corrected checksums.

    All wrong checksums fail; corrected ones pass the damage to the decoder. No outcome is a trap,
    and undamaged chunks can be read in between."""
    random = np.random.default_rng(7)
    pool = []
    for k, words in enumerate([
            "trz", "trz --bound abs=1e-3", "trz --bound pw_rel=1e-3",
            "trz,preset=ratio --bound abs=1e-4", "trz,preset=max --bound rel=1e-4",
            "trz,refine=3 --bound abs=1e-3", "trz,preset=fast --bound abs=1e-2"]):
        path = tmp_path / f"{k}.h5"
        tailrace("repack", source, "-o", path, "--codec", *words.split())
        with h5py.File(path) as file:
            for name, item in file.items():
                entry = item.id.get_create_plist().get_filter_by_id(481)
                chunks = list(stored_chunks(path, name).values())[:3] if entry else []
                pool += [(item.dtype, item.chunks, entry[1], chunk)
                         for mask, chunk in chunks if mask == 0]
    path = tmp_path / "damaged.h5"
    write_chunks(path, [(*kind, chunk if i % 100 == 99 else damaged(chunk, random, seal))
                        for i in range(1000)
                        for *kind, chunk in [pool[random.integers(len(pool))]]])
    expected = under_h5py(path)
    found = under_node(package, path)
    assert len(found) == 1000
    sound = {name for name in found if int(name) % 100 == 99}
    assert not [found[name] for name in sound if "error" in found[name]]
    traps = {name: text for name, text in found.items() if TRAP in text}
    assert not traps
    for name, text in found.items():
        if expected[name].startswith("error"):
            assert text.startswith("error"), name
        else:
            assert text == expected[name], name
    n_errors = sum(text.startswith("error") for text in found.values())
    assert n_errors == 990 if not seal else n_errors > 100


def write_chunks(path, chunks):
    """Write a dataset of one chunk for each of these bytes.

    The request has the first four client data words, without flags. The native filter completes it
    by the dataset's type and chunk."""
    lines = [(str(dtype), list(shape), [int(words[0]) & 0xFFFF, *map(int, words[1:4])], chunk.hex())
             for dtype, shape, words, chunk in chunks]
    listing = path.with_suffix(".json")
    listing.write_text(json.dumps(lines))
    python(f"""
        import json, h5py
        with h5py.File({str(path)!r}, "w") as file:
            for i, (dtype, shape, words, text) in enumerate(json.load(open({str(listing)!r}))):
                made = file.create_dataset(str(i), tuple(shape), dtype, chunks=tuple(shape),
                                           compression=481, compression_opts=tuple(words))
                made.id.write_direct_chunk((0,) * len(shape), bytes.fromhex(text))""")


def test_without_the_plugin_reading_throws(package, source, tmp_path):
    """h5wasm itself returns other values without an error; our package must throw instead."""
    out = tmp_path / "out.h5"
    tailrace("repack", source, "-o", out, "--codec", "zstd")
    found = under_node(package, out)
    assert {text.split(":")[0] for text in found.values()} == {"error"}
    assert all("zstd" in text for text in found.values())


class Silent(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(name="page")
def served_page(package, tmp_path):
    """Return a function that returns slice.html's text for a file, from headless Chromium."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        pytest.skip("no chromium here (scripts/setup --full installs it)")
    folder = tmp_path / "page"
    shutil.copytree(package, folder)
    handler = functools.partial(Silent, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()

        def status_of(path):
            shutil.copy(path, folder / "field.h5")
            done = subprocess.run(
                [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
                 f"--user-data-dir={tmp_path / 'chromium'}", "--virtual-time-budget=30000",
                 f"http://127.0.0.1:{server.server_port}/slice.html?file=field.h5"],
                capture_output=True, text=True, timeout=300)
            assert done.returncode == 0, done.stderr[-2000:]
            return done.stdout.split('<p id="status"')[1].split("</p>")[0]

        yield status_of
        server.shutdown()
        thread.join()


def test_page_draws_a_slice(page, tmp_path):
    path, out = tmp_path / "in.h5", tmp_path / "out.h5"
    values = np.zeros((4, 50, 60), "f4")
    # The page opens with this plane.
    values[2] = np.linspace(-2, 7, 3000, dtype="f4").reshape(50, 60)
    with h5py.File(path, "w") as file:
        file.create_dataset("u", data=values, chunks=(4, 50, 60)).attrs["units"] = "K"
    tailrace("repack", path, "-o", out, "--codec", "trz")
    assert "/u: 4 x 50 x 60, trz; least -2, greatest 7;" in page(out)
    tailrace("repack", path, "-o", out, "--codec", "zstd", "--force")
    assert "it needs the HDF5 filter 32015" in page(out)
