"""Files of every layout with stock readers: unused reservations are invisible gaps."""

import shutil
import subprocess

import h5py
import numpy as np
import pytest

from cli_tools import ENVIRONMENT, data_file, datasets, largest_error, numbers, tailrace

# Codec and options for each layout. "wide" reserves twice the expected bytes, so that many stay
# unused. "tight" reserves only the expected bytes, so that chunks overflow.
LAYOUTS = {
    "claimed": ["--codec", "zfp", "--bound", "rel=1e-3"],
    "dense": ["--codec", "zfp", "--bound", "rel=1e-3"],
    "front": ["--codec", "zfp", "--bound", "rel=1e-3"],
    "sparse": ["--codec", "zfp", "--bound", "rel=1e-3"],
    "contiguous": ["--codec", "none"],
    "hybrid": ["--codec", "zfp", "--bound", "rel=1e-3", "--layout", "hybrid:3"],
    "predictive": ["--codec", "zfp", "--bound", "rel=1e-3"],
    "predictive wide": ["--codec", "zfp", "--bound", "rel=1e-3", "--layout", "predictive:2"],
    "predictive tight": ["--codec", "zfp", "--bound", "rel=1e-3", "--layout", "predictive:1"],
    "arena": ["--codec", "zfp", "--bound", "rel=1e-3"],
    "arena wide": ["--codec", "zfp", "--bound", "rel=1e-3", "--layout", "arena:2"],
    "arena tight": ["--codec", "zfp", "--bound", "rel=1e-3", "--layout", "arena:1"],
}


def extents(path):
    """Return (start, end) of all stored chunks, in the order of the file."""
    found = []
    with h5py.File(path, "r") as file:
        def look(_, item):
            if isinstance(item, h5py.Dataset) and item.chunks:
                for i in range(item.id.get_num_chunks()):
                    chunk = item.id.get_chunk_info(i)
                    found.append((chunk.byte_offset, chunk.byte_offset + chunk.size))
        file.visititems(look)
    return sorted(found)


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("case", LAYOUTS)
def test_stock_readers_take_every_layout(tmp_path, case, ranks):
    source = data_file("nyx64_s060.h5", tmp_path)
    target = tmp_path / "out.h5"
    chunks = [] if case == "contiguous" else ["--chunk", "32x32x32"]
    report = numbers("repack", source, "-o", target, "--layout", case.split()[0], *chunks,
                     *LAYOUTS[case], ranks=ranks)["files"][0]
    tailrace("verify", source, target)

    before, after = datasets(source), datasets(target)
    assert sorted(before) == sorted(after)
    for field in report["fields"]:
        path = field["path"][1:]
        assert largest_error(before[path], after[path]) <= field["absolute_bound"], path
    stored = extents(target)
    assert all(first[1] <= second[0] for first, second in zip(stored, stored[1:]))
    if "wide" in case:
        # The file has more unused bytes than half of the chunks' bytes.
        encoded = sum(end - start for start, end in stored)
        assert report["slack_bytes"] > encoded / 2
        assert target.stat().st_size > 1.5 * encoded
    if "tight" in case:
        assert report["n_overflow_chunks"] > 0

    if shutil.which("h5dump") is None:
        pytest.skip("h5dump is not installed")
    # Read the headers of all objects, and values of the last chunk, near the file's end.
    last = max(field["path"] for field in report["fields"])
    corner = ",".join(str(extent - 1) for extent in before[last[1:]].shape)
    for words in (["h5dump", "-H", "-p", target],
                  ["h5dump", "-d", last, "-s", corner, "-c", "1,1,1", target]):
        done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=600,
                              env=ENVIRONMENT)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "error" not in done.stderr.lower(), done.stderr


@pytest.mark.parametrize("layout", ["predictive", "arena", "sparse"])
def test_gaps_may_hold_anything(tmp_path, layout):
    """Overwriting unused reservations does not change any value."""
    source = data_file("nyx64_s060.h5", tmp_path)
    target = tmp_path / "out.h5"
    text = layout if layout == "sparse" else f"{layout}:2"
    tailrace("repack", source, "-o", target, "--layout", text, "--codec", "zfp", "--bound",
             "rel=1e-3", "--chunk", "32x32x32")
    before = datasets(target)
    stored = extents(target)
    with open(target, "r+b") as file:
        for (_, end), (start, _) in zip(stored, stored[1:]):
            file.seek(end)
            file.write(b"\xff" * (start - end))
    after = datasets(target)
    assert all(np.array_equal(before[path], after[path]) for path in before)
