"""tailrace concat with bad inputs, a full disk or a kill.

All problems are reported at once, and the folder has a complete output or none."""

import contextlib
import fcntl
import hashlib
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import time

import h5py
import numpy as np
import pytest

import concat_cases
from cli_tools import (ENVIRONMENT, command, launcher, numbers, program, small_disk_at,
                       tailrace)
from concat_reference import check

pytestmark = pytest.mark.sample(2)


def refusal(*arguments, code=2, ranks=1, **keywords):
    """Run a command that is refused; it must report the reason once, on any number of ranks.
    @returns the text."""
    done = tailrace("concat", *arguments, code=code, ranks=ranks, **keywords)
    assert done.stdout == ""
    assert done.stderr.count("tailrace concat: ") == 1, done.stderr
    return done.stderr[done.stderr.index("tailrace concat: "):]


def nothing_left(folder, name="out.h5"):
    return not [path for path in pathlib.Path(folder).iterdir() if path.name.startswith(name)]


def digest(path):
    return hashlib.sha256(path.read_bytes()).digest()


@pytest.fixture
def good(tmp_path):
    """Make six similar files, in a folder of their own."""
    (tmp_path / "in").mkdir()
    return concat_cases.spills(tmp_path / "in", 6)


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Make four files of some MB, for all tests that only read them."""
    return concat_cases.large(tmp_path_factory.mktemp("large"), 4)


USAGE = [
    (["-o", "OUT"], "no inputs"),
    (["IN", "-o", "OUT", "-i", "LIST"], "FILES and --list"),
    (["IN"], "--output is required"),
    (["IN", "IN", "-o", "OUT"], "more than once"),
    (["-i", "LIST", "-o", "OUT"], "list.txt: No such file"),
    (["-i", "IN", "-o", "OUT"], "binary data"),
    (["-i", "FOLDER", "-o", "OUT"], "is a folder"),
    (["IN", "-o", "NOWHERE"], "does not exist"),
    (["IN", "-o", "FOLDER"], "is a folder"),
    (["IN", "-o", "IN", "--force"], "is one of the inputs"),
    (["IN", "-o", "OUT", "-a"], "--append needs an existing output"),
    (["IN", "-o", "OUT", "-a", "--force"], "--append"),
    (["IN", "-o", "OUT", "-a", "--resume"], "cannot be combined with --resume"),
    (["IN", "-o", "OUT", "--chunk", "12x3"], "only the first extent can be given"),
    (["IN", "-o", "OUT", "--chunk", "0x"], "--chunk 0x"),
    (["IN", "-o", "OUT", "--chunk", "much"], "--chunk much"),
    (["IN", "-o", "OUT", "--codec", "no_such_codec"], "no_such_codec"),
    (["IN", "-o", "OUT", "--codec", "auto"], "--codec auto"),
    (["IN", "-o", "OUT", "--codec", "zstd", "-z", "3"], "zstd,level=N"),
    (["IN", "-o", "OUT", "-z", "12"], "0 to 9"),
    (["IN", "-o", "OUT", "-c", "--dedup"], "--contiguous"),
    (["IN", "-o", "OUT", "-c", "-m", "1MiB"], "--plain-below"),
    (["IN", "-o", "OUT", "-m", "lots"], "--plain-below"),
    (["IN", "-o", "OUT", "--layout", "sparse"], "option layout=sparse: not served by concat"),
    (["IN", "-o", "OUT", "-b", "10"], "--memory"),
    (["IN", "-o", "OUT", "-k", "run,,evt"], "--key"),
    (["IN", "-o", "OUT", "-k", "run,no_such"], "no_such"),
    (["IN", "-o", "OUT", "--sort=/spill/none"], "/spill/none"),
    (["IN", "-o", "OUT", "--on-error", "cry"], "stop or skip"),
    (["IN", "-o", "OUT", "--commit-every", "-1"], "--commit-every"),
    (["IN", "-o", "OUT", "--json", "NOWHERE"], "nowhere"),
]


@pytest.mark.parametrize("words,text", USAGE, ids=[" ".join(words) for words, _ in USAGE])
def test_refused(tmp_path, good, words, text):
    names = {"IN": good[0], "OUT": tmp_path / "out.h5", "LIST": tmp_path / "list.txt",
             "NOWHERE": tmp_path / "nowhere" / "out.h5", "FOLDER": tmp_path / "in"}
    ranks = 1 + len(text) % 2
    assert text in refusal(*[names.get(word, word) for word in words], ranks=ranks)
    assert nothing_left(tmp_path)


def spoil(files):
    """Make five of six files unusable as inputs; return (file, words of the error) for each."""
    with h5py.File(files[1], "r+") as file:
        del file["rec/tracks/value"]
        file["surplus"] = np.arange(3)
    with h5py.File(files[2], "r+") as file:
        del file["spill/value"], file["spill/evt"]
        file.create_dataset("spill/value", (3, 1), "f8")
        file.create_dataset("spill/evt", (3, 2), "u4")
    files[3].write_bytes(files[3].read_bytes()[:2000])
    files[4].write_text("not a file of numbers")
    files[5].unlink()
    return [(files[1], "/rec/tracks/value"), (files[1], "/surplus"), (files[2], "/spill/value"),
            (files[2], "/spill/evt"), (files[3], ""), (files[4], ""), (files[5], "")]


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_all_conflicts_at_once(ranks, good, tmp_path):
    problems = spoil(good)
    text = refusal("-o", tmp_path / "out.h5", *good, ranks=ranks)
    # A file's first problem is on the line of its name, others are below.
    of_file, path = {}, None
    for line in text.splitlines()[1:]:
        named = [path for path in good if path.name in line]
        of_file.setdefault(named[0] if named else path, []).append(line)
        path = named[0] if named else path
    for path, words in problems:
        assert any(words in line for line in of_file[path]), text
    assert good[0] not in of_file
    # Both sides of a conflict are named.
    line = next(line for line in text.splitlines() if "/spill/value" in line)
    assert "f64" in line and "f32" in line
    assert nothing_left(tmp_path)


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_skip_leaves_out_exactly_the_bad_ones(ranks, good, tmp_path):
    spoil(good)
    shutil.copy(good[0], tmp_path / "more.h5")
    files = [*good, tmp_path / "more.h5"]
    out = tmp_path / "out.h5"
    report = numbers("concat", "-o", out, "--on-error", "skip", *files, ranks=ranks)
    assert report["n_files"] == 2
    assert len(report["skipped"]) == 5
    for path, line in zip(good[1:], report["skipped"]):
        assert path.name in line
    check(out, [files[0], files[-1]])


def test_skipped_files_are_told_even_if_quiet(good, tmp_path):
    good[2].write_text("nothing")
    done = tailrace("concat", "-o", tmp_path / "out.h5", "-q", "--on-error", "skip", *good)
    assert done.stdout == ""
    assert done.stderr.count("left out: ") == 1 and good[2].name in done.stderr


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_bad_first_file(ranks, good, tmp_path):
    """The first readable file defines the schema."""
    good[0].write_text("nothing")
    report = numbers("concat", "-o", tmp_path / "out.h5", "--on-error", "skip", *good, ranks=ranks)
    assert report["n_files"] == 5
    check(tmp_path / "out.h5", good[1:])


def test_nothing_but_bad_files(good, tmp_path):
    for path in good:
        path.write_text("nothing")
    text = refusal("-o", tmp_path / "out.h5", "--on-error", "skip", *good, ranks=2)
    assert all(path.name in text for path in good)
    assert nothing_left(tmp_path)


def test_sort_names_all_bad_files(good, tmp_path):
    for path in good[1:4]:
        with h5py.File(path, "r+") as file:
            del file["spill/subrun"]
    text = refusal("-o", tmp_path / "out.h5", "--sort", *good, ranks=2)
    assert [path.name in text for path in good] == [False, True, True, True, False, False]
    # If skipped, they are last in the order, and concat omits them.
    report = numbers("concat", "-o", tmp_path / "out.h5", "--sort", "--on-error", "skip",
                     *reversed(good), ranks=2)
    check(tmp_path / "out.h5", [good[0], good[4], good[5]])
    assert len(report["skipped"]) == 3


def damaged(folder):
    """Make two files whose chunks do not fit each other; a chunk of the second is damaged."""
    files = []
    for f in range(2):
        files.append(folder / f"{f}.h5")
        with h5py.File(files[-1], "w") as file:
            file.create_dataset("g/u", data=np.random.default_rng(f).integers(0, 99, 5000),
                                maxshape=(None,), chunks=(300,), compression="gzip")
            place = file["g/u"].id.get_chunk_info(7)
    with open(files[1], "r+b") as file:
        file.seek(place.byte_offset + 10)
        file.write(b"\x55" * 64)
    return files


@pytest.mark.parametrize("ranks", [1, 3])
def test_damage_inside_a_chunk(ranks, tmp_path):
    files = damaged(tmp_path)
    text = refusal("-o", tmp_path / "out.h5", *files, ranks=ranks)
    assert "/g/u" in text and "1.h5" in text
    assert nothing_left(tmp_path)


def test_existing_output(good, tmp_path):
    out = tmp_path / "out.h5"
    out.write_text("precious")
    assert "--force" in refusal("-o", out, *good, ranks=2)
    bad = damaged(tmp_path)
    refusal("-o", out, "--force", *bad)
    assert out.read_text() == "precious"
    numbers("concat", "-o", out, "--force", *good, ranks=2)
    check(out, good)


@pytest.mark.parametrize("ranks", [1, 2])
def test_failed_append_changes_nothing(ranks, tmp_path):
    files = damaged(tmp_path)
    out = tmp_path / "out.h5"
    numbers("concat", "-o", out, files[0])
    before = digest(out)
    assert "/g/u" in refusal("-o", out, "-a", files[1], ranks=ranks)
    assert digest(out) == before
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["g/u"] = np.arange(3.0)
    text = refusal("-o", out, "-a", tmp_path / "other.h5", ranks=ranks)
    assert all(word in text for word in ("out.h5", "/g/u", "f64", "i64"))
    assert digest(out) == before
    numbers("concat", "-o", out, "-a", files[0].rename(tmp_path / "again.h5"))
    check(out, [tmp_path / "again.h5"] * 2)


def test_append_to_what_is_no_file_of_ours(good, tmp_path):
    """Any HDF5 file of the same schema can be appended to; anything else is refused."""
    out = tmp_path / "out.h5"
    shutil.copy(good[0], out)
    numbers("concat", "-o", out, "-a", *good[1:3])
    check(out, good[:3])
    out.write_text("nothing")
    assert "out.h5" in refusal("-o", out, "-a", good[1])
    assert out.read_text() == "nothing"


@pytest.mark.parametrize("ranks", [1, 2])
def test_missing_plugin(ranks, tmp_path):
    """Copied chunks need no plug-in. Encoded ones do, and the error names it."""
    files = []
    for f in range(2):
        files.append(tmp_path / f"{f}.h5")
        with h5py.File(files[-1], "w") as file:
            # Only h5py has this filter.
            file.create_dataset("u", data=np.arange(4096 * 16) % (9 + f), maxshape=(None,),
                                chunks=(4096 * 8,), compression="lzf", fillvalue=7)
    report = numbers("concat", "-o", tmp_path / "out.h5", *files, ranks=ranks)
    assert report["n_copied"] == report["n_chunks"] == 4
    check(tmp_path / "out.h5", files)
    # HDF5 itself would need the filter to extend a dataset with such a fill value.
    report = numbers("concat", "-o", tmp_path / "out.h5", "-a", files[0], ranks=ranks)
    assert report["n_copied"] == report["n_chunks"] == 2
    check(tmp_path / "out.h5", [*files, files[0]])
    (tmp_path / "out.h5").unlink()
    text = refusal("-o", tmp_path / "out.h5", "--codec", "deflate", *files, ranks=ranks)
    assert "32000" in text and "/u" in text and any(f"{file}: " in text for file in files)
    assert nothing_left(tmp_path)


@pytest.mark.parametrize("bytes_allowed", [1, 3000, 100_000, 1_000_000])
def test_full_disk(bytes_allowed, tmp_path, large):
    """A limit on the file's length simulates a full disk."""
    files = large[:2]

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_allowed, bytes_allowed))

    out = tmp_path / "out.h5"
    done = subprocess.run(command("concat", "-o", out, *files), preexec_fn=limit, timeout=600,
                          capture_output=True, text=True, env=ENVIRONMENT)
    assert done.returncode == 3, done.stderr
    assert done.stderr.count("tailrace concat: ") == 1 and "out.h5" in done.stderr
    assert not out.exists()
    numbers("concat", "-o", out, *files, "--force")
    check(out, files)


@pytest.mark.full
@pytest.mark.parametrize("ranks", [1, 2])
def test_no_memory_is_said_of_something(ranks, tmp_path, large):
    """If any of our allocations fails, one line names a file or dataset."""
    recorder = pathlib.Path(program()).parents[1] / "lib" / "libcampaign_recorder.so"
    if not recorder.exists():
        pytest.skip(f"{recorder} is not built")
    files = large[:2]
    (tmp_path / "out").mkdir()
    n_refused = 0
    for number in range(1, 60, 4):
        words = ["env", f"LD_PRELOAD={recorder}", f"CAMPAIGN_LOG={tmp_path / 'log'}",
                 f"CAMPAIGN_FOLDER={tmp_path / 'out'}", "CAMPAIGN_MEMORY=1",
                 f"CAMPAIGN_FAULT=memory:{number}:12:0:0",
                 program(), "concat", "--force", "-o", tmp_path / "out" / "out.h5", *files]
        if ranks > 1:
            words = [launcher(), "-n", str(ranks), *words]
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=600,
                              env=ENVIRONMENT)
        if done.returncode == 0:
            continue
        n_refused += 1
        said = [line for line in done.stderr.splitlines() if line.startswith("tailrace")]
        assert len(said) == 1, done.stderr
        assert '"/' in done.stderr or ".h5" in done.stderr
        assert "bad_alloc" not in done.stderr
    assert n_refused > 0


@pytest.fixture
def small_disk(tmp_path):
    with small_disk_at(tmp_path / "disk", "600k") as folder:
        yield folder


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_small_disk(ranks, small_disk, large):
    files = large[:2]
    text = refusal("-o", small_disk / "out.h5", *files, ranks=ranks, code=3)
    assert "space" in text.lower()
    assert not (small_disk / "out.h5").exists()


def slowed(folder, bytes_per_s):
    """Return an environment in which writes below `folder` are slow."""
    library = pathlib.Path(program()).parent.parent / "lib" / "libwritelimit.so"
    if not library.exists():
        pytest.skip(f"{library} is not built")
    return {**ENVIRONMENT, "LD_PRELOAD": str(library), "TAILRACE_WRITE_LIMIT": str(bytes_per_s),
            "TAILRACE_WRITE_LIMIT_FOLDER": str(folder)}


def running_with(output):
    """Return the ids of processes that concatenate into this file."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = entry.read_bytes().split(b"\0")
            dead = b" Z " in (entry.parent / "stat").read_bytes()
            if str(output).encode() in words and b"concat" in words and not dead:
                found.append(int(entry.parent.name))
    return found


def run_and_kill(words, environment, alive_s, ranks=1):
    process = subprocess.Popen(command("concat", *words, ranks=ranks), env=environment,
                               start_new_session=True, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL)
    time.sleep(alive_s)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    # The launcher's ranks are not our children, and end later.
    end = time.monotonic() + 30
    while rest := running_with(words[1]):
        assert time.monotonic() < end, rest
        for pid in rest:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.05)
    # A process without a command line may still be closing its files.
    for left in pathlib.Path(words[1]).parent.iterdir():
        with open(left, "rb") as file:
            while True:
                with contextlib.suppress(BlockingIOError):
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                assert time.monotonic() < end, left
                time.sleep(0.05)


@pytest.mark.parametrize("ranks", [1, 2])
def test_resume_after_kill(ranks, tmp_path, large):
    """Runs are killed at random moments and resumed: the file is that of an undisturbed run."""
    files = large
    (tmp_path / "out").mkdir()
    environment = slowed(tmp_path / "out", 4_000_000)
    out = tmp_path / "out" / "out.h5"
    words = ["-o", out, "-b", "2MiB", "--chunk", "64KiB", "--commit-every", "0", *files]
    moments = random.Random(ranks)
    for round_ in range(4):
        again = ["--resume"] if round_ else []
        run_and_kill([*words, *again], environment, moments.uniform(0.3, 1.2), ranks)
        if out.exists():
            break
    report = numbers("concat", *words, "--resume", *(["--force"] if out.exists() else []),
                     ranks=ranks)
    check(out, files)
    assert report["n_files"] == 4
    assert not list(out.parent.glob("out.h5?*"))
    # Uncommitted bytes are truncated. Only the remains of a killed commit may be unused space.
    whole = numbers("concat", *words, "--force", ranks=ranks)
    with h5py.File(out) as file:
        sizes = [0]
        file.visititems(lambda _, item: sizes.append(item.id.get_storage_size())
                        if isinstance(item, h5py.Dataset) else None)
    assert report["output_bytes"] <= 1.01 * whole["output_bytes"] + 4 * max(sizes)


def test_resume_does_not_begin_anew(tmp_path, large):
    """Committed chunks are not written again."""
    files = large
    (tmp_path / "out").mkdir()
    out = tmp_path / "out" / "out.h5"
    words = ["-o", out, "-b", "2MiB", "--chunk", "64KiB", "--commit-every", "0", *files]
    whole = numbers("concat", *words)
    assert whole["n_commits"] > 2
    out.unlink()
    run_and_kill(words, slowed(out.parent, 4_000_000), 2.0)
    assert not out.exists() and list(out.parent.glob("out.h5*"))
    rest = numbers("concat", *words, "--resume")
    assert rest["n_rounds"] < whole["n_rounds"]
    check(out, files)


def test_resume_of_something_else(tmp_path, large):
    """Remains of a different request are not continued."""
    files = large
    (tmp_path / "out").mkdir()
    out = tmp_path / "out" / "out.h5"
    words = ["-o", out, "-b", "2MiB", "--chunk", "64KiB", "--commit-every", "0"]
    run_and_kill([*words, *files], slowed(out.parent, 4_000_000), 2.0)
    assert list(out.parent.glob("out.h5*"))
    done = subprocess.run(command("concat", *words, "--resume", *files[:2]), env=ENVIRONMENT,
                          capture_output=True, text=True, timeout=600)
    if done.returncode == 0:
        check(out, files[:2])
    else:
        assert done.returncode == 2 and "--resume" in done.stderr, done.stderr
        assert not out.exists()


def test_resume_without_anything_to_resume(good, tmp_path):
    numbers("concat", "-o", tmp_path / "out.h5", "--resume", *good, ranks=2)
    check(tmp_path / "out.h5", good)


def test_resume_of_a_run_that_was_killed_before_its_first_commit(good, tmp_path):
    """A partial file without a header is replaced, not refused."""
    (tmp_path / "out.h5.partial").write_bytes(bytes(4096) + b"chunks" * 1000)
    report = numbers("concat", "-o", tmp_path / "out.h5", "--resume", *good, ranks=2)
    check(tmp_path / "out.h5", good)
    assert "nothing to resume" in report["remarks"][0]
    assert not (tmp_path / "out.h5.partial").exists()


@pytest.mark.parametrize("ranks", [1, 2])
def test_kill_leaves_the_old_file(ranks, tmp_path, large):
    files = large
    (tmp_path / "out").mkdir()
    out = tmp_path / "out" / "out.h5"
    numbers("concat", "-o", out, *files[:2])
    before = digest(out)
    run_and_kill(["-o", out, "--force", *files], slowed(out.parent, 3_000_000), 0.8, ranks)
    assert digest(out) == before
    # After a killed append, recover restores the old file or completes the new one.
    run_and_kill(["-o", out, "-a", *files[2:]], slowed(out.parent, 3_000_000), 0.8, ranks)
    for leftover in out.parent.glob("out.h5?*"):
        leftover.unlink()
    tailrace("recover", "--apply", out)
    check(out, files[:2])
    numbers("concat", "-o", out, "-a", *files[2:], ranks=ranks)
    check(out, files)


def test_help():
    text = tailrace("concat", "--help-all").stdout
    assert text.index("Examples:") < text.index("Usage:")
    assert max(map(len, text.splitlines())) <= 100
    for option in ("--list", "--append", "--resume", "--key", "--level", "--codec", "--chunk",
                   "--plain-below", "--contiguous", "--dedup", "--layout", "--memory", "--threads",
                   "--on-error", "--sort", "--force", "--fsync", "--journal", "--json", "--quiet",
                   "--commit-every"):
        assert option in text
