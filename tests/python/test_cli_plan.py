"""Planning in tailrace repack: bytes that layouts reserve, orders of work, plans in traces."""

import collections
import json

import h5py
import numpy as np
import pytest

from cli_tools import data_file, datasets, largest_error, numbers, own_lines, tailrace

LAYOUTS = {
    "claimed": "claimed",
    "dense": "dense",
    "sparse": "sparse",
    "hybrid": "hybrid:2:0.5",
    "predictive": "predictive",
    "arena": "arena:storage",
}
BOUND = ["--codec", "portable", "--bound", "rel=1e-3", "--chunk", "32x32x32"]
# Layouts that place fields by shape; fields begin at multiples of 8 bytes.
BY_SHAPE = ("sparse", "hybrid")
ORDERS = ["given", "largest-first", "smallest-first", "insertion", "johnson"]


def stored_bytes(path):
    """Return the bytes of all chunks, as stock HDF5 reports them."""
    total = []
    with h5py.File(path) as file:
        file.visititems(lambda _, item: total.append(item.id.get_storage_size())
                        if isinstance(item, h5py.Dataset) else None)
    return sum(total)


@pytest.mark.parametrize("ranks", [1, 2, 4])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_a_layout_costs(tmp_path, layout, ranks):
    source = data_file("nyx64_s060.h5", tmp_path)
    target = tmp_path / "out.h5"
    report = numbers("repack", source, "-o", target, *BOUND, "--layout", LAYOUTS[layout],
                     "--align", "1", ranks=ranks)["files"][0]
    fields = report["fields"]
    assert {field["layout"] for field in fields} == {layout}
    for key in ("encoded_bytes", "reserved_bytes", "n_overflow_chunks"):
        assert report[key] == sum(field[key] for field in fields), key
    assert report["encoded_bytes"] == stored_bytes(target)
    assert report["slack_bytes"] + report["encoded_bytes"] < report["file_bytes"]
    before, after = datasets(source), datasets(target)
    for field in fields:
        path = field["path"][1:]
        assert largest_error(before[path], after[path]) <= field["absolute_bound"], path

    if layout in ("predictive", "arena"):
        assert report["predicted_bytes"] == sum(field["predicted_bytes"] for field in fields)
        assert report["predicted_makespan_s"] > 0
        assert all(field["mean_size_error"] > 0 for field in fields)
    else:
        for key in ("predicted_bytes", "predict_s", "predicted_makespan_s"):
            assert report[key] is None, key
    if layout in ("claimed", "dense"):
        assert (report["reserved_bytes"], report["n_overflow_chunks"]) == (0, 0)
        assert report["slack_bytes"] == 0
        return
    beyond = report["slack_bytes"] - (report["reserved_bytes"] - report["encoded_bytes"])
    # The reported shares of an arena's fields are rounded to whole bytes.
    rounding = ranks * len(fields) if layout == "arena" else 0
    padding = 8 * (len(fields) + 1) if layout in BY_SHAPE else ranks * len(fields)
    if report["n_overflow_chunks"] == 0:
        assert -rounding <= beyond <= padding
    else:
        assert beyond >= -rounding


@pytest.mark.parametrize("ratio,share", [(1, 0), (100000, 1)])
def test_slots_that_all_or_no_chunks_fit(tmp_path, ratio, share):
    source = data_file("nyx64_s060.h5", tmp_path)
    report = numbers("repack", source, "-o", tmp_path / "out.h5", *BOUND, "--layout",
                     f"hybrid:{ratio}", "--align", "1", ranks=2)["files"][0]
    n_chunks = sum(field["n_chunks"] for field in report["fields"])
    assert report["n_overflow_chunks"] == share * n_chunks
    # A chunk that overflows leaves its whole slot unused.
    unused = report["reserved_bytes"] - (1 - share) * report["encoded_bytes"]
    assert 0 <= report["slack_bytes"] - unused <= 8 * (len(report["fields"]) + 1)
    tailrace("verify", source, tmp_path / "out.h5")


def trace_rows(path):
    """Return the complete events of each (rank, row name), sorted by start."""
    events = json.loads(path.read_text())["traceEvents"]
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    order = {(e["pid"], names[e["pid"], e["tid"]]): e["args"]["sort_index"]
             for e in events if e["name"] == "thread_sort_index"}
    rows = collections.defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            rows[event["pid"], names[event["pid"], event["tid"]]].append(event)
    for row in rows.values():
        row.sort(key=lambda event: event["ts"])
    return rows, order


def chunks(row, kind):
    """Return "/path #chunk" of the row's events of one kind, in temporal order."""
    return [e["name"].removeprefix(kind + " ") for e in row if e["cat"] == kind]


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("order", ORDERS)
def test_work_follows_the_plan(tmp_path, order, ranks):
    source = data_file("nyx64_s060.h5", tmp_path)
    target, trace = tmp_path / "out.h5", tmp_path / "trace.json"
    report = numbers("repack", source, "-o", target, *BOUND, "--threads", "1",
                     "--option", f"lab.order={order}", "--trace", trace, ranks=ranks)["files"][0]
    tailrace("verify", source, target)
    rows, place = trace_rows(trace)
    n_encoded = 0
    for rank in range(ranks):
        encode, planned = rows[rank, "encode 1"], rows[rank, "plan: encode 1"]
        assert chunks(planned, "plan encode") == chunks(encode, "encode")
        n_encoded += len(chunks(encode, "encode"))
        writes = {e["name"].removeprefix("plan write "): e for e in rows[rank, "plan: I/O"]}
        assert sorted(writes) == sorted(chunks(encode, "encode"))
        # A chunk is written after it is encoded, one chunk at a time. Times are in 1/1000 us.
        last_end = 0
        for event in planned:
            write = writes[event["name"].removeprefix("plan encode ")]
            assert write["ts"] >= event["ts"] + event["dur"] - 0.01
            assert write["ts"] >= last_end - 0.01
            last_end = write["ts"] + write["dur"]
        assert planned[0]["ts"] <= encode[0]["ts"]
        assert last_end - planned[0]["ts"] <= 1e6 * report["predicted_makespan_s"] + 1
        measured = [row for (r, name), row in place.items() if r == rank and "plan" not in name]
        plans = [row for (r, name), row in place.items() if r == rank and "plan" in name]
        assert max(measured) < min(plans)
    assert n_encoded == sum(field["n_chunks"] for field in report["fields"])
    if order == "given":
        by_field = chunks(rows[0, "plan: encode 1"], "plan encode")
        paths = [field["path"] for field in report["fields"]]
        ordered = sorted(by_field, key=lambda c: (paths.index(c.split(" #")[0]),
                                                  int(c.split(" #")[1])))
        assert by_field == ordered


def test_orders_differ_where_sizes_do(tmp_path):
    """The rules must give different orders for a field of noise and a smooth one."""
    source = tmp_path / "in.h5"
    generator = np.random.default_rng(3)
    with h5py.File(source, "w") as file:
        file["a_smooth"] = np.linspace(0, 1, 1 << 18, dtype="f4")
        file["b_noise"] = generator.standard_normal(1 << 18).astype("f4")
    first = {}
    for order in ("largest-first", "smallest-first"):
        trace = tmp_path / f"{order}.json"
        tailrace("repack", source, "-o", tmp_path / f"{order}.h5", "--codec", "trz", "--bound",
                 "abs=1e-4", "--chunk", "65536x", "--threads", "1", "--option",
                 f"lab.order={order}", "--trace", trace)
        first[order] = chunks(trace_rows(trace)[0][0, "encode 1"], "encode")[0]
    assert first["largest-first"].startswith("/b_noise")
    assert first["smallest-first"].startswith("/a_smooth")


def test_the_summary_tells_what_was_planned(tmp_path):
    source = data_file("nyx64_s060.h5", tmp_path)
    for layout, text in LAYOUTS.items():
        lines = tailrace("repack", source, "-o", tmp_path / f"{layout}.h5", *BOUND, "--layout",
                         text, "--option", "lab.order=johnson").stdout.splitlines()
        heads = [line.split()[0] for line in lines if line]
        assert "predict" in heads
        assert any(line.startswith("together") and "planned" in line for line in lines)
        for head in ("reserved", "unused"):
            assert (head in heads) == (layout not in ("claimed", "dense")), layout


@pytest.mark.parametrize("words,expected", [
    (["--option", "lab.order=alphabetical"], "johnson"),
    (["--layout", "hybrid"], "hybrid:3.5"),
    (["--layout", "arena:0.5"], "balanced"),
    (["--layout", "slots"], "predictive"),
])
def test_what_makes_no_sense_is_refused(tmp_path, words, expected):
    source = data_file("nyx64_s060.h5", tmp_path)
    done = tailrace("repack", source, "-o", tmp_path / "out.h5", *BOUND, *words, ranks=2, code=2)
    said = own_lines(done.stderr)
    assert len(said) == 1 and expected in said[0], done.stderr
    assert not list(tmp_path.glob("out.h5*"))
