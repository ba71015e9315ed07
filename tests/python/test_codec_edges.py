"""Limits of lossy plug-ins must not lose a value: NaN with SZ3, ZFP with a rate, no bound."""

import h5py
import hdf5plugin  # noqa: F401  (registers the filters)
import numpy as np
import pytest

from cli_tools import numbers, smooth, tailrace


@pytest.mark.parametrize("verify", ["on", "off"])
def test_sz3_keeps_nan_even_if_nobody_verifies(tmp_path, verify):
    values = smooth((64, 64, 64))
    values[3, 4, 5] = np.nan
    values[40, 1, 2] = -np.inf
    np.save(tmp_path / "in.npy", values)
    tailrace("repack", tmp_path / "in.npy", "-o", tmp_path / "out.h5", "--codec", "sz3",
             "--bound", "abs=1e-3", "--chunk", "32x64x64", "--verify", verify)
    with h5py.File(tmp_path / "out.h5") as file:
        read = file["in"][...]
    np.testing.assert_array_equal(np.isnan(read), np.isnan(values))
    np.testing.assert_array_equal(np.isinf(read), np.isinf(values))
    finite = np.isfinite(values)
    assert np.abs(read[finite].astype("f8") - values[finite]).max() <= 1e-3


def test_zfp_with_a_rate_and_no_bound_is_compressed(tmp_path):
    np.save(tmp_path / "in.npy", smooth((64, 64, 64)))
    report = numbers("repack", tmp_path / "in.npy", "-o", tmp_path / "out.h5",
                     "--codec", "zfp,rate=8")
    (field,) = report["files"][0]["fields"]
    assert field["raw_bytes"] / field["encoded_bytes"] == pytest.approx(4, rel=0.05)
    assert field["n_raw_chunks"] == 0
