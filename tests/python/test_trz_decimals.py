"""Real fields whose floats are decimals, lossless through trz: encoded bytes, and values by h5py.

Fields: tenths (geopotential heights), k * 0.001 - 10 with fill values or NaN (the ocean's salinity
and temperature), and 8000 / k (hit fractions of HEP). The limits are a few percent above measured
sizes. pcodec 1.1.0 at level 12 needs 145130, 705877, 701642, 1180461 and 8669 bytes.
"""

import h5py
import numpy as np
import pytest
from cli_tools import REAL_DATA, tailrace
from test_trz_filter import python, stored_chunks

FIELDS = [("climate.h5", "hgt_21", 123_000), ("climate.h5", "levitus_salt", 475_000),
          ("climate.h5", "levitus_salt_nan", 475_000), ("climate.h5", "levitus_temp", 665_000),
          ("hep/sample_r11981_s07.h5", "rec.training.cvnmaps/hitfracx", 7_700)]


@pytest.mark.parametrize("file, field, bytes_max", FIELDS)
def test_real_decimals(file, field, bytes_max, tmp_path):
    """Chunks are small and of method 8, and values equal the original bit for bit."""
    if not (REAL_DATA / file).exists():
        pytest.skip("no real data")
    with h5py.File(REAL_DATA / file) as opened:
        values = opened[field][()]
    source, back = tmp_path / "source.h5", tmp_path / "back.npy"
    with h5py.File(source, "w") as opened:
        opened.create_dataset("u", data=values, chunks=values.shape)
    sizes = {}
    for preset in ("fast", "default", "ratio"):
        small = tmp_path / f"{preset}.h5"
        tailrace("repack", source, "-o", small, "--codec", f"trz,preset={preset}", "--bound",
                 "none")
        chunks = [chunk for _, chunk in stored_chunks(small).values()]
        sizes[preset] = sum(map(len, chunks))
        assert {chunk[8] >> 4 for chunk in chunks} == {2 if preset == "fast" else 8}
        python(f"""
            import h5py, numpy
            with h5py.File({str(small)!r}) as file:
                numpy.save({str(back)!r}, file["u"][()])
        """)
        assert np.load(back).tobytes() == values.tobytes()
        tailrace("verify", source, small)
    assert max(sizes["default"], sizes["ratio"]) <= bytes_max, sizes
