"""Guards from end to end: repack on several ranks, verify's findings, info, concat."""

import math

import h5py
import numpy as np
import pytest

from cli_tools import attributes, data_file, datasets, numbers, smooth, tailrace


def decoded(target):
    """Decode a file with our own reader, because h5py lacks the plug-in of trz here."""
    plain = target.with_suffix(".plain.h5")
    tailrace("repack", target, "-o", plain, "--codec", "none", "--force")
    return datasets(plain)


def waves(shape, seed=0):
    noise = np.random.default_rng(seed).normal(0, 1e-3, shape)
    return (smooth(shape) - smooth(shape).mean() + noise).astype("f4")


def sides_moved(x, y, threshold=0):
    return np.count_nonzero(np.sign(x - threshold) != np.sign(y - threshold))


def written(path, **fields):
    with h5py.File(path, "w") as file:
        for name, values in fields.items():
            file[name] = values
    return path


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("codec", ["trz", "trz,preset=fast", "trz,preset=max"])
def test_signs_thresholds_and_extremes(tmp_path, codec, ranks):
    u, t = waves((41, 43, 45)), waves((150, 160), 1).astype("f8") + 273.15
    source = written(tmp_path / "in.h5", u=u, t=t, ids=np.arange(9000))
    free, kept = tmp_path / "free.h5", tmp_path / "kept.h5"
    options = ["--codec", codec, "--bound", "rel=0.01", "--chunk", "16KiB"]
    tailrace("repack", source, "-o", free, *options, ranks=ranks)
    tailrace("repack", source, "-o", kept, *options, "--guard", "sign+minmax", "--field",
             "t:guard=threshold=273.15", ranks=ranks)
    before, after = decoded(free), decoded(kept)
    assert sides_moved(u, before["u"]) > 10 and sides_moved(t, before["t"], 273.15) > 10
    assert sides_moved(u, after["u"]) == 0 and sides_moved(t, after["t"], 273.15) == 0
    assert (after["u"].min(), after["u"].max()) == (u.min(), u.max())
    assert np.array_equal(after["ids"], np.arange(9000))
    assert attributes(kept, "u")["tailrace_guard"].decode() == "sign+minmax"
    assert "tailrace_guard" not in attributes(kept, "ids")
    assert "tailrace_guard" not in attributes(free, "u")
    checked = {field["path"]: field for field in numbers("verify", source, kept)["fields"]}
    assert checked["/t"]["guard"] == "threshold=273.15" and checked["/t"]["kept"]
    assert checked["/ids"]["guard"] == "none"
    assert "sign+minmax" in tailrace("info", kept).stdout


def words(text):
    """Join lines that were broken to fit a terminal."""
    return " ".join(text.split())


def claim(path, field, text):
    with h5py.File(path, "r+") as file:
        file[field].attrs["tailrace_guard"] = np.bytes_(text)


def test_verify_finds_what_is_not_kept(tmp_path):
    u = waves((60, 70))
    source, target = written(tmp_path / "in.h5", u=u), tmp_path / "out.h5"
    tailrace("repack", source, "-o", target, "--codec", "trz", "--bound", "abs=0.05")
    tailrace("verify", source, target)
    n_moved = sides_moved(u, decoded(target)["u"])
    assert n_moved > 10
    claim(target, "u", "sign")
    done = tailrace("verify", source, target, code=1)
    assert f"{n_moved} values or extremes break guard=sign" in done.stdout
    # A gradient guard implies a bound of half of it.
    claim(target, "u", "gradient=0.02")
    done = tailrace("verify", source, target, code=1)
    assert "beyond the bound 0.01" in done.stdout
    claim(target, "u", "gradient=0.2")
    tailrace("verify", source, target)
    # A looser bound on the command line does not loosen the guard.
    claim(target, "u", "gradient=0.02")
    tailrace("verify", source, target, "--bound", "abs=1", code=1)


def test_verify_finds_extremes_that_moved(tmp_path):
    u = waves((60, 70))
    u[3, 4], u[5, 6] = 9.0123, -7.0456
    source, target = written(tmp_path / "in.h5", u=u), tmp_path / "out.h5"
    tailrace("repack", source, "-o", target, "--codec", "trz", "--bound", "abs=0.05")
    claim(target, "u", "minmax")
    done = tailrace("verify", source, target, code=1)
    assert "2 values or extremes break guard=minmax" in done.stdout
    tailrace("repack", source, "-o", target, "--codec", "trz", "--bound", "abs=0.05", "--guard",
             "minmax", "--force")
    tailrace("verify", source, target)


def sums_off(x, y, chunk):
    """Return the largest error of a chunk's sum, computed exactly."""
    off = 0
    for i in range(0, x.shape[0], chunk[0]):
        for j in range(0, x.shape[1], chunk[1]):
            part = np.s_[i:i + chunk[0], j:j + chunk[1]]
            errors = np.concatenate([y[part].ravel(), -x[part].ravel()]).astype(float)
            off = max(off, abs(math.fsum(errors)))
    return off


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
def test_sums_orders_and_functions(tmp_path, ranks):
    u, t = waves((61, 73)), (waves((150, 160), 1) + 2).astype("f8")
    column = np.sort(waves((90, 40), 2), axis=0)
    source = written(tmp_path / "in.h5", u=u, t=t, column=column)
    free, kept = tmp_path / "free.h5", tmp_path / "kept.h5"
    options = ["--codec", "trz", "--bound", "rel=0.01", "--chunk", "32x32"]
    tailrace("repack", source, "-o", free, *options, ranks=ranks)
    tailrace("repack", source, "-o", kept, *options, "--guard", "sum", "--field",
             "t:guard=log=0.001+power=2:0.01", "--field",
             "column:guard=sum+monotone=0,chunk=90x20", ranks=ranks)
    before, after = decoded(free), decoded(kept)
    half_ulp = 2.0**-24  # For values from 1 to 2.
    assert sums_off(u, before["u"], (32, 32)) > 100 * half_ulp
    assert sums_off(u, after["u"], (32, 32)) <= half_ulp
    assert np.abs(np.log(before["t"]) - np.log(t)).max() > 0.001
    assert np.abs(np.log(after["t"]) - np.log(t)).max() <= 0.001
    assert np.abs(after["t"]**2 - t**2).max() <= 0.01
    assert (np.diff(before["column"], axis=0) < 0).any()
    assert (np.diff(after["column"], axis=0) >= 0).all()
    assert attributes(kept, "t")["tailrace_guard"].decode() == "log=0.001+power=2:0.01"
    checked = {field["path"]: field for field in numbers("verify", source, kept)["fields"]}
    assert checked["/column"]["guard"] == "sum+monotone=0"
    assert all(field["kept"] for field in checked.values())
    sums = "values, sums or extremes"
    for field, text, kind in (("u", "sum", sums), ("t", "log=0.001", "values"),
                              ("t", "power=2:0.01", "values"), ("column", "monotone=0", "values")):
        tailrace("repack", source, "-o", free, *options, "--force")
        claim(free, field, text)
        found = words(tailrace("verify", source, free, code=1).stdout)
        assert kind in found and f"break guard={text}" in found


def test_a_laplacian_is_held_to(tmp_path):
    u = waves((60, 70))
    source, target = written(tmp_path / "in.h5", u=u), tmp_path / "out.h5"
    tailrace("repack", source, "-o", target, "--codec", "trz", "--bound", "abs=0.05", "--guard",
             "laplacian=0.02", ranks=2)
    y, x = decoded(target)["u"].astype(float), u.astype(float)

    def laplacian(v):
        return (v[:-2, 1:-1] + v[2:, 1:-1] + v[1:-1, :-2] + v[1:-1, 2:] - 4 * v[1:-1, 1:-1])

    assert 0.005 < np.abs(laplacian(y) - laplacian(x)).max() <= 0.02
    assert attributes(target, "u")["tailrace_absolute_bound"] == 0.0025
    tailrace("verify", source, target)
    claim(target, "u", "laplacian=0.01")
    tailrace("verify", source, target, code=1)


@pytest.mark.parametrize("text", ["", "sign+", "convex", "threshold=" + "9" * 5000, "\x1b[2Jsign",
                                  "+".join(f"threshold={k}" for k in range(65))])
def test_hostile_attributes(tmp_path, text):
    source, target = written(tmp_path / "in.h5", u=waves((60, 70))), tmp_path / "out.h5"
    tailrace("repack", source, "-o", target, "--codec", "trz", "--bound", "abs=0.05")
    claim(target, "u", text or "x")
    if not text:
        with h5py.File(target, "r+") as file:
            file["u"].attrs["tailrace_guard"] = np.arange(3)
    found = words(tailrace("verify", source, target, code=1).stdout)
    assert "cannot be parsed and are not checked" in found and "\x1b" not in found
    shown = words(tailrace("info", target).stdout)
    assert "cannot be parsed" in shown and "\x1b" not in shown and len(shown) < 2000


def test_refusals_and_choice(tmp_path):
    source, target = written(tmp_path / "in.h5", u=waves((60, 70))), tmp_path / "out.h5"
    for codec in ("portable", "sz3", "zfp"):
        done = tailrace("repack", source, "-o", target, "--codec", codec, "--bound", "abs=0.05",
                        "--guard", "zero", code=2)
        assert "cannot keep guard=zero; these codecs can: trz" in done.stderr
    done = tailrace("repack", source, "-o", target, "--codec", "trz", "--bound", "pw_rel=0.05",
                    "--guard", "gradient=1", code=2)
    assert "needs a bound of mode abs, rel or psnr" in done.stderr
    report = numbers("repack", source, "-o", target, "--bound", "abs=0.05", "--guard", "zero",
                     "--why")["files"][0]["fields"][0]
    assert report["candidates"] and report["codec"] in ("trz", "none", "deflate", "xor")
    tailrace("verify", source, target)
    # Lossless codecs satisfy every guard and do not record it.
    tailrace("repack", source, "-o", target, "--codec", "deflate", "--guard", "sign+gradient=1",
             "--force")
    assert "tailrace_guard" not in attributes(target, "u")


def test_real_fields_keep_them(tmp_path):
    source, target = data_file("nyx64_s060.h5", tmp_path), tmp_path / "out.h5"
    tailrace("repack", source, "-o", target, "--codec", "trz", "--bound", "rel=1e-3", "--guard",
             "sign+zero+minmax", ranks=2)
    checked = numbers("verify", source, target)["fields"]
    guarded = [field for field in checked if field["guard"] == "sign+zero+minmax"]
    assert guarded and all(field["kept"] for field in guarded)
    after = decoded(target)
    for path, x in datasets(source).items():
        if x.dtype.kind != "f":
            continue
        assert sides_moved(x, after[path]) == 0
        assert (after[path].min(), after[path].max()) == (x.min(), x.max())
