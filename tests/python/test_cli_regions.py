"""Bounds of regions from end to end: boxes and masks, in repack on several ranks and in verify."""

import h5py
import numpy as np
import pytest

from cli_tools import attributes, datasets, numbers, smooth, tailrace
from python_package import load


def decoded(target):
    """Decode a file with our own reader, because h5py lacks the plug-in of trz here."""
    plain = target.with_suffix(".plain.h5")
    tailrace("repack", target, "-o", plain, "--codec", "none", "--force")
    return datasets(plain)


def words(text):
    """Join lines that were broken to fit a terminal."""
    return " ".join(text.split())


def written(path, **fields):
    with h5py.File(path, "w") as file:
        for name, values in fields.items():
            file[name] = values
    return path


def errors(x, y):
    with np.errstate(invalid="ignore"):
        return np.abs(x.astype("f8") - y.astype("f8"))


def checked(source, target):
    return {field["path"]: field for field in numbers("verify", source, target)["fields"]}


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("codec", ["trz", "trz,preset=fast", "trz,preset=max", "trz,coarse=1"])
def test_boxes(tmp_path, codec, ranks):
    u, t = smooth((41, 43, 45)), smooth((150, 160), 1).astype("f8")
    source = written(tmp_path / "in.h5", u=u, t=t, ids=np.arange(9000))
    target = tmp_path / "out.h5"
    tailrace("repack", source, "-o", target, "--codec", codec, "--bound", "abs=0.01", "--chunk",
             "16KiB", "--field", "u:guard=region=4..20x*x7..:1e-4+region=0..2x0..2x0..2:0",
             "--field", "t:guard=region=30..99x0..5:0.003", ranks=ranks)
    after = decoded(target)
    of_u = errors(u, after["u"])
    assert of_u.max() <= 0.01 and of_u[4:20, :, 7:].max() <= 1e-4
    assert of_u[:2, :2, :2].max() == 0
    assert np.count_nonzero(of_u[25:] > 1e-4) > 1000 and of_u[25:].max() > 0.005
    of_t = errors(t, after["t"])
    assert of_t.max() <= 0.01 and of_t[30:99, :5].max() <= 0.003 < of_t.max()
    text = "region=0..2x0..2x0..2:0+region=4..20x*x7..:1e-04"
    assert attributes(target, "u")["tailrace_guard"].decode() == text
    assert attributes(target, "u")["tailrace_absolute_bound"] == 0.01
    found = checked(source, target)
    assert found["/u"]["guard"] == text and found["/u"]["kept"]
    assert found["/ids"]["guard"] == "none"
    assert text in words(tailrace("info", target).stdout).replace(" ", "")


def claim(path, field, text):
    with h5py.File(path, "r+") as file:
        file[field].attrs["tailrace_guard"] = np.bytes_(text)


def test_verify_counts_what_a_region_breaks(tmp_path):
    u = smooth((60, 70))
    u[3, 4], u[5, 6], u[7, 8] = np.nan, np.inf, -999
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    mask = np.zeros((60, 70), "u1")
    mask[2:9, 3:50] = 5
    with h5py.File(source, "w") as file:
        file["u"], file["mask"], file["other"] = u, mask, mask[1:]
        file["u"].attrs["_FillValue"] = np.float32(-999)
    tailrace("repack", source, "-o", target, "--codec", "trz", "--bound", "abs=0.05")
    tailrace("verify", source, target)
    off = errors(u, decoded(target)["u"])
    n_box = np.count_nonzero(off[1:30, 5:9] > 0.001)
    n_mask = np.count_nonzero(off[mask != 0] > 0.002)
    assert n_box > 10 and n_mask > 10
    for text, n in (("region=1..30x5..9:0.001", n_box), ("region=/mask:0.002", n_mask)):
        claim(target, "u", text)
        found = words(tailrace("verify", source, target, code=1).stdout)
        assert f"{n} values or extremes break guard={text}" in found
        report = numbers("verify", source, target, code=1)["fields"]
        assert [f["n_guards_broken"] for f in report if f["path"] == "/u"] == [n]
    # Guards that cannot be checked fail with the reason.
    for text, why in (("region=/gone:0.002", 'dataset of numbers "/gone" does not exist'),
                      ("region=/u:0.002", "a mask must have integers, found f32"),
                      ("region=/other:0.002", "the mask has shape 59x70, the field 60x70"),
                      ("region=*:0.002", "it has 1 axes, the dataset has shape 60x70"),
                      ("region=9..x..4x*:0.1+region=/gone:1", "it has 3 axes"),
                      ("region=0..4:x", "cannot be parsed and are not checked")):
        claim(target, "u", text)
        assert why in words(tailrace("verify", source, target, code=1).stdout), text
    # A region beyond the end has no values, so it holds.
    claim(target, "u", "region=100..200x*:0")
    tailrace("verify", source, target)


def disc(shape):
    y, x = np.mgrid[:shape[0], :shape[1]]
    return (np.hypot(y - 30, x - 60) < 17).astype("i2") * 3


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_masks(tmp_path, ranks):
    """Masks have the shape of the field or of a step, other chunks, and may be used with a box."""
    steps = np.stack([smooth((80, 120), seed) for seed in range(5)])
    every = disc((80, 120))
    each = (np.random.default_rng(4).random((5, 80, 120)) < 0.1).astype("u8")
    steps[:, 10:12, 60:70] = np.nan
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(source, "w") as file:
        file.create_dataset("a", data=steps, chunks=(2, 33, 50), maxshape=(None, 80, 120))
        file["b"] = steps.astype("f8")
        file["c"] = steps
        file.create_dataset("masks/disc", data=every, chunks=(7, 11), compression="gzip")
        file.create_dataset("masks/each", data=each, chunks=(1, 80, 120), compression="gzip")
    tailrace("repack", source, "-o", target, "--codec", "trz", "--bound", "abs=0.01", "--chunk",
             "32KiB", "--guard", "region=/masks/disc:1e-4", "--field",
             "b:guard=region=/masks/each:1e-5+region=*x0..9x*:1e-3", "--field", "c:guard=none",
             ranks=ranks)
    after = decoded(target)
    inside = np.broadcast_to(every != 0, steps.shape)
    of_a, of_b, of_c = (errors(steps, after[name]) for name in "abc")
    for off in (of_a, of_b, of_c):
        assert np.nanmax(off) <= 0.01
    assert np.nanmax(of_a[inside]) <= 1e-4 and np.nanmax(of_a[~inside]) > 0.005
    assert np.nanmax(of_b[each != 0]) <= 1e-5 and np.nanmax(of_b[:, :9]) <= 1e-3
    assert np.nanmax(of_c[inside]) > 0.005
    assert np.count_nonzero(of_b > 1e-3) > 1000
    assert np.array_equal(after["masks/disc"], every) and np.array_equal(after["masks/each"], each)
    found = checked(source, target)
    assert all(field["kept"] for field in found.values())
    assert found["/a"]["guard"] == "region=/masks/disc:1e-04"
    assert found["/c"]["guard"] == found["/masks/disc"]["guard"] == "none"
    # Another mask in the file is another guard.
    with h5py.File(target, "r+") as file:
        broken = np.zeros_like(every) + 1
        del file["masks/disc"]
        file["masks/disc"] = broken
    out = words(tailrace("verify", source, target, code=1).stdout)
    assert "break guard=region=/masks/disc:1e-04" in out


@pytest.mark.full
@pytest.mark.parametrize("ranks", [1, 3])
def test_refusals_are_those_of_every_rank(tmp_path, ranks):
    u = smooth((60, 70))
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    written(source, u=u, m=np.ones((60, 70), "i4"), real=u + 1, small=np.ones((6, 70), "i4"))

    def refusal(guard, *more, codec="trz", bound="abs=0.05"):
        done = tailrace("repack", source, "-o", target, "--codec", codec, "--bound", bound,
                        "--field", f"u:guard={guard}", *more, code=2, ranks=ranks)
        assert not target.exists()
        return words(done.stderr)

    assert 'dataset of numbers "/gone" does not exist' in refusal("region=/gone:0.1")
    assert "a mask must have integers, found f32" in refusal("region=/real:0.1")
    assert "the mask has shape 6x70, the field 60x70" in refusal("region=/small:0.1")
    without = refusal("region=/m:0.1", "--exclude", "m")
    assert 'the output must contain the mask "/m" unchanged' in without
    assert "it exceeds the shape 60x70 along axis 1" in refusal("region=*x0..71:0.1")
    assert "it has 3 axes" in refusal("region=*x*x*:0.1")
    assert "is not a range" in refusal("region=5x*:0.1")
    for name in ("portable", "sz3"):
        for guard in ("region=*x*:0.1", "region=/m:0.1"):
            assert f"cannot keep guard={guard}" in refusal(guard, codec=name)


@pytest.mark.parametrize("target", [("--target", "size=40KiB"), ("--target", "psnr=60")])
def test_a_target_has_no_use_for_masks_of_exact_fields(tmp_path, target):
    """A mask may be missing for an exact field, but not for a field that the target applies to."""
    u, v = smooth((60, 70)), smooth((120, 130), 1)
    source = written(tmp_path / "in.h5", u=u, v=v)
    words_of = ["repack", source, "-o", tmp_path / "out.h5", "--codec", "trz", *target, "--field"]
    done = tailrace(*words_of, "v:guard=region=/gone:0.1", "--field", "u:bound=none", code=2)
    assert 'dataset of numbers "/gone" does not exist' in words(done.stderr)
    tailrace(*words_of, "u:bound=none,guard=region=/gone:0.1")
    after = decoded(tmp_path / "out.h5")
    assert np.array_equal(after["u"], u) and 0 < errors(v, after["v"]).max()


def test_arrays_take_boxes_and_no_masks(tmp_path):
    """Python writes a field with a region in pieces, and later overwrites a part."""
    package = load()
    u = smooth((64, 90))
    path = tmp_path / "u.nc"
    with package.open(path, "w") as file:
        file.create_variable("mask", ("y", "x"), data=np.ones(u.shape, "i4"))
        variable = file.create_variable("u", ("y", "x"), "f4", codec="trz", abs=0.05,
                                        chunks=(16, 32), guard="region=10..40x20..60:0.001")
        for start in range(0, 64, 8):
            variable[start:start + 8] = u[start:start + 8]
    with package.open(path, "a") as file:
        file["u"][12:30, 15:80] = u[12:30, 15:80][::-1]
    expected = u.copy()
    expected[12:30, 15:80] = u[12:30, 15:80][::-1]
    off = errors(expected, package.open(path)["u"][...])
    assert off.max() <= 0.05 and off[10:40, 20:60].max() <= 0.001 < off.max()
    plain = tmp_path / "plain.nc"
    with package.open(plain, "w") as file:
        file.create_variable("mask", ("y", "x"), data=np.ones(u.shape, "i4"))
        file.create_variable("u", ("y", "x"), data=expected)
    package.verify(plain, path).check()
    with pytest.raises(Exception, match="a mask works only with tailrace repack"):
        with package.open(tmp_path / "m.nc", "w") as file:
            file.create_variable("u", ("y", "x"), data=u, codec="trz", abs=0.05,
                                 guard="region=/mask:0.001")
    claim(path, "u", "region=/mask:0.001")
    with pytest.raises(Exception, match="which added values could break"):
        with package.open(path, "a") as file:
            file["u"][0] = u[0]


@pytest.mark.parametrize("ranks", [1, 3])
def test_a_mask_that_cannot_be_read_is_the_error_of_every_rank(tmp_path, ranks):
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(source, "w") as file:
        file["u"] = smooth((90, 120))
        mask = file.create_dataset("z", data=np.random.default_rng(1).integers(0, 2, (90, 120)),
                                   chunks=(30, 120), compression="gzip")
        chunk = mask.id.get_chunk_info(2)
    with open(source, "r+b") as file:
        file.seek(chunk.byte_offset)
        file.write(b"\xff" * chunk.size)
    done = tailrace("repack", source, "-o", target, "--codec", "trz", "--bound", "abs=0.01",
                    "--chunk", "8KiB", "--field", "u:guard=region=/z:0.001", "--only", "u",
                    "--only", "z", ranks=ranks, code=2)
    assert '"/z"' in done.stderr and not target.exists()


def test_boxes_end_behind_unlimited_dimensions_alone(tmp_path):
    """A box may exceed the current length of an unlimited dimension, but not a fixed dimension."""
    package = load()
    u = smooth((64, 90))
    with package.open(tmp_path / "grows.nc", "w") as file:
        file.create_dimension("y", 64)
        file.create_dimension("x")
        grows = file.create_variable("u", ("y", "x"), "f4", codec="trz", abs=0.05, chunks=(16, 32),
                                     guard="region=10..40x100..120:0.001")
        grows[:, :90] = u
        grows[:, 90:180] = u
    off = errors(np.hstack([u, u]), package.open(tmp_path / "grows.nc")["u"][...])
    assert off.max() <= 0.05 and off[10:40, 100:120].max() <= 0.001 < off.max()
    with pytest.raises(Exception, match="it exceeds the shape 64x0 along axis 0"):
        with package.open(tmp_path / "ends.nc", "w") as file:
            file.create_dimension("y", 64)
            file.create_dimension("x")
            grows = file.create_variable("u", ("y", "x"), "f4", codec="trz", abs=0.05,
                                         chunks=(16, 32), guard="region=10..70x*:0.001")
            grows[:, :90] = u


def test_exact_regions_are_equal_as_numbers(tmp_path):
    """Zeros of either sign are equal in an exact region, and NaN stays NaN."""
    u = smooth((60, 70)) * np.float32(0.01)
    u[::3, ::2], u[1::3, ::5], u[5, 5] = -0.0, 0.0, np.nan
    source, target = written(tmp_path / "in.h5", u=u), tmp_path / "out.h5"
    tailrace("repack", source, "-o", target, "--codec", "trz", "--bound", "abs=0.05", "--field",
             "u:guard=region=2..9x3..50:0")
    after = decoded(target)["u"]
    assert np.array_equal(after[2:9, 3:50], u[2:9, 3:50], equal_nan=True)
    assert np.nanmax(errors(u, after)) > 0.001
    assert checked(source, target)["/u"]["kept"]
    with h5py.File(source, "r+") as file:
        file["u"][...] = np.where(u == 0, -u, u)
    assert checked(source, target)["/u"]["kept"]
