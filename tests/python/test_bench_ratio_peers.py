"""lab/bench/papers/ratio_peers.py: the results that it counts, and their values."""

import os
import signal
import sys

import numpy as np
import pytest

import python_package
from cli_tools import ROOT

pytestmark = pytest.mark.full

python_package.load()  # First, because it sets the codec's path.
sys.path[:0] = [str(ROOT / "lab" / "bench" / folder) for folder in ("papers", "data")]
import comparison_data  # noqa: E402
import ratio_peers  # noqa: E402


@pytest.fixture
def field():
    x = np.add.outer(np.sin(np.linspace(0, 9, 60)), np.cos(np.linspace(0, 7, 80))).astype("f4")
    x[20:30, 30:50] = -999
    return comparison_data.DataSet("made.h5", "/x", x, -999)


def test_every_codec_has_a_row_and_ours_are_within_the_bound(field):
    rows = {row["codec"]: row for row in ratio_peers.measure(field, 1e-3)}
    assert list(rows) == [*ratio_peers.OURS, *ratio_peers.PEERS]
    for name in ratio_peers.OURS:
        assert 0 < rows[name]["encoded_bytes"] < field.values.nbytes / 2
        assert 0 < rows[name]["error_over_bound"] <= 1
    # hdf5plugin's codecs are installed wherever the tests run.
    assert 0 < rows["zfp"]["encoded_bytes"] < field.values.nbytes


def test_a_codec_that_crashes_or_breaks_the_bound_has_no_bytes(field, monkeypatch):
    def crash(data, bound):
        os.kill(os.getpid(), signal.SIGKILL)

    def worse(data, bound):
        return 10, np.where(data.kept, data.values + np.float32(1.5 * bound), data.values)

    monkeypatch.setattr(ratio_peers, "PEERS", {"crash": crash, "worse": worse})
    rows = {row["codec"]: row for row in ratio_peers.measure(field, 1e-2)}
    assert rows["crash"]["encoded_bytes"] == rows["worse"]["encoded_bytes"] == ""


def test_the_verdict_counts_pairs():
    def rows(field, **sizes):
        named = {f"trz-{preset}": 100 for preset in ratio_peers.PRESETS} | sizes
        return [{"file": "f", "field": field, "rel": "1e-03", "codec": codec, "encoded_bytes": size}
                for codec, size in named.items()]

    said = list(ratio_peers.verdict(
        rows("a", sz3=101, zfp="") + rows("b", sz3=99, pcodec=93) + rows("c", sperr=80, zfp=400)))
    assert said.count("    f c 1e-03: 25.0 % (sperr)") == len(ratio_peers.PRESETS)
    assert ("trz-max: 3 pairs, smallest in 1, more than 5 % larger in 2, more than 15 % in 1"
            in said)
