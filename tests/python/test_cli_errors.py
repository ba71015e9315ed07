"""Bad usage, bad input, full and missing folders, and kills on the command line.

The result is one clear message and the right exit code. A good file is never replaced by a broken
one."""

import hashlib
import os
import re
import signal
import subprocess
import time

import h5py
import netCDF4
import numpy as np
import pytest

from cli_tools import (ENVIRONMENT, command, datasets, own_lines, small_disk_at, smooth, tailrace)

pytestmark = pytest.mark.sample(3)


@pytest.fixture
def source(tmp_path):
    path = tmp_path / "in.h5"
    with h5py.File(path, "w") as file:
        file["g/u"] = smooth((32, 64, 64), 1)
        file["g/kind"] = np.arange(20000, dtype="i4") % 5
    return path


def refusal(*arguments, code=2, ranks=1, **keywords):
    """Run a command that is refused; return its only line, on any number of ranks."""
    done = tailrace(*arguments, code=code, ranks=ranks, **keywords)
    lines = own_lines(done.stderr)
    assert len(lines) == 1, done.stderr
    assert done.stdout == ""
    return lines[0]


USAGE = [
    ([], "INPUT is required"),
    (["IN"], "--output is required"),
    (["IN", "-o", "OUT", "--no-such-option"], "--no-such-option"),
    (["IN", "-o", "OUT", "--bound", "rel=-1"], "--bound"),
    (["IN", "-o", "OUT", "--bound", "nearly=1"], "nearly"),
    (["IN", "-o", "OUT", "--memory", "lots"], "--memory"),
    (["IN", "-o", "OUT", "--fsync", "maybe"], "fsync"),
    (["IN", "-o", "OUT", "--codec", "no_such_codec"], "no_such_codec"),
    (["IN", "-o", "OUT", "--layout", "no_such_layout"], "no_such_layout"),
    (["IN", "-o", "OUT", "--field", "u"], "GLOB:key=value"),
    (["IN", "-o", "OUT", "--field", "u:bound=rel=0"], "--field 'u:bound=rel=0'"),
    (["IN", "-o", "OUT", "--field", "pressure:codec=zfp"], "the fields are: /g/kind, /g/u"),
    (["IN", "-o", "OUT", "--field", "kind:bound=abs=1"], 'field "/g/kind" holds integers'),
    (["IN", "-o", "OUT", "--field", "u:chunk=8x8"], 'field "/g/u": chunk=8x8 does not fit'),
    (["IN", "-o", "OUT", "--raw", "f32:10x10"], "10x10"),
    (["IN", "IN", "-o", "OUT"], "existing folder"),
    (["IN", "-o", "IN", "--force"], "same file"),
    (["ABSENT", "-o", "OUT"], "absent.h5"),
    (["IN", "-o", "NOWHERE"], "does not exist"),
    (["IN", "-o", "OUT", "--json", "NOWHERE"], "nowhere"),
]


@pytest.mark.parametrize("words,text", USAGE,
                         ids=[" ".join(words) or "nothing" for words, _ in USAGE])
def test_refused(tmp_path, source, words, text):
    names = {"IN": source, "OUT": tmp_path / "out.h5", "ABSENT": tmp_path / "absent.h5",
             "NOWHERE": tmp_path / "nowhere" / "out.h5"}
    # Some cases run on two ranks: no rank hangs, and no rank repeats the message.
    ranks = 1 + len(text) % 2
    line = refusal("repack", *[names.get(word, word) for word in words], ranks=ranks)
    assert text in line
    assert line.startswith("tailrace repack: ")
    assert not (tmp_path / "out.h5").exists()
    assert not list(tmp_path.glob("*.partial"))


@pytest.mark.parametrize("ranks", [1, 4])
def test_existing_output(tmp_path, source, ranks):
    target = tmp_path / "out.h5"
    target.write_text("precious")
    assert "--force" in refusal("repack", source, "-o", target, ranks=ranks)
    assert target.read_text() == "precious"
    tailrace("repack", source, "-o", target, "--force", ranks=ranks)
    assert np.array_equal(datasets(target)["g/u"], datasets(source)["g/u"])


def test_missing_plugin(tmp_path, source):
    target = tmp_path / "out.h5"
    line = refusal("repack", source, "-o", target, "--codec", "id=31999,cd=1", ranks=2)
    assert "31999" in line
    assert not target.exists() and not list(tmp_path.glob("*.partial"))


@pytest.mark.parametrize("ranks", [1, 3])
def test_corrupt_input(tmp_path, source, ranks):
    whole = source.read_bytes()
    for name, content in (("cut.h5", whole[: len(whole) // 2]),
                          ("text.h5", b"not a file of numbers"), ("empty.h5", b"")):
        bad = tmp_path / name
        bad.write_bytes(content)
        assert name in refusal("repack", bad, "-o", tmp_path / "out.h5", ranks=ranks)
        assert not (tmp_path / "out.h5").exists()


def test_damage_inside_a_chunk(tmp_path):
    """One rank detects the damage while reading: one message, and no output."""
    bad, target = tmp_path / "bad.h5", tmp_path / "out.h5"
    with h5py.File(bad, "w") as file:
        u = file.create_dataset("u", data=smooth((64, 64, 64)), chunks=(16, 64, 64),
                                compression="gzip", fletcher32=True)
        place = u.id.get_chunk_info(3)
    with open(bad, "r+b") as file:
        file.seek(place.byte_offset + place.size // 2)
        file.write(b"\x55" * 64)
    for ranks in (1, 3):
        line = refusal("repack", bad, "-o", target, ranks=ranks)
        assert "/u" in line
        assert not target.exists() and not list(tmp_path.glob("*.partial"))


@pytest.mark.parametrize("url", ["https://host/run.nc", "s3://bucket/run.h5", "file:///run.h5"])
def test_urls_are_refused_by_what_to_use(tmp_path, source, url):
    said = [refusal(*words) for words in (
        ["info", url], ["repack", url, "-o", tmp_path / "out.h5"], ["verify", source, url],
        ["export", url, "-o", tmp_path / "out.h5"], ["recover", url],
        ["repack", source, "-o", url])]
    concat = tailrace("concat", "-o", tmp_path / "out.h5", url, code=2).stderr
    advice = "without file://" if url.startswith("file") else "copy the file here"
    for text in (*said, concat):
        assert f"{url}: URLs are not supported" in text and advice in text


@pytest.mark.parametrize("form", ["NETCDF3_CLASSIC", "NETCDF3_64BIT_DATA"])
def test_export_of_netcdf_classic(tmp_path, form):
    """Whole files become HDF5; for parts and other formats the error names the required step."""
    path, whole = tmp_path / "in.nc", tmp_path / "whole.nc"
    values = np.random.default_rng(3).random((5, 30), "f4")
    with netCDF4.Dataset(path, "w", format=form) as file:
        file.createDimension("t")
        file.createDimension("x", 30)
        file.createVariable("u", "f4", ("t", "x"))[:] = values
        file.title = "title"
    tailrace("export", path, "-o", whole)
    with netCDF4.Dataset(whole) as file:
        np.testing.assert_array_equal(file["u"][:], values)
        assert file.title == "title" and file.dimensions["t"].isunlimited()
    for words in (["-o", tmp_path / "u.npy"], ["-o", tmp_path / "part.h5", "--slab", "0:2"]):
        said = refusal("export", path, "--only", "u", *words)
        assert "is netCDF classic" in said and "tailrace repack" in said


@pytest.fixture
def small_disk(tmp_path):
    with small_disk_at(tmp_path / "disk", "256k") as folder:
        yield folder


@pytest.mark.parametrize("ranks", [1, 2])
def test_full_disk(small_disk, source, ranks):
    target = small_disk / "out.h5"
    line = refusal("repack", source, "-o", target, "--codec", "none", "--chunk", "16x16x16",
                   ranks=ranks, code=3)
    assert "space" in line.lower()
    assert not target.exists()
    # Written space is freed, so that the next try starts on an empty disk.
    assert sum(entry.stat().st_size for entry in small_disk.iterdir()) == 0


def test_read_only_folder(small_disk, source):
    done = subprocess.run(["mount", "-o", "remount,ro", small_disk], capture_output=True, text=True)
    if done.returncode != 0:
        pytest.skip(f"the tmpfs cannot be made read-only: {done.stderr.strip()}")
    assert "Read-only" in refusal("repack", source, "-o", small_disk / "out.h5", code=3, ranks=2)


@pytest.mark.parametrize("ranks", [1, 2])
def test_kill_leaves_the_old_file(tmp_path, ranks):
    source, target = tmp_path / "u.npy", tmp_path / "out.h5"
    np.save(source, smooth((96, 128, 128)))
    tailrace("repack", source, "-o", target, "--codec", "none")
    old = hashlib.sha256(target.read_bytes()).digest()
    outcomes = set()
    for delay in (0.02, 0.1, 0.25, 0.5, 0.9):
        process = subprocess.Popen(
            command("repack", source, "-o", target, "--force", "--bound", "abs=1e-4", "--quiet",
                    ranks=ranks), env=ENVIRONMENT, start_new_session=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(delay)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        time.sleep(0.3 if ranks > 1 else 0)  # mpiexec's children end a little later.
        unchanged = hashlib.sha256(target.read_bytes()).digest() == old
        outcomes.add(unchanged)
        if not unchanged:
            tailrace("verify", source, target)
            break
        tailrace("recover", target)
    assert True in outcomes
    tailrace("repack", source, "-o", target, "--force", "--bound", "abs=1e-4", ranks=ranks)
    tailrace("verify", source, target)
    assert not list(tmp_path.glob("*.partial"))


@pytest.mark.parametrize("word, meant", [("repak", "repack"), ("varify", "verify"),
                                         ("conact", "concat"), ("nonsense", None)])
def test_a_misspelt_command_is_guessed(word, meant):
    line = tailrace(word, "in.h5", code=2).stderr
    assert line.startswith(f'tailrace: unknown command "{word}"')
    assert line.count("\n") == 1 and "see tailrace --help" in line
    assert ("did you mean" in line) == (meant is not None)
    assert meant is None or f'did you mean "{meant}"?' in line


def test_help_and_version():
    text = tailrace("--help", ranks=2).stdout
    assert text.count("Usage:") == 1
    for name in ("repack", "verify", "info", "recover"):
        assert name in text
    for name in ("repack", "verify", "info", "recover"):
        text = tailrace(name, "--help").stdout
        assert text.index("Examples:") < text.index("Usage:")
        assert max(map(len, text.splitlines())) <= 80
    version = tailrace("--version").stdout
    assert "HDF5" in version and "MPI" in version and "portable" in version
    assert re.search(r"^commit   \S+.*\nbuilt    by \S+ [0-9.]+, \w+; "
                     r"uses (plain|avx2|avx512) here$", version, re.M)
    kernels = re.search(r"^kernels  for (.*); this processor has (.*)$", version, re.M)
    used = re.search(r"uses (\w+) here", version)[1]
    assert {"plain", used} <= set(kernels[2].split()) <= set(kernels[1].split())
    hdf5 = re.search(r"^HDF5     ([0-9.]+) \(built against ([0-9.]+)\)$", version, re.M)
    assert hdf5[1].split(".")[:2] == hdf5[2].split(".")[:2]
    assert "repack" in tailrace(code=2).stderr
