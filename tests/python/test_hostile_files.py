"""Malicious and damaged files, and names that are not files. Every command ends with the right
answer or one clear message, in bounded memory, and touches only the given files."""

import os
import resource
import shutil
import signal
import socket
import struct
import subprocess
import threading

import h5py
import numpy as np
import pytest

from cli_tools import ENVIRONMENT, ROOT, command, datasets, numbers, own_lines, tailrace

pytestmark = pytest.mark.sample(2)

ADDRESS_SPACE = 6 << 30  # Threads reserve much of it; RESIDENT limits the memory in use.
RESIDENT = 1 << 30


def bounded(*arguments, codes=(0,), timeout=600):
    """Run a command within RESIDENT bytes; return the completed process."""
    def limit():
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))

    process = subprocess.Popen(command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               text=True, env=ENVIRONMENT, preexec_fn=limit)
    late = threading.Timer(timeout, process.kill)
    late.start()
    try:
        out, err = process.stdout.read(), process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
    finally:
        late.cancel()
    code = os.waitstatus_to_exitcode(status)
    process.returncode = code
    assert code in codes, f"{arguments}: exit {code}\n{out}{err}"
    assert used.ru_maxrss * 1024 < RESIDENT, arguments
    done = subprocess.CompletedProcess(arguments, code, out, err)
    done.resident_bytes = used.ru_maxrss * 1024
    return done


def twin(path):
    """Copy the file, because concat accepts each file only once."""
    return shutil.copy(path, path.with_name("twin.h5"))


def patch(path, address, values):
    with open(path, "r+b") as file:
        file.seek(address)
        file.write(values)


# --- Circles

def with_circles(path):
    with h5py.File(path, "w") as file:
        file["a/b/x"] = np.arange(16, dtype="f4")
        file["a/b/up"] = file["a"]
        file["a/b/top"] = file["/"]
        file["a/b/self"] = file["a/b"]
        file["soft"] = h5py.SoftLink("/soft")
        file["a/soft"] = h5py.SoftLink("/a/b/soft")
        file["a/b/soft"] = h5py.SoftLink("/a/soft")
        file["outside"] = h5py.ExternalLink(path.name, "/outside")
        headers = [h5py.h5o.get_info(file[name].id).addr for name in ("/", "a", "a/b")]
    # Headers of version 1 claim one link each (at byte 4): a reader that relies on this loops
    # forever.
    for address in headers:
        patch(path, address + 4, struct.pack("<I", 1))


@pytest.mark.usefixtures("whole_sentences")
def test_circles_of_links_end(tmp_path):
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    with_circles(source)
    info = bounded("info", source)
    assert 'hard link "/a/b/up" leads back to group "/a"' in info.stderr
    assert [field["path"] for field in numbers("info", source)["fields"]] == ["/a/b/x"]
    assert "complete and undamaged" in " ".join(bounded("recover", source).stdout.split())
    packed = bounded("repack", source, "-o", target)
    for link, group in (("/a/b/up", "/a"), ("/a/b/top", "/"), ("/a/b/self", "/a/b")):
        assert f'hard link "{link}" leads back to group "{group}"' in packed.stderr
    bounded("verify", source, target)
    with h5py.File(target) as file:
        assert file["a/b/up"] == file["a"] and file["a/b/top"] == file["/"]
        assert np.array_equal(file["a/b/up/b/self/x"][:], np.arange(16))
        assert file.get("soft", getlink=True).path == "/soft"
        assert file.get("outside", getlink=True).filename == source.name


def test_circles_of_links_in_a_concatenation(tmp_path):
    for name in ("1.h5", "2.h5"):
        with_circles(tmp_path / name)
    both = tmp_path / "1.h5", tmp_path / "2.h5"
    bounded("concat", *both, "-o", tmp_path / "both.h5")
    bounded("verify", "--concat", tmp_path / "both.h5", *both)
    assert datasets(tmp_path / "both.h5")["a/b/x"].shape == (32,)


# --- Extents

def test_groups_without_end(tmp_path):
    source = tmp_path / "deep.h5"
    with h5py.File(source, "w", libver="latest") as file:
        group = file
        for _ in range(20000):
            group = group.create_group("g")
        group["x"] = np.arange(4.0)
    target = tmp_path / "out.h5"
    for words in (["info", source], ["repack", source, "-o", target], ["verify", source, source],
                  ["concat", source, twin(source), "-o", target]):
        limit = "limit is 4096" if words[0] == "concat" else "nested more than 256 levels deep"
        assert limit in bounded(*words, codes=(2,)).stderr, words
        assert not target.exists()
    assert "limit is 4096" in " ".join(bounded("recover", source).stdout.split())


def test_groups_at_the_limit(tmp_path):
    source, target = tmp_path / "deep.h5", tmp_path / "out.h5"
    with h5py.File(source, "w") as file:
        file["/".join("g" * 256) + "/x"] = np.arange(4.0)
    bounded("repack", source, "-o", target)
    bounded("verify", source, target)


def test_paths_without_end(tmp_path):
    source = tmp_path / "long.h5"
    with h5py.File(source, "w") as file:
        file["a" * 3000 + "/" + "b" * 3000] = np.arange(4.0)
    assert "limit is 4096" in bounded("info", source, codes=(2,)).stderr


SPARSE = {
    "nothing written": (dict(chunks=(1024,)), ()),
    "the first chunk": (dict(chunks=(1 << 20,)), (0,)),
    "the last chunk": (dict(chunks=(1 << 20,)), ((1 << 40) - 1,)),
    "some of a growing one": (dict(chunks=(1 << 20,), maxshape=(None,)), (5, 1 << 30, 1 << 39)),
    "compressed": (dict(chunks=(1 << 20,), compression="gzip"), (1 << 35,)),
    "contiguous": ({}, ()),
}


@pytest.mark.sample(4)
@pytest.mark.parametrize("libver", ["earliest", ("v110", "v110")])
@pytest.mark.parametrize("kind", SPARSE)
def test_sparse_datasets(tmp_path, kind, libver):
    options, written = SPARSE[kind]
    source, target = tmp_path / "sparse.h5", tmp_path / "out.h5"
    with h5py.File(source, "w", libver=libver) as file:
        dataset = file.create_dataset("x", (1 << 40,), "f4", **options)
        for place in written:
            dataset[place] = 1
        file["y"] = np.arange(8, dtype="f4")
    field = next(f for f in numbers("info", source)["fields"] if f["path"] == "/x")
    assert field["n_chunks"] == len(written)
    bounded("info", source)
    assert "complete and undamaged" in " ".join(bounded("recover", source).stdout.split())
    for words in (["repack", source, "-o", target], ["verify", source, source],
                  ["concat", source, twin(source), "-o", target]):
        done = bounded(*words, codes=(2,))
        assert 'dataset "/x" of shape 1099511627776 is nearly empty' in done.stderr, words
        assert not target.exists()
    bounded("repack", source, "-o", target, "--exclude", "/x")
    assert datasets(target)["y"].shape == (8,)


def find_in(path, pattern):
    place = path.read_bytes().find(pattern)
    assert place > 0
    return place


def test_an_index_that_is_all_but_empty(tmp_path):
    """HDF5 visits every entry of the index, even if it is empty."""
    source, target = tmp_path / "sparse.h5", tmp_path / "out.h5"
    with h5py.File(source, "w", libver=("v110", "v110")) as file:
        dataset = file.create_dataset("x", (1 << 40,), "f4", chunks=(1024,), maxshape=(None,))
        dataset[1 << 39] = 1
    for words in (["info", source], ["repack", source, "-o", target], ["verify", source, source],
                  ["concat", source, twin(source), "-o", target]):
        code = 3 if words[0] == "info" else 2
        assert "a chunk index of 1073741824 entries" in bounded(*words, codes=(code,)).stderr, words
    bounded("recover", source)


LIES = {
    # Options; the extent in the dataspace message, and its false value.
    "contiguous": ({}, (48, 1 << 45)),
    "rows": (dict(chunks=(8,)), (48, 1 << 45)),
    "all bits": (dict(chunks=(8,)), (48, (1 << 64) - 2)),
}


@pytest.mark.parametrize("kind", LIES)
def test_extents_that_lie(tmp_path, kind):
    options, (extent, lie) = LIES[kind]
    source, target = tmp_path / "lie.h5", tmp_path / "out.h5"
    with h5py.File(source, "w") as file:
        file.create_dataset("x", data=np.arange(extent, dtype="f8"), **options)
    # The message has the extent and its limit.
    patch(source, find_in(source, struct.pack("<QQ", extent, extent)), struct.pack("<QQ", lie, lie))
    for words in (["info", source], ["repack", source, "-o", target], ["verify", source, source],
                  ["concat", source, twin(source), "-o", target], ["recover", source]):
        done = bounded(*words, codes=(0, 1, 2, 3) if words[0] == "info" else (0, 1, 2))
        assert done.returncode != 0 or words[0] in ("info", "recover"), words
        assert done.returncode == 0 or len(own_lines(done.stderr)) <= 1, words
        assert done.stdout + done.stderr
        assert not target.exists()


@pytest.mark.parametrize("extent", [0, 1, 1 << 31, (1 << 32) - 1])
def test_chunk_extents_that_lie(tmp_path, extent):
    """Some extents multiply to 0 in 32 bits, and nothing can be divided by 0."""
    source, target = tmp_path / "lie.h5", tmp_path / "out.h5"
    with h5py.File(source, "w") as file:
        file.create_dataset("x", data=np.arange(96.0).reshape(12, 8), chunks=(6, 4))
    # The message has 32 bits for each extent and for the element's size.
    place = find_in(source, struct.pack("<III", 6, 4, 8))
    patch(source, place, struct.pack("<II", extent, extent))
    for words in (["info", source], ["repack", source, "-o", target], ["verify", source, source],
                  ["concat", source, twin(source), "-o", target], ["recover", source]):
        done = bounded(*words, codes=(0, 1, 2, 3) if words[0] == "info" else (0, 1, 2))
        assert done.stdout + done.stderr, words
    if extent != 1:
        assert "/x" in bounded("repack", source, "-o", target, codes=(2,)).stderr


@pytest.mark.parametrize("size", [0, 7, 1 << 20, (1 << 32) - 1])
def test_chunk_sizes_that_lie(tmp_path, size):
    """The B-tree's key has the number of stored bytes, before mask and offsets."""
    source, target = tmp_path / "lie.h5", tmp_path / "out.h5"
    with h5py.File(source, "w") as file:
        data = file.create_dataset("x", data=np.arange(96.0), chunks=(48,), compression="gzip")
        stored = data.id.get_chunk_info(1)
    place = find_in(source, struct.pack("<IIQQ", stored.size, 0, 48, 0))
    patch(source, place, struct.pack("<I", size))
    for words in (["repack", source, "-o", target], ["concat", source, twin(source), "-o", target],
                  ["verify", source, source]):
        assert "/x" in bounded(*words, codes=(2, 3)).stderr, words
        assert not target.exists()


@pytest.mark.parametrize("codec", ["none", "deflate"])
def test_tall_chunks_keep_within_the_memory(tmp_path, codec):
    """Every box of the output touches many chunks, and a row of them exceeds the memory."""
    source, target = tmp_path / "tall.h5", tmp_path / "out.h5"
    values = np.add.outer(np.arange(16384, dtype="f4"), np.sin(np.arange(1024, dtype="f4")))
    with h5py.File(source, "w") as file:
        file.create_dataset("x", data=values, chunks=(16384, 16), compression="gzip",
                            compression_opts=1)
    bare = bounded("info", source).resident_bytes
    done = bounded("repack", source, "-o", target, "--memory", "64MB", "--codec", codec)
    assert done.resident_bytes - bare < 64e6
    assert np.array_equal(datasets(target)["x"], values)


@pytest.mark.parametrize("length", [0, 1 << 20, (1 << 64) - 16, (1 << 64) - 1])
def test_lengths_in_a_global_heap_that_lie(tmp_path, length):
    """Lengths for which HDF5 itself would loop forever, or read outside the heap. The heap has a
    virtual dataset's sources, and the users of a dimension scale."""
    source, target = tmp_path / "lie.h5", tmp_path / "out.h5"
    with h5py.File(source, "w") as file:
        file["x"] = np.arange(8, dtype="i4")
        layout = h5py.VirtualLayout((8,), "i4")
        layout[:] = h5py.VirtualSource(".", "x", shape=(8,))
        file.create_virtual_dataset("view", layout)
    heap = find_in(source, b"GCOL")
    # Object 0 is free space, whose length includes its header.
    patch(source, heap + 16, struct.pack("<HHIQ", 0 if length == 0 else 1, 1, 0, length))
    for words in (["info", source], ["repack", source, "-o", target], ["verify", source, source],
                  ["concat", source, twin(source), "-o", target]):
        assert f"global heap at address {heap}" in bounded(*words, codes=(2,)).stderr, words
        assert not target.exists()
    assert "has lost data" in bounded("recover", source, codes=(1,)).stdout


# --- Objects that are not files

@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "socket"])
def test_what_is_no_file_is_refused(tmp_path, kind):
    good, bad, target = tmp_path / "good.h5", tmp_path / "bad.h5", tmp_path / "out.h5"
    with h5py.File(good, "w") as file:
        file["x"] = np.arange(8, dtype="f4")
    if kind == "pipe":
        os.mkfifo(bad)
    elif kind == "folder":
        bad.mkdir()
    elif kind == "socket":
        here = os.getcwd()
        os.chdir(tmp_path)  # Names of sockets must be short.
        listener = socket.socket(socket.AF_UNIX)
        listener.bind("bad.h5")
        os.chdir(here)
    else:
        bad = "/dev/zero"
    for words in (["info", bad], ["repack", bad, "-o", target], ["concat", good, bad, "-o", target],
                  ["verify", bad, good], ["verify", good, bad], ["recover", bad],
                  ["recover", bad, "--apply"], ["verify", "--concat", good, bad],
                  ["verify", "--concat", bad, good], ["export", bad, "-o", target],
                  ["info", bad, "--raw", "f4:10"]):
        if words[-1] == "f4:10":
            words[-1] = "f32:10"
        done = bounded(*words, codes=(2, 3))
        assert str(bad) in done.stderr, words
        assert len(own_lines(done.stderr)) == 1, done.stderr
        assert not target.exists()


def test_pipes_beside_a_file(tmp_path):
    """recover looks at names next to the file's; opening a pipe there would block forever."""
    source = tmp_path / "x.h5"
    with h5py.File(source, "w") as file:
        file["x"] = np.arange(8, dtype="f4")
    for name in ("x.h5.partial", "x.h5.journal", "x.h5.lock"):
        os.mkfifo(tmp_path / name)
        bounded("recover", source, codes=(0, 1, 2, 3))
        os.unlink(tmp_path / name)


# --- Output

def test_a_full_stdout_is_an_error(tmp_path):
    source = tmp_path / "x.h5"
    with h5py.File(source, "w") as file:
        file["x"] = np.arange(8, dtype="f4")
    for words in (["info", source], ["info", source, "--json", "-"], ["recover", source],
                  ["verify", source, source], ["options"], ["--version"], ["--help"],
                  ["repack", source, "-o", tmp_path / "out.h5"]):
        with open("/dev/full", "w") as full:
            done = subprocess.run(command(*words), stdout=full, stderr=subprocess.PIPE, text=True,
                                  env=ENVIRONMENT, timeout=600)
        assert done.returncode == 3, (words, done)
        assert "No space left" in done.stderr, words
    assert tailrace("info", source).stdout


@pytest.mark.parametrize("ranks", [1, 2])
def test_a_limit_on_file_sizes_is_an_error(tmp_path, ranks):
    source, target = tmp_path / "x.h5", tmp_path / "out.h5"
    with h5py.File(source, "w") as file:
        file["x"] = np.random.default_rng(1).random(5000000)

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        # MPI itself writes files of some megabytes.
        resource.setrlimit(resource.RLIMIT_FSIZE, (20 << 20, 20 << 20))

    for words in (["repack", source, "-o", target, "--codec", "none"],
                  ["export", source, "-o", tmp_path / "x.npy"],
                  ["concat", source, twin(source), "-o", target]):
        done = subprocess.run(command(*words, ranks=ranks), capture_output=True, text=True,
                              env=ENVIRONMENT, timeout=600, preexec_fn=limit)
        assert done.returncode == 3, (words, done)
        assert "File too large" in done.stderr, words
        assert len(own_lines(done.stderr)) == 1, done.stderr
        assert not target.exists()


# --- Other files

def with_values_elsewhere(folder):
    secret = folder / "secret.bin"
    secret.write_bytes(np.arange(64, dtype="f4").tobytes())
    with h5py.File(folder / "other.h5", "w") as file:
        file["y"] = np.arange(8, dtype="i4")
    with h5py.File(folder / "in.h5", "w") as file:
        file["x"] = np.arange(16, dtype="f4")
        file.create_dataset("outside", (64,), "f4", external=[(str(secret), 0, 256)])
        file.create_dataset("letters", (4,), "S64", external=[(str(secret), 0, 256)])
        layout = h5py.VirtualLayout((8,), "i4")
        layout[:] = h5py.VirtualSource(str(folder / "other.h5"), "y", shape=(8,))
        file.create_virtual_dataset("view", layout)
        file["link"] = h5py.ExternalLink("other.h5", "/y")
        file["z"] = np.arange(16, dtype="f4")
    return folder / "in.h5"


def test_other_files_are_read_on_request_only(tmp_path):
    source = with_values_elsewhere(tmp_path)
    out, with_all = tmp_path / "out.h5", tmp_path / "all.h5"
    said = [bounded("info", source).stderr, bounded("repack", source, "-o", out).stderr,
            bounded("verify", source, out, codes=(1,)).stderr,
            bounded("export", source, "-o", tmp_path / "plain.h5").stderr,
            bounded("export", source, "-o", tmp_path / "npy", "--format", "npy").stderr]
    for text in said:
        for name in ("/outside", "/view"):
            assert f'dataset "{name}": its values lie in other files' in text
    assert "secret.bin" in said[1] and "other.h5" in said[1] and "/letters" in said[1]
    for path in (out, tmp_path / "plain.h5"):
        with h5py.File(path) as file:
            assert set(file) == {"x", "z", "link", "view"} and file["view"].is_virtual
            assert file.get("link", getlink=True).filename == "other.h5"
    assert sorted(entry.name for entry in (tmp_path / "npy").iterdir()) == ["x.npy", "z.npy"]
    assert "follow-external" in bounded("export", source, "-o", tmp_path / "view.npy", "--only",
                                        "/view", codes=(2,)).stderr
    assert bounded("concat", source, twin(source), "-o", tmp_path / "both.h5", codes=(2,)).stderr

    done = bounded("verify", "--concat", source, twin(source), codes=(2,))
    assert "its values lie in other files; --follow-external reads them" in done.stderr
    seen = bounded("verify", "--concat", source, twin(source), "--follow-external")
    assert "lie in other files" not in seen.stderr + seen.stdout

    bounded("repack", source, "-o", with_all, "--follow-external")
    bounded("verify", source, with_all, "--follow-external")
    with h5py.File(with_all) as file:
        assert np.array_equal(file["outside"][:], np.arange(64))
        assert np.array_equal(file["view"][:], np.arange(8))
        assert file["letters"].shape == (4,) and not file["letters"].external
    listed = numbers("info", source, "--follow-external")
    assert [field["path"] for field in listed["fields"]] == ["/outside", "/view", "/x", "/z"]
    assert listed["remarks"] == []
    bounded("export", source, "-o", tmp_path / "view.npy", "--only", "/view", "--follow-external")
    assert np.array_equal(np.load(tmp_path / "view.npy"), np.arange(8))


def test_a_view_of_itself(tmp_path):
    source, out = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(source, "w") as file:
        layout = h5py.VirtualLayout((8,), "i4")
        layout[:] = h5py.VirtualSource(".", "view", shape=(8,))
        file.create_virtual_dataset("view", layout)
        file["x"] = np.arange(4, dtype="f4")
    for words in (["info", source], ["repack", source, "-o", out], ["recover", source]):
        bounded(*words)
    bounded("verify", source, out)


# --- The fuzzer's seeds (tests/fuzz), some of which have revealed errors

@pytest.mark.full
def test_what_the_fuzzer_starts_from(tmp_path):
    files = sorted((ROOT / "tests/fuzz").glob("*-input-file/*"))
    assert len(files) >= 50
    for path in files:
        ends = (0, 2) if path.parent.name.startswith("corpus") else (0, 1, 2, 3)
        bounded("info", path, codes=ends)
        bounded("verify", path, path, codes=ends)
        bounded("repack", path, "-o", tmp_path / "out.h5", "--force", codes=ends)


# --- Attributes

def test_an_attribute_of_more_values_than_memory_has_is_not_read(tmp_path):
    path = tmp_path / "attribute.h5"
    with h5py.File(path, "w", libver="earliest") as file:
        file["u"] = np.arange(8.0)
        file["u"].attrs["evil"] = np.arange(1234.0)
    whole = path.read_bytes()
    stated = struct.pack("<Q", 1234)
    assert stated in whole
    # The size in bytes wraps to 8, in HDF5's arithmetic, too.
    path.write_bytes(whole.replace(stated, struct.pack("<Q", 2**61 + 1)))
    copy = shutil.copy(path, tmp_path / "copy.h5")
    assert "cannot be read" in bounded("verify", path, copy, codes=(1, 2)).stdout
