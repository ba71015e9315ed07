"""Tables of measurements in the pages: tables.py makes them from the committed CSVs.

lab/bench/all writes such CSVs."""

import csv
import re
import shutil
import subprocess
import sys

import pytest
from application_runs import application, build_folder
from cli_tools import ENVIRONMENT, ROOT, bench_script, find_bench_modules, launcher, program

pytestmark = pytest.mark.full

RESULTS = ROOT / "lab" / "bench" / "results"
#: Reasons for CSVs without a table.
WITHOUT_TABLE = {
    "in_situ_sizes.csv": "cited in words", "schedule_bounds.csv": "input of schedule_gaps.py",
    "simulate_figure_3.csv": "drawn", "simulate_figure_7.csv": "drawn",
    "simulate_figure_8.csv": "drawn", "simulate_figure_11.csv": "drawn",
    "trz_codecs.csv": "drawn", "xor_codecs_f64.csv": "cited in words",
}


def script(name, *words, code=0, timeout=600):
    done = subprocess.run([sys.executable, str(bench_script(name)), *map(str, words)],
                          capture_output=True, text=True, timeout=timeout, env=ENVIRONMENT)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout + done.stderr


def heads_of(path):
    with open(path, newline="", encoding="utf-8") as file:
        return next(csv.reader(line for line in file if not line.startswith("#")))


@pytest.fixture
def tables(monkeypatch):
    find_bench_modules(monkeypatch)
    import tables
    return tables


def test_pages_say_what_the_csvs_say():
    assert "all as their CSVs say" in script("tables.py", "--check")


def test_every_csv_is_in_a_table_or_named(tables):
    made_of = {source for _, sources, _ in tables.TABLES.values() for source in sources}
    assert {path.name for path in RESULTS.glob("*.csv")} == made_of | set(WITHOUT_TABLE)
    assert not made_of & set(WITHOUT_TABLE)


def test_measurements_stand_between_marks():
    """Tables with many measured numbers must come from a CSV."""
    measured = re.compile(r"[+-]?[\d,]+\.\d+( ?(%|s|ms|x|[kM]B|MB/s))?$")
    found = []
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]:
        text = re.sub(r"<!-- table .*?<!-- end of table -->", "", page.read_text(), flags=re.S)
        for match in re.finditer(r"(^ *\|.*\n)+", text, re.M):
            rows = [row.strip().strip("|").split("|")[1:] for row in match[0].splitlines()[2:]]
            cells = [cell.strip() for row in rows for cell in row if cell.strip()]
            if sum(bool(measured.match(cell)) for cell in cells) > len(cells) / 4:
                found.append((page.name, match[0].splitlines()[0]))
    assert found == []


def test_another_number_is_found(tmp_path):
    """If a number changes in two CSVs, exactly the pages with their tables differ."""
    folder = tmp_path / "results"
    shutil.copytree(RESULTS, folder)
    for name, old, new in (("concat_scaling.csv", ",0.92035,", ",0.93035,"),
                           ("xor_paper.csv", "1.946", "1.956")):
        text = (folder / name).read_text()
        assert text.count(old) == 1
        (folder / name).write_text(text.replace(old, new))
    said = script("tables.py", "--check", "--results", folder, code=1)
    assert said.rstrip().endswith("differ: lab/bench/results/README.md")


def test_marks_without_a_table_are_refused(tables):
    text = (RESULTS / "README.md").read_text()
    marks = "<!-- table front: lab/bench/tables/tables.py -->\n<!-- end of table -->\n"
    with pytest.raises(ValueError, match="front, which is no table"):
        tables.rewritten(text + marks, "lab/bench/results/README.md")
    with pytest.raises(ValueError, match="no marks for .*'xor_lossless'"):
        tables.rewritten("# Nothing here\n", "lab/bench/results/README.md")


def built():
    launcher()
    application("cosmo")
    program()
    for name in ("tailrace-bench", "pnetcdf_variables"):
        if not (build_folder() / "bin" / name).exists():
            pytest.skip(f"{name} is not built")


def test_a_quick_session(tmp_path):
    """Run one part of each kind: CSVs have the columns of the committed ones, and give tables."""
    built()
    script("all", "--quick", "--parts", "write,variables", "--results", tmp_path, "--folder",
           tmp_path, timeout=600)
    for name in ("write.csv", "variables.csv", "session.csv"):
        assert heads_of(tmp_path / name) == heads_of(RESULTS / name)
    with open(tmp_path / "variables.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    assert [row["variables"] for row in rows] == ["100", "100", "200", "200"]
    with open(tmp_path / "write.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    assert all(float(row["error_over_bound"]) <= 1 for row in rows)
    assert {row["part"] for row in rows} == {"codec", "bounds"}
    made = (tmp_path / "docs_performance.md").read_text()
    page = (ROOT / "docs/performance.md").read_text()
    assert made.count("<!-- table ") == made.count("<!-- end of table -->")
    assert made.count("<!-- table ") == page.count("<!-- table ") >= 9
    assert "| many variables |" in made and made != page


def test_unknown_parts_are_refused():
    assert "there is no part reading" in script("all", "--parts", "reading", code=2)


def test_a_slow_build_is_not_measured(tmp_path):
    """The presets ci and default compile faster and run slower, so they are not measured."""
    built()
    cache = (build_folder() / "CMakeCache.txt").read_text()
    if "TAILRACE_OPTIMISE_EVERYTHING:BOOL=ON" in cache:
        pytest.skip("this build is optimised")
    said = script("all", "--any-load", "--results", tmp_path, code=2)
    assert "is not optimised" in said and not list(tmp_path.iterdir())


@pytest.mark.parametrize("sizes, verdict", [
    ({"trz": (100, 9), "xor": (100, 900), "zstd-19": (101, 1)}, 2),
    ({"trz": (103, 50), "trz-fast": (200, 900), "pcodec-12": (100, 10)}, 1),
    ({"trz": (103, 49), "trz-fast": (200, 900), "pcodec-12": (100, 10)}, 0),
    ({"trz": (104, 900), "trz-ratio": (103, 60), "pcodec-12": (100, 10)}, 1),
    ({"trz": (104, 900), "pcodec-12": (100, 10), "xor": (99, 1)}, 0)])
def test_what_counts_as_near_the_smallest(tables, sizes, verdict):
    field = {codec: {"encoded_bytes": n, "encode_MB_per_s": speed}
             for codec, (n, speed) in sizes.items()}
    assert tables.tables_of_codecs.verdict_of(field) == verdict


def test_means_of_codecs_are_of_the_same_fields(tables):
    """A field that one codec does not support is excluded from means over several types."""
    codecs = tables.tables_of_codecs.EXACT
    rows = [{"file": "a", "field": field, "dtype": dtype, "codec": codec, "raw_bytes": "1000",
             "encoded_bytes": n_bytes, "encode_MB_per_s": speed, "decode_MB_per_s": speed}
            for field, dtype, n_bytes, speed in (("x", "f32", "500", "20"), ("y", "u8", "1", "900"))
            for codec in codecs if (dtype, codec) != ("u8", "pcodec-8")]
    made = tables.tables_of_codecs.lossless(rows)
    n = len(codecs)
    assert "| all that all take (1) |" + " 2.00 |" * n in made
    assert "| all (2) |" + " |" * n + " 2 | 0 | 100 % |" in made
    assert "| encode, MB/s (1) |" + " 20 |" * n in made


def test_exact_codecs_are_compared_on_equal_values(monkeypatch):
    """All codecs get the field's chunks, and a codec that changes a value is an error."""
    find_bench_modules(monkeypatch)
    import lossless
    import numpy as np
    values = np.arange(5 * 7 * 3, dtype="i2").reshape(5, 7, 3)

    class Stored:
        name = "stored"

        def encode(self, chunk):
            return chunk.tobytes()

        def decode(self, encoded, chunk):
            chunk[:] = np.frombuffer(encoded, chunk.dtype)

    class Broken(Stored):
        def decode(self, encoded, chunk):
            chunk[:] = np.frombuffer(encoded, chunk.dtype) | 1

    n_bytes, encode_s, decode_s = lossless.measured(Stored(), values, (2, 4, 3), 2)
    assert n_bytes == values.nbytes and encode_s >= 0 and decode_s >= 0
    with pytest.raises(RuntimeError, match="stored changes values"):
        lossless.measured(Broken(), values, (2, 4, 3), 1)
    packed = lossless.packed(np.array([-1e10, 0, 1, 4], "f4"), -1e10)
    assert packed.tolist() == [-32768, -32500, -16250, 32500]
