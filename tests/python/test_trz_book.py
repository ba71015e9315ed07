"""Shared books from end to end: trained from a step, used for the next ones, read by stock HDF5.

`tailrace-lab train-book`, tailrace.train_book (Python) and trz_trainer_book (C, which Python calls)
train books. repack, h5repack's arguments and h5py store them in files.
"""

import h5py
import numpy as np
import pytest

from cli_tools import own_lines, tailrace
from test_trz_filter import filter_of, python, stored_chunks

EDGE, CHUNK, BOUND = 48, "16x48x48", 1e-3
BOOK_FLAG = 1 << 18


def step(t):
    """Return a step of an evolving field, with noise so that its codes are not trivial."""
    x = np.linspace(0, 20, EDGE)
    noise = np.random.default_rng(t).normal(0, 1e-2, (EDGE, EDGE, EDGE))
    return (np.sin(x + 0.1 * t)[:, None, None] * np.cos(x)[:, None] + np.sin(2 * x)
            + noise).astype("f4")


@pytest.fixture
def steps(tmp_path):
    """Write two steps with a field, a rougher one, and integers."""
    paths = []
    for t in range(2):
        paths.append(tmp_path / f"step{t}.h5")
        with h5py.File(paths[-1], "w") as file:
            file["u"] = step(t)
            file["rough"] = step(t) + np.random.default_rng(t + 9).normal(
                0, 0.1, (EDGE, EDGE, EDGE)).astype("f4")
            file["counts"] = np.arange(20000, dtype="i4")
    return paths


@pytest.fixture
def book(steps, tmp_path):
    path = tmp_path / "u.book"
    said = tailrace("train-book", steps[0], "--only", "u", "-b", f"abs={BOUND}", "--chunk", CHUNK,
                    "-o", path).stdout
    assert f"{path.stat().st_size} bytes" in said and "3 chunks" in said
    assert path.read_bytes()[:4] == b"TRZB" and path.stat().st_size < 5000
    return path


def repack(source, target, *words, **keywords):
    return tailrace("repack", source, "-o", target, "--force", "--codec", "trz", "--bound",
                    f"abs={BOUND}", "--chunk", CHUNK, *words, **keywords)


def words_of(path, name="u"):
    return filter_of(path, name)[2]


@pytest.mark.parametrize("ranks", [1, 3])
def test_repack_with_a_book_for_one_field(ranks, steps, book, tmp_path):
    with_book, without = tmp_path / "with.h5", tmp_path / "without.h5"
    repack(steps[1], with_book, "--field", f"u:book={book}", ranks=ranks)
    repack(steps[1], without)
    assert words_of(with_book)[0] & BOOK_FLAG and not words_of(with_book, "rough")[0] & BOOK_FLAG
    assert stored_chunks(with_book, "rough") == stored_chunks(without, "rough")
    sizes = [sum(len(chunk) for _, chunk in stored_chunks(path).values())
             for path in (with_book, without)]
    assert sizes[0] != sizes[1] and abs(sizes[0] - sizes[1]) < 0.05 * sizes[1]
    tailrace("verify", steps[1], with_book)
    # Values are equal, and reading them needs only the plug-in.
    np.testing.assert_array_equal(values_by_plugin(with_book, tmp_path),
                                  values_by_plugin(without, tmp_path))


def values_by_plugin(path, tmp_path):
    """Read values with stock h5py, in a process that has only the plug-in's folder."""
    python(f"""
        import h5py, numpy as np
        with h5py.File({str(path)!r}) as file:
            np.save({str(tmp_path / "read.npy")!r}, file["u"][...])
    """)
    return np.load(tmp_path / "read.npy")


def test_a_book_for_all_fields_spares_the_exact_ones(steps, book, tmp_path):
    target = tmp_path / "out.h5"
    tailrace("repack", steps[1], "-o", target, "--codec", f"trz,book={book}", "--bound",
             f"abs={BOUND}", "--lossless-codec", f"trz,book={book}", "--chunk", CHUNK)
    assert words_of(target)[0] & BOOK_FLAG and words_of(target, "rough")[0] & BOOK_FLAG
    assert not words_of(target, "counts")[0] & BOOK_FLAG
    tailrace("verify", steps[1], target)
    tailrace("repack", steps[1], "-o", target, "--force", "--codec", f"trz,book={book},preset=fast",
             "--bound", f"abs={BOUND}")
    assert not words_of(target)[0] & BOOK_FLAG


def test_filter_args_hand_the_book_to_h5py(steps, book, tmp_path):
    ours, theirs = tmp_path / "ours.h5", tmp_path / "theirs.h5"
    keywords = tailrace("filter-args", "-c", f"trz,book={book}", "-b", f"abs={BOUND}", "--format",
                        "h5py").stdout.strip()
    write = """
        import h5py{package}
        with h5py.File({source!r}) as source, h5py.File({target!r}, "w") as file:
            file.create_dataset("u", data=source["u"][...], chunks=(16, 48, 48), {keywords})
    """
    python(write.format(package="", source=str(steps[1]), target=str(theirs), keywords=keywords))
    repack(steps[1], ours, "--only", "u", "--field", f"u:book={book}")
    assert words_of(ours) == words_of(theirs)
    assert stored_chunks(ours) == stored_chunks(theirs)
    # The package makes the same client data from the same bytes.
    keywords = f"**tailrace.Trz(abs={BOUND}, book=open({str(book)!r}, 'rb').read())"
    python(write.format(package=", tailrace", source=str(steps[1]), target=str(theirs),
                        keywords=keywords), package=True)
    assert words_of(ours) == words_of(theirs)


def test_the_package_trains_the_same_book(steps, book):
    """Train from chunks, or from arrays that serve as chunks."""
    python(f"""
        import h5py, tailrace
        with h5py.File({str(steps[0])!r}) as file:
            u = file["u"][...]
        expected = open({str(book)!r}, "rb").read()
        pieces = [u[i:i + 16] for i in range(0, 48, 16)]
        assert tailrace.train_book(pieces, abs={BOUND}) == expected
        assert tailrace.train_book([u], abs={BOUND}, chunks=(16, 48, 48)) == expected
        cut = tailrace.train_book([u], abs={BOUND}, chunks=(20, 20, 20))
        encoded = tailrace.encode(u, abs={BOUND}, book=cut)
        assert abs(tailrace.decode(encoded, u.shape, book=cut) - u).max() <= {BOUND}
        for wrong in (dict(chunks=(16, 48)), dict(chunks=(0, 1, 1)), dict(abs=0.0),
                      dict(preset="fastest")):
            try:
                tailrace.train_book([u], **dict(dict(abs={BOUND}), **wrong))
            except tailrace.TrzError:
                continue
            raise SystemExit(f"took {{wrong}}")
    """, package=True)


def test_without_its_book_a_chunk_says_so(book):
    python(f"""
        import numpy as np, tailrace
        x = np.linspace(0, 20, 48)
        u = (np.sin(x)[:, None, None] * np.cos(x)[:, None] + np.sin(2 * x)
             + np.random.default_rng(3).normal(0, 1e-2, (48, 48, 48))).astype("f4")
        book = open({str(book)!r}, "rb").read()
        other = tailrace.train_book([u], abs=50 * {BOUND})
        encoded = tailrace.encode(u, abs={BOUND}, book=book)
        for wrong in (None, other):
            try:
                tailrace.decode(encoded, u.shape, book=wrong)
            except tailrace.TrzError as error:
                assert "shared book" in str(error), error
            else:
                raise SystemExit("decoded without its book")
    """, package=True)


@pytest.mark.parametrize("ranks", [1, 3])
def test_files_that_are_no_books(ranks, steps, book, tmp_path):
    target, bad = tmp_path / "out.h5", tmp_path / "bad.book"

    def why(content):
        if content is not None:
            bad.write_bytes(content)
        done = repack(steps[1], target, "--field", f"u:book={bad}", ranks=ranks, code=2)
        assert not target.exists()
        line, = own_lines(done.stderr)
        assert 'field "/u"' in line and str(bad) in line
        return line

    assert "No such file" in why(None)
    assert "TRZB" in why(b"no book at all, only text")
    assert "TRZB" in why(b"")
    assert "code" in why(book.read_bytes()[:-5])
    assert "too many" in why(book.read_bytes() + b"\0")
    assert "16384" in why(book.read_bytes() + bytes(70000))
    lines = own_lines(tailrace("filter-args", "-c", f"trz,book={bad}", "-b", "abs=1",
                               code=2).stderr)
    assert "16384" in lines[0]
    # Codecs without books refuse the setting.
    done = tailrace("repack", steps[1], "-o", target, "--codec", f"deflate,book={book}", code=2)
    assert 'unknown setting "book"' in done.stderr


def test_what_cannot_be_trained(steps, book, tmp_path):
    new = tmp_path / "new.book"

    def why(*words, source=steps[0], code=2):
        line, = own_lines(tailrace("train-book", source, "-o", new, *words, code=code).stderr)
        assert not new.exists()
        return line

    assert "matches no field" in why("-b", "abs=1", "--only", "v")
    assert "no field to train on" in why("-b", "abs=1", "--only", "counts")
    assert "pw_rel" in why("-b", "pw_rel=1e-3", "--only", "u")
    assert "sz3" in why("-b", "abs=1", "-c", "sz3", "--only", "u")
    assert "nothing to train on" in why("-b", "abs=1e-3", "-c", "trz,preset=fast", "--only", "u")
    assert "unknown setting" in why("-b", "abs=1e-3", "-c", "trz,level=1", "--only", "u")
    assert "no.h5" in why("-b", "abs=1", source=tmp_path / "no.h5")
    before = book.read_bytes()
    words = ("train-book", steps[1], "-b", f"rel={BOUND}", "-o", book)
    assert "--force" in tailrace(*words, code=2).stderr and book.read_bytes() == before
    assert "/u, /rough" in tailrace(*words, "--force", ranks=2).stdout.replace("/rough, /u",
                                                                               "/u, /rough")
    assert book.read_bytes() != before
