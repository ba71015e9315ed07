"""`tailrace-lab bench codecs` on small files: every codec is checked; the three reports agree."""

import csv
import io
import json

import h5py
import numpy as np
import pytest

from cli_tools import program, smooth, tailrace

pytestmark = pytest.mark.full

OURS = "trz,preset=fast,trz,preset=default,trz,preset=ratio,deflate,portable,none"


@pytest.fixture
def data(tmp_path):
    """Write two fields to measure, and three that are omitted unless requested."""
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["smooth"] = smooth((20, 24, 33))
        masked = smooth((50, 70), seed=3).astype("f8")
        masked[:20, 10:] = -1e10
        masked[30, 3] = np.nan
        file["group/masked"] = masked
        file["constant"] = np.ones(5000, "f4")
        file["tiny"] = np.arange(10.0)
        file["counts"] = (np.arange(9000) % 17).astype("i4")
    return tmp_path / "in.h5"


def bench(data, *options, code=0):
    program()
    return tailrace("bench", "codecs", data, "--repeat", "2", "--codecs", OURS, *options, code=code)


def csv_rows(path):
    lines = path.read_text().splitlines()
    comments = [line for line in lines if line.startswith("#")]
    assert comments and "cores" in comments[1]
    return list(csv.DictReader(io.StringIO("\n".join(lines[len(comments):]))))


def test_reports_agree(data, tmp_path):
    done = bench(data, "--bound", "rel=1e-2,1e-4,pw_rel=1e-3", "--fill", "masked:-1e10",
                 "--csv", tmp_path / "rows.csv", "--json", tmp_path / "rows.json")
    rows = csv_rows(tmp_path / "rows.csv")
    document = json.loads((tmp_path / "rows.json").read_text())
    assert len(rows) == len(document["rows"])
    assert [field["path"] for field in document["fields"]] == [
        "/counts", "/group/masked", "/smooth"]
    assert "left out" in done.stderr and "/constant" in done.stderr and "/tiny" not in done.stdout
    for row, entry in zip(rows, document["rows"]):
        assert (row["bound"], row["codec"]) == (entry["bound"], entry["codec"])
        assert float(row["ratio"]) == pytest.approx(entry["ratio"], rel=1e-3)
        assert row["values_beyond_bound"] == "0"
        assert 0 <= entry["max_error_over_bound"] <= 1
        assert len(entry["encode_s"]) == 2 and min(entry["encode_s"]) > 0
        assert row["field"] in done.stdout
    assert "Means over 3 fields" in done.stdout


def test_rows_of_each_field(data, tmp_path):
    """Lossy codecs have a row per bound, lossless ones a single row; integers stay exact."""
    bench(data, "--bound", "rel=1e-2", "--bound", "rel=1e-4", "--csv", tmp_path / "rows.csv")
    rows = csv_rows(tmp_path / "rows.csv")

    def pairs(field):
        return [(row["codec"], row["bound"]) for row in rows if row["field"] == field]

    lossy = ["trz-fast", "trz-default", "trz-ratio", "portable"]
    exact = [("deflate", "none"), ("none", "none")]
    assert pairs("/smooth") == [(codec, "rel=0.01") for codec in lossy] + [
        (codec, "rel=1e-04") for codec in lossy] + exact
    assert all(bound == "none" for _, bound in pairs("/counts"))
    assert all(float(row["psnr_dB"]) == np.inf for row in rows if row["bound"] == "none")
    assert all(float(row["ratio"]) == 1 for row in rows if row["codec"] == "none")


def test_chunks(data, tmp_path):
    """Chunks have the requested shape; values that pad edge chunks are not counted."""
    bench(data, "--fields", "smooth", "--chunk", "8x10x16", "--bound", "rel=1e-3",
          "--json", tmp_path / "rows.json")
    field, = json.loads((tmp_path / "rows.json").read_text())["fields"]
    assert (field["chunk_shape"], field["n_chunks"]) == ([8, 10, 16], 27)
    assert field["raw_bytes"] == 20 * 24 * 33 * 4
    bench(data, "--fields", "smooth", "--chunk", "8x10x16", "--chunks", "2", "--bound", "rel=1e-3",
          "--json", tmp_path / "two.json")
    field, = json.loads((tmp_path / "two.json").read_text())["fields"]
    assert field["n_chunks_measured"] == 2
    assert field["raw_bytes"] == 2 * 8 * 10 * 16 * 4


def test_other_inputs(tmp_path):
    values = smooth((40, 50))
    np.save(tmp_path / "u.npy", values)
    values.tofile(tmp_path / "u.raw")
    sums = []
    for file, options in (("u.npy", []), ("u.raw", ["--raw", "f32:40x50"])):
        bench(tmp_path / file, *options, "--bound", "abs=0.01", "--json", tmp_path / "rows.json")
        field, = json.loads((tmp_path / "rows.json").read_text())["fields"]
        sums.append(field["checksum_fnv1a_words"])
    assert sums[0] == sums[1]


def test_refusals_are_told(data):
    done = tailrace("bench", "codecs", data, "--fields", "masked", "--codecs", "zfp,trz",
                    "--bound", "pw_rel=1e-3", "--repeat", "1")
    assert "zfp: " in done.stdout and "pw_rel" in done.stdout


@pytest.mark.parametrize("options, words", [
    (["--codecs", "quick"], "quick"),
    (["--codecs", "preset=fast,trz"], "must follow the name of a codec"),
    (["--codecs", "trz,trz"], "given twice"),
    (["--codecs", "trz,speed=9"], "speed"),
    (["--bound", "1e-3"], "--bound"),
    (["--bound", "rel=1e-3,,"], "--bound"),
    (["--repeat", "0"], "--repeat"),
    (["--chunk", "0"], "--chunk"),
    (["--fill", "masked"], "--fill"),
    (["--fields", "nothing"], "no field"),
    (["--csv", "nowhere/rows.csv"], "nowhere"),
    (["--nonsense"], "--nonsense"),
])
def test_bad_usage(data, options, words):
    done = bench(data, *options, code=2)
    assert words in done.stderr
