"""tailrace profile: a short measurement alone and on ranks, its saved file, displays and figures,
and its errors. Figures must only exist, because the speed of this machine is unknown."""

import json
import os
import subprocess

import h5py
import numpy as np
import pytest

from cli_tools import ENVIRONMENT, command, own_lines, small_disk_at, smooth, tailrace

QUICK = ["--time", "1", "--largest", "2MiB"]
FEW = ["--codecs", "none,trz,trz,preset=fast,zfp"]


def profile_of(path):
    return json.loads(path.read_text())


def quick(folder, *words, **keywords):
    return tailrace("profile", *QUICK, "--dir", folder, "-o", folder / "p.json", *words, **keywords)


@pytest.mark.full
@pytest.mark.parametrize("ranks", [1, 3])
def test_measures_codecs_and_storage_and_leaves_one_file(tmp_path, ranks):
    done = quick(tmp_path, *FEW, ranks=ranks)
    assert os.listdir(tmp_path) == ["p.json"]
    profile = profile_of(tmp_path / "p.json")
    assert profile["ranks"] == ranks and not profile["built_in"]
    assert [c["codec"] for c in profile["codecs"]] == ["none", "trz", "trz,preset=fast", "zfp"]
    for codec in profile["codecs"]:
        for way in ("encode", "decode"):
            curve = codec[way]
            assert 0 < curve["least_bytes_per_s"] <= curve["greatest_bytes_per_s"]
            assert curve["points"]
            assert all(0 < p["bit_rate"] < 40 for p in curve["points"])
        assert codec["codec"] in done.stdout
    counts = {1: [1], 3: [1, 2, 3]}[ranks]
    for way in ("write", "read"):
        assert [r["ranks"] for r in profile[way]["rooflines"]] == counts
        sizes = {p["bytes_per_rank"] for p in profile[way]["points"] if p["ranks"] == 1}
        assert 1 << 20 in sizes and max(sizes) <= 2 << 20
    assert profile["latency"]["sync_s"] > 0 and profile["latency"]["claim_s"] > 0
    assert profile["latency"]["commit_s"] > 0
    assert profile["machine"]["block_bytes"] > 0
    step = profile["step"]
    assert ("messages" in step) == (ranks > 1)
    if ranks > 1:
        kinds = [point["kind"] for point in step["messages"]["points"]]
        assert kinds == ["message"] * 4 + ["allreduce"] * 2 + ["gather"] * 2
        assert "messages:" in done.stdout
    else:
        assert "messages (typical):" in done.stdout
    assert step["copy_bytes_per_s"] > 0 and step["number_s"] > 0 and step["commit_s"] > 0
    assert all(step[cost] >= 0 for cost in ("record_s", "index_s", "dataset_s"))


def test_shows_what_was_saved_and_that_it_fits(tmp_path):
    first = quick(tmp_path, "--codecs", "trz,deflate")
    shown = tailrace("profile", "--show", tmp_path / "p.json")
    tables = first.stdout.split("codecs on ")[0]
    assert tables.strip() == shown.stdout.strip()
    assert own_lines(shown.stderr) == []
    document = json.loads(
        tailrace("profile", "--show", tmp_path / "p.json", "--json", "-").stdout)
    assert document["command"] == "profile" and document["stale"] == []
    assert document["profile"] == profile_of(tmp_path / "p.json")


def test_says_why_a_profile_is_stale(tmp_path):
    quick(tmp_path, "--codecs", "trz")
    profile = profile_of(tmp_path / "p.json")
    profile["tailrace_version"] = "0.0.1"
    profile["machine"]["processor"] = "A pocket calculator"
    (tmp_path / "old.json").write_text(json.dumps(profile))
    lines = own_lines(tailrace("profile", "--show", tmp_path / "old.json").stderr)
    assert len(lines) == 2
    assert "0.0.1" in lines[0] and "A pocket calculator" in lines[1]


def test_the_built_in_profile_can_be_shown():
    text = tailrace("profile", "--show", "built-in").stdout
    assert "not measured" in text and "trz,preset=fast" in text


@pytest.mark.parametrize("ending,begins", [("png", b"\x89PNG"), ("svg", b"<?xml")])
def test_draws_points_and_fits(tmp_path, ending, begins):
    plot = tmp_path / f"p.{ending}"
    done = subprocess.run(
        command("profile", *QUICK, "--dir", tmp_path, "-o", tmp_path / "p.json", *FEW, "--plot",
                plot), capture_output=True, text=True, timeout=600, env=ENVIRONMENT)
    if "without cairo" in done.stderr:
        pytest.skip("built without cairo")
    assert done.returncode == 0, done.stderr
    assert plot.read_bytes().startswith(begins)


@pytest.mark.usefixtures("whole_sentences")
def test_measures_codecs_on_a_file_of_ones_own(tmp_path):
    with h5py.File(tmp_path / "in.h5", "w") as file:
        file["u"] = smooth((48, 48, 48), 1)
        file["v"] = smooth((48, 48, 48), 2).astype("f8")
        file["kind"] = np.arange(100000, dtype="i4")
    done = quick(tmp_path, "--input", tmp_path / "in.h5", "--codecs", "trz,zfp", ranks=2)
    assert f"codecs on {tmp_path / 'in.h5'}" in done.stdout
    assert len(profile_of(tmp_path / "p.json")["codecs"]) == 2


def test_leaves_out_plugins_that_are_missing_and_says_so(tmp_path):
    done = quick(tmp_path, "--codecs", "trz,id=31999")
    assert [c["codec"] for c in profile_of(tmp_path / "p.json")["codecs"]] == ["trz"]
    assert any("left out id=31999" in line for line in own_lines(done.stderr))


def test_keeps_an_older_profile_unless_forced(tmp_path):
    (tmp_path / "p.json").write_text("mine")
    done = quick(tmp_path, "--codecs", "trz", code=2)
    assert "--force" in own_lines(done.stderr)[0]
    assert (tmp_path / "p.json").read_text() == "mine"
    assert os.listdir(tmp_path) == ["p.json"]
    quick(tmp_path, "--codecs", "trz", "--force")
    assert profile_of(tmp_path / "p.json")["codecs"]


REFUSALS = [
    (["--time", "0"], 2, "--time 0"),
    (["--time", "-5"], 2, "--time -5"),
    (["--largest", "lots"], 2, "--largest"),
    (["--largest", "7"], 2, "at least 4096"),
    (["--codecs", "no_such_codec"], 2, "no_such_codec"),
    (["--codecs", "preset=fast"], 2, "must follow the name of a codec"),
    (["--codecs", "id=31999"], 2, "none of the codecs is installed"),
    (["--dir", "/no_such_folder"], 2, "/no_such_folder"),
    (["--dir", "/proc"], None, "/proc"),
    (["--input", "/no_such_file.h5"], 2, "/no_such_file.h5"),
    (["--plot", "p.pdf"], 2, ".png or .svg"),
    (["-o", "/no_such_folder/p.json"], 2, "/no_such_folder/p.json"),
    (["-o", "/"], 2, "is a folder"),
    (["--show", "/no_such_file.json"], 2, "/no_such_file.json"),
    (["--show", "BAD"], 2, "not JSON"),
    (["--show", "OTHER"], 2, "tailrace_profile"),
]

# One refusal of each kind runs on two ranks: arguments, a file that one rank reads, storage. Each
# takes 1.5 s there, because the launcher is slow after a failure.
ON_TWO_RANKS = ["--time 0", "--codecs id=31999", "--dir /proc", "--input /no_such_file.h5", "-o /",
                "--show BAD"]
REFUSED = [(1, *refusal) for refusal in REFUSALS] + [
    (2, *refusal) for refusal in REFUSALS if " ".join(refusal[0]) in ON_TWO_RANKS]


@pytest.mark.parametrize("ranks,words,code,text", REFUSED,
                         ids=[f"{' '.join(r[1])}-{r[0]}" for r in REFUSED])
def test_refuses_with_one_clear_line_and_no_file(tmp_path, ranks, words, code, text):
    (tmp_path / "bad.json").write_text("{ not json")
    (tmp_path / "other.json").write_text('{"some": "thing"}')
    before = sorted(os.listdir(tmp_path))
    names = {"BAD": tmp_path / "bad.json", "OTHER": tmp_path / "other.json"}
    words = [names.get(word, word) for word in words]
    base = [*QUICK, "--codecs", "trz", "--dir", tmp_path, "-o", tmp_path / "p.json"]
    done = subprocess.run(command("profile", *base, *words, ranks=ranks), capture_output=True,
                          text=True, timeout=600, env=ENVIRONMENT)
    assert done.returncode == code or (code is None and done.returncode in (2, 3)), done.stderr
    lines = own_lines(done.stderr)
    assert len(lines) == 1 and text in lines[0], done.stderr
    assert sorted(os.listdir(tmp_path)) == before


def test_a_disk_that_fills_up_limits_the_sizes_and_a_full_one_is_an_error(tmp_path):
    with small_disk_at(tmp_path / "small", "6m") as folder:
        done = tailrace("profile", "--time", "10", "--largest", "64MiB", "--codecs", "trz", "--dir",
                        folder, "-o", tmp_path / "p.json")
        assert any("free space" in line for line in own_lines(done.stderr))
        assert os.listdir(folder) == []
        with open(folder / "filler", "wb") as file:
            file.write(bytes(int(5.5 * (1 << 20))))
        done = quick(folder, "--codecs", "trz", "-o", tmp_path / "q.json", code=3)
        assert "No space left" in own_lines(done.stderr)[0]
        assert os.listdir(folder) == ["filler"] and sorted(os.listdir(tmp_path)) == [
            "p.json", "small"]
