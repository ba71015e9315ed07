"""Bounds of mode pw_rel from end to end: repack, verify and info, zeros, NaN and refusals."""

import h5py
import numpy as np
import pytest

from cli_tools import attributes, data_file, datasets, numbers, smooth, tailrace


def beyond(original, decoded, bound):
    """Count values that violate |decoded - original| <= bound * |original|, specials included."""
    x, y = original.astype("f8"), decoded.astype("f8")
    special = ~np.isfinite(x) | (x == 0)
    same = original.view(f"u{original.itemsize}") == decoded.view(f"u{decoded.itemsize}")
    with np.errstate(invalid="ignore"):
        within = np.abs(y - x) <= bound * np.abs(x)
    return np.count_nonzero(~np.where(special, same, within))


def wide_values(shape):
    """Return values of both signs over 20 orders of magnitude, with zeros, NaN and infinities."""
    values = 10 ** (7 * smooth(shape).astype("f8"))
    values[1::5] *= -1
    values[2::7, 3::11] = 0
    values[3, 4], values[5, 6], values[7, 8] = np.nan, np.inf, -0.0
    return values


def decoded(target):
    """Decode a file with our own reader, because h5py lacks the plug-in of trz here."""
    plain = target.with_suffix(".plain.h5")
    tailrace("repack", target, "-o", plain, "--codec", "none", "--force")
    return datasets(plain)


CASES = [
    ("nyx64_s060.h5", "portable", 1e-2, 2),
    ("nyx64_s060.h5", "trz", 1e-3, 3),
    ("nyx64_particles_s090.h5", "portable", 1e-4, 3),
    ("nyx64_particles_s090.h5", "trz", 1e-6, 1),
    ("climate.h5", "portable", 1e-3, 1),
    ("climate.h5", "trz", 1e-2, 2),
]


@pytest.mark.parametrize("name,codec,bound,ranks", CASES)
def test_real_file(tmp_path, name, codec, bound, ranks):
    source, target = data_file(name, tmp_path), tmp_path / "out.h5"
    report = numbers("repack", source, "-o", target, "--bound", f"pw_rel={bound}", "--codec", codec,
                     ranks=ranks)["files"][0]
    checked = numbers("verify", source, target, ranks=1 + ranks % 2)
    before, after = datasets(source), decoded(target)
    lossy = [field for field in report["fields"] if field["pointwise_bound"]]
    assert lossy
    for field in lossy:
        path = field["path"][1:]
        assert field["pointwise_bound"] == bound and field["absolute_bound"] == 0
        recorded = attributes(target, path)
        assert recorded["tailrace_bound_mode"].decode() == "pw_rel"
        assert recorded["tailrace_bound_asked"] == bound
        assert "tailrace_absolute_bound" not in recorded
        assert field["encoded_bytes"] < field["raw_bytes"]
        fill = h5py.File(source)[path].fillvalue
        kept = before[path] == fill
        assert np.array_equal(after[path][kept], before[path][kept])
        assert beyond(before[path], after[path], bound) == 0
    for field in checked["fields"]:
        assert field["kept"] and field["max_error"] <= bound


@pytest.mark.parametrize("codec", ["portable", "trz", "trz,preset=fast", "trz,preset=ratio"])
def test_zeros_nan_and_every_magnitude(tmp_path, codec):
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    wide = wide_values((60, 80))
    with h5py.File(source, "w") as file:
        file["wide"] = wide
        file["single"] = wide.astype("f4")
        file["tiny"] = (wide * 1e-38).astype("f4")
        file["count"] = np.arange(5000)
    options = ["--codec", codec, "--bound", "pw_rel=0.01", "--field", "*:verify=on"]
    report = numbers("repack", source, "-o", target, *options)["files"][0]
    fields = {field["path"]: field for field in report["fields"]}
    for path in ("/wide", "/single", "/tiny"):
        assert fields[path]["verified"] and 0 < fields[path]["max_error"] <= 0.01
        assert 0 < fields[path]["max_error_over_bound"] <= 1
        assert beyond(datasets(source)[path[1:]], decoded(target)[path[1:]], 0.01) == 0
    assert fields["/count"]["pointwise_bound"] == 0
    assert np.array_equal(decoded(target)["count"], np.arange(5000))
    tailrace("verify", source, target)
    assert "pw_rel=0.01" in tailrace("info", target).stdout


def test_verify_holds_each_value_to_its_own_size(tmp_path):
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    values = np.array([1000.0, 1.0, 0.001, 0.0] * 500, "f4").reshape(50, 40)
    with h5py.File(source, "w") as file:
        file["u"] = values
    tailrace("repack", source, "-o", target, "--bound", "pw_rel=0.01", "--codec", "portable")
    with h5py.File(target, "r+") as file:
        stored = file["u"][...]
        stored[3, 4] = 1009  # the original is 1000: within the bound
        stored[3, 6] = 0.00102  # the original is 0.001: off by 2 %
        stored[3, 7] = 1e-9  # the original is zero
        file["u"][...] = stored
    done = tailrace("verify", source, target, code=1)
    assert "2 of 2000 values beyond the bound 0.01 of each value" in done.stdout
    assert "[3, 6]  original 0.001" in done.stdout and "= 2 x bound" in done.stdout
    assert "[3, 7]  original 0" in done.stdout and "= inf x bound" in done.stdout
    # A bound on the command line has priority, even one of another mode.
    tailrace("verify", source, target, "--bound", "abs=9.1")
    tailrace("verify", source, target, "--bound", "pw_rel=0.03", code=1)
    stored[3, 7] = 0
    with h5py.File(target, "r+") as file:
        file["u"][...] = stored
    tailrace("verify", source, target, "--bound", "pw_rel=0.03")


def test_refusals(tmp_path):
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(source, "w") as file:
        file["u"] = smooth((40, 50))
    for bound in ("pw_rel=1", "pw_rel=0", "pw_rel=x"):
        tailrace("repack", source, "-o", target, "--bound", bound, code=2)
    for codec in ("sz3", "zfp"):
        done = tailrace("repack", source, "-o", target, "--bound", "pw_rel=0.01", "--codec", codec,
                        code=2)
        assert f"codec {codec}: it cannot guarantee a pw_rel bound" in done.stderr
    assert not target.exists()
