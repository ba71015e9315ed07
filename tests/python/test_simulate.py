"""tailrace-lab simulate: runs, recordings, figures and errors on the virtual clock.

Runs are small; tests/unit/simulate_* check the meaning of the numbers."""

import csv
import json

import pytest

from cli_tools import numbers, own_lines, tailrace

SMALL = ["--ranks", "8", "--iterations", "3", "--field-bytes", "16MiB", "--fields", "3",
         "--iteration-time", "0.4", "--chunk", "2MiB", "--bandwidth", "25MB/s"]
BYTES_ALONE = ["--step-costs", "off"]
MODES = ["sync-raw", "sync-encoded", "async-raw", "async-encoded", "in-situ", "hdf5-filters"]


def simulate(*words, **keywords):
    return tailrace("simulate", *SMALL, *words, **keywords)


def overheads(*words):
    document = numbers("simulate", *SMALL, *words)
    assert document["simulated"] is True
    return {mode["mode"]: mode["overhead"] for mode in document["modes"]}


def recording(path, iterations=4, early=0.0):
    """Write a recording of two ranks, with chunks of 1 MB that are encoded to 0.1 MB.

    The last iteration's second main obstacle may come early."""
    ranks = []
    for rank in range(2):
        entries = []
        for i in range(iterations):
            shift = early if i == iterations - 1 else 0
            entries.append({"iteration_s": 1.0,
                            "main": [[0.0, 0.3], [0.6 - shift, 0.9 - shift]],
                            "io": [[0.1, 0.2]],
                            "chunks": [[1000000, 100000, 0.05, 0.04]] * 4})
        ranks.append({"iterations": entries})
    path.write_text(json.dumps({"format": "tailrace-iterations", "version": 1,
                                "ranks_per_node": 2, "ranks": ranks}))
    return path


def test_compares_all_ways_to_output():
    done = simulate()
    assert done.stdout.startswith("Simulated: 8 ranks on 2 nodes, 3 iterations")
    assert all(len(line) <= 100 for line in done.stdout.splitlines())
    for mode in MODES:
        assert mode in done.stdout
    found = overheads()
    assert list(found) == MODES
    assert found["in-situ"] < found["async-encoded"] < found["sync-encoded"] < found["sync-raw"]


def test_is_the_same_again_and_with_threads():
    first = numbers("simulate", *SMALL, "--threads", "1")
    assert first == numbers("simulate", *SMALL, "--threads", "3")
    assert first != numbers("simulate", *SMALL, "--seed", "2")


def test_synchronous_raw_output_takes_bytes_over_bandwidth():
    # 3 fields of 16 MiB at 25 MB/s, and iterations of 0.4 s.
    found = overheads("--modes", "sync-raw", "--no-noise", *BYTES_ALONE)
    assert found["sync-raw"] == pytest.approx(3 * 16 * 2**20 / 25e6 / 0.4, rel=1e-9)


def test_storage_that_all_share_limits_each():
    words = ["--modes", "sync-raw", "--no-noise", *BYTES_ALONE]
    alone = overheads(*words)["sync-raw"]
    shared = overheads(*words, "--total-bandwidth", "100MB/s")
    assert shared["sync-raw"] == pytest.approx(2 * alone, rel=1e-9)


def test_a_step_costs_more_than_its_bytes():
    without = numbers("simulate", *SMALL, *BYTES_ALONE)["modes"]
    document = numbers("simulate", *SMALL, "--hold", "copy")
    assert "built-in" in document["settings"]["step_costs"]
    for plain, mode in zip(without, document["modes"], strict=True):
        for before, after in zip(plain["iterations"], mode["iterations"], strict=True):
            assert "step" not in before
            step = after["step"]
            waited = sum(step[part] for part in ("agree_s", "gather_s", "copy_s", "claims_s"))
            if not step["beside"]:
                waited += step["index_s"] + step["commit_s"]
            assert step["waited_s"] == pytest.approx(waited, rel=1e-9)
            assert after["total_s"] == pytest.approx(before["total_s"] + waited, rel=1e-9)
            assert (step["copy_s"] > 0) == (mode["mode"] in ("async-raw", "async-encoded",
                                                             "in-situ"))
    text = simulate().stdout.split("a step, ms")[1]
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "typical values" in text
    within = overheads("--metadata", "within")
    assert within["in-situ"] > overheads()["in-situ"]


def test_a_recording_without_surprises_has_no_overhead_in_situ(tmp_path):
    path = recording(tmp_path / "run.json")
    document = numbers("simulate", "--recording", path, "--modes", "in-situ,sync-encoded")
    in_situ, sync = document["modes"]
    assert in_situ["overhead"] == pytest.approx(0, abs=1e-9)
    assert len(in_situ["iterations"]) == 3  # The first one teaches the forecast.
    # Total: four encodes of 0.05 s, each longer than a write, and the last write.
    assert sync["overhead"] == pytest.approx(0.24, rel=1e-9)
    faster = numbers("simulate", "--recording", path, "--modes", "sync-encoded",
                     "--bandwidth", "100MB/s")
    assert faster["modes"][0]["overhead"] == pytest.approx(0.201, rel=1e-9)


def test_writes_trace_plot_and_csv(tmp_path):
    simulate("--trace", tmp_path / "t.json", "--trace-ranks", "2", "--plot", tmp_path / "p.svg",
             "--csv", tmp_path / "c.csv", "-q")
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    names = {event["cat"] for event in events if event["ph"] == "X"}
    assert names == {"application", "encode", "write"}
    assert {event["pid"] for event in events} == {0, 1}
    n_encoded = sum(event.get("cat") == "encode" for event in events)
    assert n_encoded == 2 * 3 * 8
    assert "<svg" in (tmp_path / "p.svg").read_text()
    rows = list(csv.DictReader((tmp_path / "c.csv").open()))
    assert len(rows) == 6 * 3 and all(row["simulated"] == "yes" for row in rows)


@pytest.mark.parametrize("figure,panels,series", [(3, 2, 5), (7, 1, 5)])
def test_figures_are_computed_and_drawn(tmp_path, figure, panels, series):
    small = ["--ranks", "8", "--iterations", "2", "--fields", "2", "--field-bytes", "16MiB",
             "--chunk", "4MiB", "--iteration-time", "0.3", "--scheduler", "ext-johnson+bf"]
    tailrace("simulate", "--figure", figure, *small, "--plot", tmp_path / "f.png",
             "--csv", tmp_path / "f.csv", "--json", tmp_path / "f.json", "-q")
    assert (tmp_path / "f.png").read_bytes().startswith(b"\x89PNG")
    document = json.loads((tmp_path / "f.json").read_text())
    assert document["simulated"] is True and document["figure"] == figure
    assert len(document["panels"]) == panels
    assert all(len(panel["series"]) == series for panel in document["panels"])
    rows = list(csv.DictReader((tmp_path / "f.csv").open()))
    assert {row["simulated"] for row in rows} == {"yes"}
    assert len(rows) == sum(len(s["x"]) for p in document["panels"] for s in p["series"])


@pytest.mark.parametrize("words,says", [
    (["--application", "doom"], "expected one of nyx, warpx, uniform"),
    (["--modes", "in-situ,later"], "later"),
    (["--scheduler", "none"], "--scheduler"),
    (["--hold", "on"], "copy or promise"),
    (["--step-costs", "some"], "on or off"),
    (["--metadata", "late"], "beside or within"),
    (["--memory", "1kB"], "memory limit"),
    (["--main-busy", "1.5"], "busy share"),
    (["--noise-ratio", "7"], "must be in [0, 1]"),
    (["--figure", "5"], "must be 3, 7, 8 or 11"),
    (["--plot", "p.pdf"], ".png or .svg"),
    (["--codec", "nobody"], "does not exist in"),
    (["--trace", "t.json", "--modes", "sync-raw"], "in-situ"),
])
def test_says_what_it_cannot_do(tmp_path, monkeypatch, words, says):
    monkeypatch.chdir(tmp_path)
    lines = own_lines(simulate(*words, code=2).stderr)
    assert len(lines) == 1 and says in lines[0]


def test_says_where_a_recording_is_wrong(tmp_path):
    path = recording(tmp_path / "run.json", iterations=1)
    line = own_lines(tailrace("simulate", "--recording", path, code=2).stderr)[0]
    assert "rank 0" in line and "at least two" in line
