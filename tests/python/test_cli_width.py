"""Output of the command line fits the terminal, and is complete without one.

Each verb runs on a pseudo-terminal of 80 and of 200 columns. No line is longer, and no word of a
sentence is broken: a full line ends where a word ends. A pipe gets all columns of all tables, and
complete names.
"""

import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import shutil
import struct
import subprocess
import termios

import h5py
import numpy as np
import pytest
from cli_tools import ENVIRONMENT, command, launcher, program, smooth, tailrace

GROUP = "simulation/output/native_fields"
NAME = "baryon_density_of_the_gas_phase_in_code_units"
VERBS = ["repack", "concat", "export", "verify", "info", "recover", "options", "filter-args",
         "train-book", "profile", "schedule", "simulate"]
WITHOUT_WIDTH = {**{name: value for name, value in ENVIRONMENT.items() if name != "COLUMNS"},
                 "NO_COLOR": "1"}
BENCH = pathlib.Path(os.environ.get("TAILRACE", "")).parent / "tailrace-bench"


def on_terminal(columns, *words, code=0, environment=None):
    """Return the lines that a program prints on a terminal of this width."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    with subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=slave, stderr=slave,
                          env=environment or WITHOUT_WIDTH) as process:
        os.close(slave)
        said = b""
        with contextlib.suppress(OSError):  # EIO: the program has ended.
            while part := os.read(master, 65536):
                said += part
        os.close(master)
        assert process.wait(timeout=600) == code, said.decode()
    # The progress line overwrites itself, and is erased at the end.
    text = re.sub(r"\r\x1b\[2K[^\n\r]*(?=\r\x1b\[2K)", "", said.decode())
    return text.replace("\r\x1b[2K", "").replace("\r\n", "\n").splitlines()


def longest(lines):
    return max(map(len, lines))


def prose_is_whole(narrow, wide):
    """Return True if both texts have the same words, so that none was broken."""
    return re.findall(r"\S+", " ".join(narrow)) == re.findall(r"\S+", " ".join(wide))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("width")
    with h5py.File(folder / "in.h5", "w") as file:
        for i in range(3):
            file[f"{GROUP}/{NAME}_{i}"] = smooth((24, 64, 64), i)
        file["particle/ids"] = np.arange(9000, dtype="i8")
    tailrace("repack", folder / "in.h5", "-o", folder / "out.h5", "--bound", "rel=1e-3",
             "--chunk", "64KiB")
    with h5py.File(folder / "bad.h5", "w") as file:
        for i in range(3):
            values = smooth((24, 64, 64), i)
            values[3, 40, 50:53] += 10
            file[f"{GROUP}/{NAME}_{i}"] = values
    shutil.copy(folder / "in.h5", folder / "in_2.h5")
    jobs = [{"name": f"density #{i}", "encode_s": 0.03, "write_s": 0.02} for i in range(6)]
    (folder / "plan.json").write_text(json.dumps(
        {"iteration_s": 1, "jobs": jobs, "obstacles": {"main": [[0.1, 0.3]], "io": [[0, 0.05]]}}))
    return folder


def runs(folder, columns):
    """Return (words, exit code) of every verb that prints a table or a sentence."""
    new = folder / f"new_{columns}"
    new.mkdir(exist_ok=True)
    source, target = folder / "in.h5", folder / "out.h5"
    return {
        "version": (["--version"], 0),
        "repack": (["repack", source, "-o", new / "a.h5", "--bound", "rel=1e-3"], 0),
        "repack --why": (["repack", source, "-o", new / "b.h5", "--bound", "rel=1e-3", "--why"], 0),
        "repack --why=measured": (["repack", source, "-o", new / "c.h5", "--bound", "rel=1e-3",
                                   "--why=measured", "--layout", "predictive"], 0),
        "info": (["info", target], 0),
        "info --chunks": (["info", target, "--chunks", f"/{GROUP}/{NAME}_0"], 0),
        "verify": (["verify", source, target], 0),
        "verify, damage": (["verify", source, folder / "bad.h5", "--bound", "abs=0.5"], 1),
        "concat": (["concat", "-o", new / "d.h5", source, folder / "in_2.h5"], 0),
        "verify --concat": (["verify", "--concat", new / "d.h5", source, folder / "in_2.h5"], 0),
        "recover": (["recover", target], 0),
        "options": (["options"], 0),
        "option": (["options", "layout"], 0),
        "train-book": (["train-book", source, "-o", new / "e.book", "--bound", "rel=1e-3"], 0),
        "profile": (["profile", "--show", "built-in"], 0),
        "schedule": (["schedule", folder / "plan.json"], 0),
        "simulate": (["simulate", "--ranks", "8", "--iterations", "2"], 0),
        "simulate --figure": (["simulate", "--figure", "8", "--ranks", "8",
                               "--iterations", "1"], 0),
        "refusal": (["repack", source, "-o", new / "a.h5", "--bound", "rel=1e-3", "--chunk",
                     "rather large"], 2),
    }


@pytest.mark.parametrize("columns", [80, 200])
def test_every_verb_fits(files, columns, tmp_path):
    too_long = {}
    for name, (words, code) in runs(files, columns).items():
        lines = on_terminal(columns, *command(*words), code=code)
        assert lines, name
        # A long path in a sentence must not be broken, so it has a line of its own.
        folder = r" *\S*/\S*( {2}\(does not exist\))?"
        lines = [line for line in lines if not re.fullmatch(folder, line)]
        if longest(lines) > columns:
            too_long[name] = max(lines, key=len)
    assert not too_long


@pytest.mark.parametrize("verb", VERBS + [""])
def test_help_fits_and_breaks_no_word(verb):
    words = command(*([verb] if verb else []), "--help")
    narrow, wide = on_terminal(80, *words), on_terminal(200, *words)
    assert longest(narrow) <= 80
    assert 80 < longest(wide) <= 100 or verb in ("", "options", "recover")
    without_folds = [[line.removesuffix(" \\") for line in lines] for lines in (narrow, wide)]
    assert prose_is_whole(*without_folds)
    # A pipe of unknown width gets the output of a terminal of 80 columns.
    said = subprocess.run(words, capture_output=True, text=True, env=WITHOUT_WIDTH, check=True)
    assert said.stdout.splitlines() == narrow


@pytest.mark.full
@pytest.mark.parametrize("part", [[], ["codecs"], ["choice"], ["concat-hdf5"]])
def test_help_of_bench_fits(part):
    if not BENCH.exists():
        pytest.skip("no tailrace-bench")
    words = command("bench", *part, "--help")
    narrow, wide = on_terminal(80, *words), on_terminal(200, *words)
    assert longest(narrow) <= 80 and longest(wide) <= 100
    assert prose_is_whole(*[[line.removesuffix(" \\") for line in lines]
                            for lines in (narrow, wide)])


@pytest.mark.full
def test_tables_of_bench_fit(tmp_path):
    if not BENCH.exists():
        pytest.skip("no tailrace-bench")
    for words in (["bench", "--cells", "16x16x16", "--repeat", "1", "--methods",
                   "hdf5-collective-none,tailrace-predictive-trz,ideal-trz", "--bandwidth",
                   "100MB/s,unlimited", "--dir", tmp_path],
                  ["bench", "--index", "1000", "--repeat", "1"]):
        assert longest(on_terminal(80, *command(*words))) <= 80


def test_a_terminal_says_what_it_has_no_room_for(files):
    narrow = on_terminal(80, *command("info", files / "out.h5"))
    assert any(line.startswith("(no room for: ") and "absolute bound" in line for line in narrow)
    wide = on_terminal(200, *command("info", files / "out.h5"))
    assert not any("no room for" in line for line in wide)
    for heading in ("type", "filters", "stored", "ratio"):
        assert any(re.search(rf"\b{heading}\b", line) for line in wide)


def test_a_pipe_gets_everything(files):
    for columns in (None, "60"):
        environment = WITHOUT_WIDTH | ({"COLUMNS": columns} if columns else {})
        text = tailrace("info", files / "out.h5", environment=environment).stdout
        assert "no room for" not in text
        for i in range(3):
            assert f"{NAME}_{i}" in text, "no name is shortened"
        for heading in ("type", "shape", "chunks", "filters", "stored", "ratio", "bound"):
            assert heading in text
    headings = tailrace("info", files / "out.h5", environment=WITHOUT_WIDTH).stdout.splitlines()
    assert sum("filters" in line and "stored" in line for line in headings) == 1, "one table"


def test_columns_goes_before_the_terminal(files):
    lines = on_terminal(200, *command("info", files / "out.h5"),
                        environment=WITHOUT_WIDTH | {"COLUMNS": "80"})
    assert lines == on_terminal(80, *command("info", files / "out.h5"))


def test_under_a_launcher_nothing_is_left_out(files):
    """Open MPI gives ranks a terminal without width: they print 80 columns, and all data."""
    done = subprocess.run([launcher(), "-n", "2", program(), "info", str(files / "out.h5")],
                          capture_output=True, text=True, timeout=600, env=WITHOUT_WIDTH)
    assert done.returncode == 0
    assert "no room for" not in done.stdout
    for i in range(3):
        assert f"{NAME}_{i}" in done.stdout
    for heading in ("type", "chunks", "filters", "stored", "ratio"):
        assert heading in done.stdout
