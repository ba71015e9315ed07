"""tailrace-lab bench: workloads, sweeps, rows of layouts and orders, the page, the grid, scaling.

No test judges a time. Programs and helpers are those of test_bench.py.
"""

import csv
import html.parser
import json
import pathlib
import subprocess
import sys

import h5py
import numpy as np
import pytest
from cli_tools import bench_script
from test_bench import ENVIRONMENT, ROOT, program, rows_of, run

pytestmark = pytest.mark.full

QUICK = ["--repeat", "1", "--bound", "rel=1e-3", "--codec", "trz"]
REAL_DATA = ROOT.parent / "shared" / "data"


@pytest.fixture
def ocean(tmp_path):
    """Write a smooth field with land, which the file does not mark as fill."""
    rng = np.random.default_rng(3)
    values = rng.normal(size=(16, 24, 32)).cumsum(axis=2).astype(np.float32)
    values[:, 6:12, 8:20] = -1e10
    with h5py.File(tmp_path / "ocean.h5", "w") as file:
        file["temp"] = values
    return tmp_path / "ocean.h5"


@pytest.mark.parametrize("kind, n_fields, dimensions", [
    ("nyx", 6, 3), ("particles", 6, 1), ("climate", 3, 3)])
def test_generated_sets(tmp_path, kind, n_fields, dimensions):
    cells = ["--cells", "32x32x32"] if dimensions == 3 else ["--cells", "40000"]
    options = ["--synthetic", kind, *cells, *QUICK, "--methods", "tailrace-claimed-trz"]
    document, _ = rows_of(tmp_path, *options, ranks=2)
    assert document["data"]["source"].startswith(f"synthetic {kind}, seed 1")
    assert len(document["data"]["fields"]) == n_fields
    assert all(len(field["shape"]) == dimensions for field in document["data"]["fields"])
    assert document["rows"][0]["ratio"] > 1
    again, _ = rows_of(tmp_path, *options, ranks=2)
    assert again["data"]["checksum_fnv1a"] == document["data"]["checksum_fnv1a"]


@pytest.mark.parametrize("kind, file", [
    ("nyx", "nyx64_s140.h5"), ("particles", "nyx64_particles_s090.h5"), ("climate", "climate.h5")])
def test_real_sets_where_they_are_else_generated_ones(tmp_path, kind, file, monkeypatch):
    there = (REAL_DATA / file).exists()
    monkeypatch.setenv("TAILRACE_DATA", str(REAL_DATA) if there else str(tmp_path))
    path = tmp_path / "rows.json"
    done = run(tmp_path, "--workload", kind, *QUICK, "--methods", "tailrace-claimed-trz", "--json",
               str(path))
    assert done.returncode == 0, done.stderr
    source = json.loads(path.read_text())["data"]["source"]
    assert source.startswith(f"real {file}" if there else f"synthetic {kind}")
    assert there or "using generated fields" in done.stderr


def test_data_folder_is_searched(tmp_path):
    rng = np.random.default_rng(5)
    with h5py.File(tmp_path / "nyx64_s140.h5", "w") as file:
        file["density"] = rng.normal(size=(16, 16, 16)).cumsum(axis=0).astype(np.float32)
    options = ["--workload", "nyx", "--data", str(tmp_path), *QUICK, "--methods",
               "tailrace-claimed-trz"]
    tiled, _ = rows_of(tmp_path, *options, "--cells", "32x32x32")
    assert "field repeated" in tiled["data"]["source"]
    refined, _ = rows_of(tmp_path, *options, "--cells", "32x32x32", "--fit", "refine")
    assert "linear interpolation" in refined["data"]["source"]
    assert refined["S"] == tiled["S"] == 32**3 * 4
    assert refined["data"]["checksum_fnv1a"] != tiled["data"]["checksum_fnv1a"]
    # Interpolation does not widen the range of the field.
    bounds = [document["data"]["fields"][0]["absolute_bound"] for document in (refined, tiled)]
    assert 0.9 * bounds[1] < bounds[0] <= bounds[1]


def test_fill_values_stay_out_of_the_range(tmp_path, ocean):
    options = ["--workload", str(ocean), *QUICK, "--methods",
               "tailrace-claimed-trz,tailrace-claimed-portable"]
    plain, _ = rows_of(tmp_path, *options, ranks=2)
    filled, _ = rows_of(tmp_path, *options, "--fill", "temp:-1e10", ranks=2)
    bounds = [document["data"]["fields"][0]["absolute_bound"] for document in (plain, filled)]
    assert bounds[0] == pytest.approx(1e7, rel=0.01)
    assert bounds[1] < 1


def test_fields_with_their_own_bound(tmp_path):
    document, _ = rows_of(tmp_path, "--cells", "16x16x16", *QUICK, "--field-bound",
                          "temperature:abs=1e3", "--field-bound", "velocity_*:abs=2", "--methods",
                          "tailrace-claimed-trz", ranks=2)
    bounds = {field["path"]: field["absolute_bound"] for field in document["data"]["fields"]}
    assert bounds["/temperature"] == 1000
    assert bounds["/velocity_x"] == bounds["/velocity_z"] == 2
    assert bounds["/baryon_density"] > 1e6  # rel=1e-3 of its range
    assert document["rows"][0]["max_error_over_bound"] <= 1


def test_sweep_has_a_run_for_each_bound_and_bandwidth(tmp_path):
    document, table = rows_of(
        tmp_path, "--cells", "16x16x16", "--repeat", "1", "--codec", "deflate", "--bound",
        "rel=1e-2,1e-3", "--bandwidth", "100,200MB/s/rank,unlimited", "--methods",
        "tailrace-claimed-portable", ranks=2)
    runs = document["runs"]
    assert [run["bound"] for run in runs] == ["rel=0.01"] * 3 + ["rel=0.001"] * 3
    assert [run["W"] for run in runs] == 2 * [200_000_000, 400_000_000, None]
    assert table.count("Median seconds by storage bandwidth") == 2
    sizes = {run["bound"]: set() for run in runs}
    for one in runs:
        row = one["rows"][0]
        assert row["max_error_over_bound"] <= 1
        if one["W"]:
            assert row["min_s"] >= row["written_bytes"] / one["W"] * 0.99
        sizes[one["bound"]].add(row["encoded_bytes"])
    assert all(len(found) == 1 for found in sizes.values()), sizes
    assert max(sizes["rel=0.01"]) < min(sizes["rel=0.001"])


def test_layouts_and_orders_write_the_same_chunks(tmp_path):
    methods = ["tailrace-claimed-trz", "tailrace-claimed-trz-johnson",
               "tailrace-claimed-trz-insertion", "tailrace-claimed-trz-serial",
               "tailrace-predictive-trz", "tailrace-predictive-trz-r1.43", "tailrace-arena-trz",
               "tailrace-hybrid-trz", "tailrace-sparse-trz"]
    document, table = rows_of(tmp_path, "--cells", "32x32x32", "--chunk", "16x16x16", *QUICK,
                              "--expect", "6:0.3", "--methods", ",".join(methods), ranks=2)
    rows = {row["method"]: row for row in document["rows"]}
    assert list(rows) == methods
    assert len({row["encoded_bytes"] for row in rows.values()}) == 1
    for row in rows.values():
        assert row["n_chunks"] == 2 * 6 * 8
        assert row["n_overflow_chunks"] <= row["n_chunks"]
        assert row["wait_s"] >= 0
        assert row["model_s"] > 0
    assert rows["tailrace-claimed-trz"]["slack_bytes"] == 0
    assert rows["tailrace-claimed-trz-serial"]["hidden_share"] == 0
    reserved = [rows[f"tailrace-predictive-trz{suffix}"]["reserved_bytes"]
                for suffix in ("", "-r1.43")]
    assert 0 < reserved[0] < reserved[1]
    assert "overflow" in table


def test_codec_auto_has_rows_by_default(tmp_path):
    document, _ = rows_of(tmp_path, "--cells", "16x16x16", "--repeat", "1", "--codec", "auto",
                          "--methods", "tailrace-*", ranks=2)
    methods = [row["method"] for row in document["rows"]]
    assert {"tailrace-claimed-auto", "tailrace-dense-auto"} <= set(methods)
    assert len(methods) == len(set(methods))
    assert all(row["chosen"] for row in document["rows"] if row["method"].endswith("-auto"))


def test_automatic_choice_is_a_row(tmp_path):
    document, _ = rows_of(tmp_path, "--cells", "32x32x32", "--bandwidth", "2MB/s/rank", *QUICK,
                          "--methods", "tailrace-claimed-none,tailrace-claimed-auto", ranks=2)
    none, auto = document["rows"]
    assert auto["chosen"]
    assert auto["encoded_bytes"] < none["encoded_bytes"], "on a slow storage bytes count"
    assert auto["max_error_over_bound"] <= 1


class Page(html.parser.HTMLParser):
    """Parser that collects the parts of a page, and checks that its elements are closed."""

    VOID = {"meta", "br", "hr", "link", "img", "image", "use", "path", "rect", "circle"}

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.sources, self.text = [], {}, [], ""

    def handle_starttag(self, tag, attributes):
        self.seen[tag] = self.seen.get(tag, 0) + 1
        self.sources += [value for name, value in attributes
                         if name in ("src", "href", "xlink:href") and value[:1] != "#"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def test_page_holds_everything(tmp_path):
    path = tmp_path / "page.html"
    done = run(tmp_path, "--cells", "32x32x32", "--chunk", "16x16x16", *QUICK, "--bandwidth",
               "50,100MB/s", "--methods", "tailrace-claimed-trz,tailrace-claimed-none,ideal-trz",
               "--report", str(path), ranks=2)
    if "cairo" in done.stderr:
        pytest.skip("built without cairo")
    assert done.returncode == 0, done.stderr
    page = Page()
    page.feed(path.read_text())
    assert not page.open
    assert not page.sources, "the page must need nothing else"
    assert "script" not in page.seen
    assert page.seen["svg"] >= 4
    assert page.seen["table"] >= 4
    for words in ("tailrace-claimed-trz", "synthetic nyx", "rel=0.001", "Predicted against encoded",
                  "W, what the storage takes", "arena", "50.0 MB/s"):
        assert words in page.text, words


def test_choice_grid(tmp_path):
    path = tmp_path / "grid.csv"
    done = run(tmp_path, "--help")
    assert done.returncode == 0
    command = [str(program()), "bench", "choice", "--dir", str(tmp_path), "--cells", "32x32x32",
               "--bandwidth", "2MB/s/rank,unlimited", "--bound", "rel=1e-2,1e-4", "--repeat", "1",
               "--candidates", "none;trz;trz,preset=fast;deflate", "--csv", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False,
                          env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    lines = path.read_text().splitlines()
    assert any(line.startswith("# data: synthetic nyx") for line in lines)
    rows = list(csv.DictReader(line for line in lines if not line.startswith("#")))
    cells = {}
    for row in rows:
        cells.setdefault((row["bound"], row["W_bytes_per_s_per_rank"]), []).append(row)
    assert len(cells) == 4
    for (_, bandwidth), found in cells.items():
        assert [row["codec"] for row in found] == ["none", "trz", "trz,preset=fast", "deflate",
                                                   "auto"]
        assert sum(row["best"] == "1" for row in found) == 1
        best = next(row for row in found if row["best"] == "1")
        auto = found[-1]
        assert auto["chosen"]
        assert float(auto["auto_over_best"]) == pytest.approx(
            float(auto["median_s"]) / float(best["median_s"]), rel=0.01)
        for row in found:
            if row["state"] == "bounded":
                # Not measured, because it could not have been the best.
                assert not row["median_s"]
                assert float(row["least_s"]) >= float(best["median_s"])
        if bandwidth != "unlimited":
            assert found[0]["state"] in ("bounded",
                "left out"), "uncompressed bytes alone take longer"
    assert "cells" in done.stdout


def test_scaling(tmp_path):
    path = tmp_path / "scaling.json"
    command = [sys.executable, str(bench_script("scaling.py")), "--ranks", "1,2",
               "--json", str(path), "--", "--dir", str(tmp_path), "--cells", "16x16x16",
               "--repeat", "1", "--bandwidth", "100MB/s/rank", "--methods",
               "tailrace-claimed-none", "--bound", "none", "--codec", "deflate"]
    program()
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False,
                          env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    document = json.loads(path.read_text())
    assert [row["ranks"] for row in document["rows"]] == [1, 2]
    assert [row["W_per_rank"] for row in document["rows"]] == [100e6, 100e6]
    assert document["rows"][0]["efficiency"] == 1
    assert document["rows"][1]["S"] == 2 * document["rows"][0]["S"]
    assert "efficiency" in done.stdout
