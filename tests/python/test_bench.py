"""tailrace-lab bench: its rows, keys and results. No test judges a time.

The bench itself reads every output and fails if a value is beyond its bound. These tests compare
the reported numbers with each other and with the options.
"""

import json
import os
import pathlib
import subprocess

import h5py
import numpy as np
import pytest

pytestmark = pytest.mark.full

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROW_KEYS = {
    "method", "seconds", "median_s", "min_s", "max_s", "file_bytes", "encoded_bytes", "ratio",
    "max_error_over_bound", "peak_memory_bytes",
}
LANE_KEYS = {"encode_s", "write_s", "makespan_s", "hidden_share"}
TOP_KEYS = {"rows", "ranks", "W", "S", "R", "fsync", "versions", "data", "machine", "file_system"}
SMALL = ["--cells", "32x32x32", "--chunk", "16x16x16", "--repeat", "2",
         "--codec", "deflate,level=1", "--bound", "none"]


ENVIRONMENT = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
    **os.environ,
}


def program():
    """Return the path of tailrace-lab, in the folder of TAILRACE (the build's bin/tailrace)."""
    tailrace = pathlib.Path(os.environ.get("TAILRACE", ROOT / "build" / "bin" / "tailrace"))
    tailrace = tailrace.with_name("tailrace-lab")
    bench = tailrace.parent / "tailrace-bench"
    if not tailrace.exists() or not bench.exists():
        pytest.skip(f"{tailrace} and {bench} are not both built")
    return tailrace


def run(folder, *options, ranks=1, **variables):
    set_there = ["env", *(f"{name}={value}" for name, value in variables.items())]
    command = [*set_there, str(program()), "bench", "--dir", str(folder), *options]
    if ranks > 1:
        command = ["mpiexec", "-n", str(ranks), *command]
    return subprocess.run(command, capture_output=True, text=True, timeout=600, env=ENVIRONMENT)


def rows_of(folder, *options, ranks=1, **variables):
    path = folder / "rows.json"
    done = run(folder, "--json", str(path), *options, ranks=ranks, **variables)
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(path.read_text())
    path.unlink()
    assert not list(folder.glob("tailrace-bench.*")), "the run left its folder behind"
    return document, done.stdout


def has_native_rows(folder):
    done = run(folder, "--methods", "hdf5-collective-none", *SMALL)
    return "built without a parallel HDF5" not in done.stderr


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_rows_and_keys(tmp_path, ranks):
    document, table = rows_of(tmp_path, *SMALL, ranks=ranks)
    assert TOP_KEYS <= set(document)
    assert document["ranks"] == ranks
    assert document["W"] is None
    assert document["R"] == 2
    assert document["S"] == ranks * 6 * 32**3 * 4
    assert document["fsync"] is True
    assert {"tailrace", "hdf5", "mpi"} <= set(document["versions"])
    methods = [row["method"] for row in document["rows"]]
    assert {"tailrace-claimed-deflate", "tailrace-dense-deflate", "tailrace-contiguous-none",
            "tailrace-claimed-none", "ideal-deflate"} <= set(methods)
    for row in document["rows"]:
        assert ROW_KEYS <= set(row), row["method"]
        assert len(row["seconds"]) == document["R"]
        assert row["min_s"] <= row["median_s"] <= row["max_s"]
        assert row["ratio"] == pytest.approx(document["S"] / row["encoded_bytes"])
        assert row["file_bytes"] >= row["encoded_bytes"]
        assert row["max_error_over_bound"] == 0  # everything here is lossless
        assert row["method"] in table
        if row["method"].startswith(("tailrace", "ideal")):
            assert LANE_KEYS <= set(row), row["method"]
            assert 0 <= row["hidden_share"] <= 1


def test_equal_bytes_of_equal_codecs(tmp_path):
    """Layouts move bytes and do not change them. HDF5's own deflate uses another library."""
    document, _ = rows_of(tmp_path, *SMALL, "--methods",
                          "tailrace-*-deflate,ideal-deflate,*-none", ranks=2)
    encoded = {}
    for row in document["rows"]:
        codec = row["method"].rsplit("-", 1)[1]
        encoded.setdefault(codec, set()).add(row["encoded_bytes"])
    assert encoded["none"] == {document["S"]}
    assert len(encoded["deflate"]) == 1, encoded


def test_file_no_larger_than_hdf5s(tmp_path):
    if not has_native_rows(tmp_path):
        pytest.skip("built without a parallel HDF5")
    document, _ = rows_of(tmp_path, *SMALL, "--methods", "hdf5-*,tailrace-*-deflate", ranks=2)
    files = {row["method"]: row["file_bytes"] for row in document["rows"]}
    for layout in ("claimed", "dense"):
        assert files[f"tailrace-{layout}-deflate"] <= files["hdf5-collective-deflate"]


def test_lossy_rows_keep_their_bound(tmp_path):
    document, _ = rows_of(tmp_path, "--cells", "32x32x32", "--chunk", "16x16x32", "--bound",
                          "rel=1e-3", "--codec", "portable", "--methods",
                          "tailrace-*-portable,ideal-portable", ranks=2)
    assert len(document["rows"]) >= 3
    for row in document["rows"]:
        assert 0 < row["max_error_over_bound"] <= 1
        assert row["ratio"] > 1


def test_input_is_tiled(tmp_path):
    rng = np.random.default_rng(7)
    values = rng.normal(size=(24, 20)).cumsum(axis=0).cumsum(axis=1)
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["group/walk"] = np.repeat(np.repeat(values, 4, 0), 4, 1).astype(np.float32)
        file["counts"] = np.arange(10000)
    done = run(tmp_path, "--input", str(tmp_path / "in.h5"), "--repeat", "1", "--codec", "deflate",
               "--bound", "none", "--methods", "tailrace-claimed-deflate", "--json",
               str(tmp_path / "rows.json"), ranks=2)
    assert done.returncode == 0, done.stderr
    assert "left out /counts: not floating-point numbers" in done.stderr
    document = json.loads((tmp_path / "rows.json").read_text())
    (field,) = document["data"]["fields"]
    assert field["path"] == "/group/walk"
    assert field["shape"] == [192, 80]
    assert "tiled" in document["data"]["source"]


def test_same_seed_same_data(tmp_path):
    options = [*SMALL, "--methods", "ideal-none"]
    sums = [rows_of(tmp_path, *options, "--seed", seed)[0]["data"]["checksum_fnv1a"]
            for seed in ("1", "1", "2")]
    assert sums[0] == sums[1] != sums[2]


def test_limit_counts_every_byte(tmp_path):
    """The limiter counts the bytes of the file, and Tailrace's few rewritten bytes."""
    methods = "ideal-none,tailrace-contiguous-none,tailrace-claimed-none"
    if has_native_rows(tmp_path):
        methods += ",hdf5-independent-none,hdf5-collective-none"
    document, _ = rows_of(tmp_path, "--cells", "32x32x32", "--chunk", "32x32x32", "--repeat", "1",
                          "--bandwidth", "200MB/s", "--methods", methods, "--bound", "none",
                          "--codec", "deflate", ranks=2)
    assert document["W"] == 200_000_000
    for row in document["rows"]:
        assert document["S"] <= row["written_bytes"] <= 1.2 * row["file_bytes"], row["method"]
        assert row["storage_least_s"] == pytest.approx(row["written_bytes"] / document["W"])
        assert row["min_s"] >= document["S"] / document["W"], row["method"]


def test_calls_of_hdf5_served_in_turn_with_hdf5s_own(tmp_path):
    """One process makes the same calls through HDF5 and Tailrace, with and without options."""
    served = program().parents[1] / "lib" / "libtailrace_hdf5.so"
    if not has_native_rows(tmp_path) or not served.exists():
        pytest.skip("built without a parallel HDF5")
    methods = ["hdf5-collective-none", "hdf5-unchanged", "hdf5-collective-deflate",
               "hdf5-unchanged-portable", "hdf5-unchanged-none", "tailrace-claimed-portable"]
    document, table = rows_of(tmp_path, "--cells", "32x32x32", "--chunk", "16x16x32", "--codec",
                              "deflate,level=1", "--bound", "rel=1e-3", "--repeat", "2",
                              "--methods", ",".join(methods), ranks=2, LD_PRELOAD=served)
    rows = {row["method"]: row for row in document["rows"]}
    assert list(rows) == methods and all(name in table for name in methods)
    for name in ("hdf5-collective-none", "hdf5-unchanged-none"):
        assert rows[name]["encoded_bytes"] == document["S"]
    assert rows["hdf5-unchanged"]["encoded_bytes"] < document["S"]
    assert rows["hdf5-unchanged"]["max_error_over_bound"] == 0
    # Both have equal chunks with the same bound.
    ours, native = (rows[f"{name}-portable"] for name in ("hdf5-unchanged", "tailrace-claimed"))
    assert ours["encoded_bytes"] == native["encoded_bytes"]
    assert 0 < ours["max_error_over_bound"] == native["max_error_over_bound"] <= 1
    found, _ = rows_of(tmp_path, *SMALL, "--methods", "hdf5-u*", LD_PRELOAD=served)
    assert [row["method"] for row in found["rows"]] == ["hdf5-unchanged", "hdf5-unchanged-deflate"]


def test_index(tmp_path):
    document, table = rows_of(tmp_path, "--index", "2000", "--repeat", "2")
    assert document["n_chunks"] == 2000
    assert [row["dataset"] for row in document["rows"]] == ["fixed shape", "growing"]
    for row in document["rows"]:
        assert row["median_us"] > 0
        assert len(row["insert_us"]) == 2
    assert "us/chunk" in table


@pytest.mark.parametrize("options, words", [
    (["--methods", "hdf5-independent-deflate"], "refuses independent"),
    (["--methods", "quick"], "is not a method"),
    (["--methods", "hdf5-unchanged-trz"], "hdf5-unchanged-trz: needs libtailrace_hdf5.so"),
    (["--methods", "tailrace-sparkling-deflate"], "layout"),
    (["--chunk", "48x16x16"], "does not divide"),
    (["--bandwidth", "fast"], "--bandwidth"),
    (["--bound", "rel=0"], "--bound"),
    (["--repeat", "0"], "--repeat"),
    (["--input", "nowhere.h5"], "nowhere.h5"),
    (["--synthetic", "noise"], "--synthetic"),
    (["--workload", "nyx", "--synthetic", "nyx"], "cannot be combined"),
    (["--workload", "nyx", "--data", "nowhere"], "--data"),
    (["--bandwidth", "1,fast"], "--bandwidth"),
    (["--bandwidth", "0MB/s/rank"], "--bandwidth"),
    (["--bound", "rel=1e-2,pw_rel=1e-3"], "absolute bound"),
    (["--field-bound", "abs=2"], "--field-bound"),
    (["--fit", "stretch"], "--fit"),
    (["--expect", "many"], "--expect"),
    (["--profile", "nowhere.json"], "--profile"),
    (["--methods", "tailrace-claimed-deflate-serial", "--fsync", "off"], "--fsync on"),
    (["--nonsense"], "--nonsense"),
])
def test_bad_usage(tmp_path, options, words):
    done = run(tmp_path, *SMALL, *options)
    assert done.returncode == 2, done.stderr
    assert words in done.stderr
