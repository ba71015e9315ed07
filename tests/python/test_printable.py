"""Names with terminal escapes, newlines, direction marks or bytes that are not UTF-8.

Output has the same lines as with harmless names, and no character that moves the cursor."""

import json
import random
import re
import subprocess
import sys

import h5py
import numpy as np
import pytest

import python_package
from cli_tools import ENVIRONMENT, command, smooth

tailrace = python_package.load()
printable = sys.modules["tailrace._printable"].printable

NASTY = ["\x1b[2J", "\x1b]0;title\x07", "\n  field  f32  0 B", "\r", "\t", "\x7f", "\x08",
         "\x9b2J", "\x85", "\x90", "\u202e", "\u2066", "\u2069", "\u200f", "\u061c", "\u2028",
         "\u2029", "\u202a", "<script>alert(1)</script>", "$_$", "ä"]
BAD_BYTES = [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf0\x9f", b"\x80", b"\xc0\x8a"]
FORBIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def nasty_names(seed, n):
    """Return n names, as bytes without '/' and NUL, which together contain all pieces."""
    pieces = [piece.replace("/", "|").encode() for piece in NASTY] + BAD_BYTES
    random.Random(seed).shuffle(pieces)
    return [b"%d" % i + b"".join(pieces[i::n]) for i in range(n)]


def tame(name):
    """Return a harmless name of the displayed length, so that lines break in the same places."""
    shown = printable(name.decode("utf-8", "surrogateescape"))
    return re.sub("[^0-9a-z. ]", "x", shown.encode("ascii", "replace").decode()).encode()


def write(path, names, extra=b""):
    """Write a group with fields, one of which has an unknown guard, attributes, and units."""
    group, exact, *fields = names
    with h5py.File(path, "w") as file:
        inside = file.create_group(group)
        for i, name in enumerate(fields):
            made = inside.create_dataset(name, data=smooth((64, 64), i), chunks=(32, 64))
            made.attrs.create(exact, np.bytes_(names[0]))
            made.attrs["units"] = np.bytes_(names[1])
            made.attrs["long_name"] = np.bytes_(names[0])
            made.attrs["tailrace_bound"] = np.bytes_(b"abs=1" + extra)
            made.attrs["tailrace_codec"] = np.bytes_(b"trz" + extra)
            made.attrs["tailrace_guard"] = np.bytes_(b"no such guard" + extra)
            made.attrs["quantization"] = np.bytes_(b"container" + extra)
        inside.create_dataset(exact, data=np.arange(5000))
        events = file.create_dataset(b"rows" + names[0], shape=(30, 4), maxshape=(None, 4),
                                     chunks=(10, 4), dtype="f4")
        events[:] = 1
    return path


def verbs(folder, names, extra, file_name):
    """Return the output of each verb for files with such names."""
    folder.mkdir()
    one = write(bytes(folder) + b"/1" + file_name, names, extra)
    two = write(bytes(folder) + b"/2" + file_name, names, extra)
    other = bytes(folder) + b"/3" + file_name
    write(other, names[:-1] + [b"another" + extra], extra)
    path = b"/" + names[0] + b"/" + names[2]

    def out(name):
        return bytes(folder) + b"/" + name + file_name

    said = {}

    def say(key, *arguments, ranks=1):
        words = [word.decode("utf-8", "surrogateescape") if isinstance(word, bytes) else word
                 for word in arguments]
        done = subprocess.run([*command(ranks=ranks), *words], capture_output=True, timeout=600,
                              env={**ENVIRONMENT, "COLUMNS": ""}, check=False)
        texts = [done.stderr.decode("utf-8")]
        if "-" in words:
            json.loads(done.stdout.decode("utf-8"))
        else:
            texts.append(done.stdout.decode("utf-8"))
        for text in texts:
            assert not FORBIDDEN.search(text), f"{key}: {text!r}"
        lines = [line for text in texts for line in text.split("\n")]
        said[key] = (done.returncode, lines)

    say("info", "info", one)
    say("info chunks", "info", one, "--chunks", b"/" + names[0] + b"/*")
    say("info json", "info", one, "--json", "-")
    say("repack", "repack", one, "-o", out(b"small"), "--bound", "abs=0.01", "--codec", "trz")
    say("repack why", "repack", one, "-o", out(b"why"), "--bound", "rel=0.01", "--why")
    say("repack json", "repack", one, "-o", out(b"json"), "--bound", "abs=0.01", "--json", "-")
    say("repack again", "repack", one, "-o", out(b"small"), "--bound", "abs=0.01")
    say("repack glob", "repack", one, "-o", out(b"glob"), "-f", b"x" + names[0] + b":bound=abs=1")
    say("repack missing", "repack", out(b"missing"), "-o", out(b"none"))
    say("verify", "verify", one, out(b"small"))
    say("verify bound", "verify", one, out(b"small"), "--bound", "abs=1e-9")
    say("verify json", "verify", one, out(b"small"), "--bound", "abs=1e-9", "--json", "-")
    say("verify other", "verify", one, other)
    say("verify report", "verify", one, out(b"small"), "--report", out(b"page") + b".html")
    say("concat", "concat", "-o", out(b"all"), one, two)
    say("concat twice", "concat", "-o", out(b"twice"), one, one)
    say("concat other", "concat", "-o", out(b"not"), one, other, two)
    say("concat skip", "concat", "-o", out(b"skip"), "--on-error", "skip", one, other, two)
    say("concat check", "verify", "--concat", out(b"all"), one, other)
    say("recover", "recover", out(b"small"))
    say("recover absent", "recover", out(b"absent"))
    say("export", "export", one, "-o", out(b"plain"))
    say("export npy", "export", one, "-o", out(b"folder"), "--format", "npy")
    say("export one", "export", one, "-o", out(b"raw"), "--only", path, "--format", "raw")
    say("book", "train-book", one, "-o", out(b"book"), "--bound", "abs=0.01")
    say("usage", "info", one, names[0])
    say("ranks", "repack", one, "-o", out(b"ranks"), "--bound", "abs=0.01", ranks=2)
    page = open(out(b"page") + b".html", encoding="utf-8").read()
    assert "<script" not in page and not FORBIDDEN.search(page)
    return said


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_verbs_print_names_as_visible_lines(seed, tmp_path):
    names, extra, file_name = (nasty_names(seed, 5), b"\x1b[2J\nx\xff\xc2\x9b",
                               b"\n\x1b[31m\xff\xe2\x80\xae.h5")
    nasty = verbs(tmp_path / "a", names, extra, file_name)
    plain = verbs(tmp_path / "b", [tame(name) for name in names], tame(extra), tame(file_name))
    for key, (code, lines) in plain.items():
        assert nasty[key][0] == code, (key, nasty[key], lines)
        assert len(nasty[key][1]) == len(lines), (key, nasty[key], lines)


def test_columns_count_what_is_shown(tmp_path):
    """An escaped cell has its displayed width, so that the next columns are aligned."""
    path = tmp_path / "columns.h5"
    with h5py.File(path, "w") as file:
        for name in (b"plain", b"a\n\x1b\xff" + "ä\u202e".encode()):
            file.create_dataset(name, data=np.zeros((64, 64), "f4"))
    lines = tailrace.info(str(path)).text.split("\n")
    rows = [line for line in lines if " f32 " in line]
    assert len(rows) == 2 and len({line.index(" f32 ") for line in rows}) == 1
    assert r"a\n\x1b\xffä\u202e" in rows[0] + rows[1]


def test_both_rooms_have_one_rule(tmp_path):
    """Engine and package escape texts equally, character by character."""
    codes = [*range(1, 0x300), *range(0x600, 0x680), *range(0x2000, 0x2100), 0xFEFF, 0x1F600]
    name = "".join(chr(code) for code in codes if chr(code) != "/").encode() + b"".join(BAD_BYTES)
    path = tmp_path / "rule.h5"
    with h5py.File(path, "w") as file:
        file.create_dataset(name, data=np.zeros((64, 64), "f4"))
    shown = printable(name.decode("utf-8", "surrogateescape"))
    assert not FORBIDDEN.search(shown) and "\n" not in shown
    assert shown in tailrace.info(str(path)).text


@pytest.mark.parametrize("seed", [4, 5])
def test_python_shows_names_as_visible_lines(seed, tmp_path):
    names = nasty_names(seed, 5)
    original = write(str(tmp_path / "a.h5"), names, b"\x1b[2J\n")
    write(str(tmp_path / "b.h5"), [tame(name) for name in names], tame(b"\x1b[2J\n"))
    page = tmp_path / "page.html"
    shown = []
    for path in (original, str(tmp_path / "b.h5")):
        texts = [repr(tailrace.info(path)), repr(tailrace.verify(path, path)),
                 repr(tailrace.report(path, path, page))]
        with tailrace.open(path) as file:
            group = next(iter(file.groups.values()))
            objects = [file, group, *group.variables.values(), *group.dimensions.values()]
            texts += [repr(one) for one in objects]
            pages = [one._repr_html_() for one in [file, group, *group.variables.values()]]
            table = tailrace.suggest_bound(next(v for v in group.variables.values() if v.ndim == 2))
            texts.append(str(table))
            pages.append(table._repr_html_())
        pages.append(page.read_text(encoding="utf-8"))
        shown.append([text.count("\n") for text in texts])
        for text in [*texts, *pages]:
            assert not FORBIDDEN.search(text), repr(text)
        assert not any("<script" in one for one in pages)
    assert shown[0] == shown[1]


def test_errors_in_python_are_visible_lines(tmp_path):
    for name in nasty_names(6, 3):
        with pytest.raises(FileNotFoundError) as failed:
            tailrace.open(str(tmp_path / name.decode("utf-8", "ignore")))
        assert not FORBIDDEN.search(str(failed.value)) and "\n" not in str(failed.value)
    with tailrace.open(str(tmp_path / "new.h5"), "w") as file, \
            pytest.raises(tailrace.TailraceError) as failed:
        file.create_variable("a\x1b[2J\nb", (), "f4", options="bund=1\x9b")
    assert not FORBIDDEN.search(str(failed.value)) and "\n" not in str(failed.value)


def test_remarks_on_bounds_are_visible_lines(tmp_path):
    """Closing a file and check() of a written one print warnings about wide bounds on own lines."""
    path, copy = str(tmp_path / "a\x1b[2J.h5"), str(tmp_path / "b.h5")
    name = "v\u202eb"  # Tailrace itself refuses names with control characters.
    values = np.exp(np.linspace(0, 20, 4000)).astype("f4")
    with h5py.File(copy, "w") as file:
        file[name] = values
    with pytest.warns(RuntimeWarning) as warned:
        with tailrace.open(path, "w") as file:
            file.create_variable(name, ("x",), data=values, codec="portable", rel=1e-2)
        tailrace.verify(copy, path, values_only=True).check()
        tailrace.report(copy, path, tmp_path / "page.html").check()
    said = [str(one.message) for one in warned if "smaller" in str(one.message)]
    assert len(said) >= 3, said
    for text in said:
        assert r"\u202e" in text
        assert not FORBIDDEN.search(text) and "\n" not in text


def test_progress_in_notebooks_is_escaped():
    progress = sys.modules["tailrace._progress"]
    shown = progress._Html(progress.bar_text("reading <script> [x", 1, 2), 0.5)._repr_html_()
    assert "<script" not in shown and "reading &lt;script&gt; [x" in shown
