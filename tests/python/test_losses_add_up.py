"""Lossy values lose more only on request, and files record the sum of the losses."""

import shutil

import h5py
import numpy as np
import pytest

import python_package
from cli_tools import attributes, datasets, numbers, smooth, tailrace

package = python_package.load()

#: Bounds whose rounding steps, 0.02 and 0.022, have errors that add up in some values; their sum.
FIRST, SECOND, TOTAL = 0.01, 0.011, 0.021


@pytest.fixture(scope="module", name="original")
def original_file(tmp_path_factory):
    path = tmp_path_factory.mktemp("original") / "original.h5"
    with h5py.File(path, "w") as file:
        file["t"] = 4 * smooth((64, 96)) + 20
        file["x"] = np.arange(5000, dtype="i4")
    return path


@pytest.fixture(scope="module", name="lossy")
def lossy_file(original, tmp_path_factory):
    path = tmp_path_factory.mktemp("lossy") / "lossy.h5"
    tailrace("repack", original, "-o", path, "--codec", "portable", "--bound", f"abs={FIRST}")
    return path


def said(path, name="t"):
    return {key.removeprefix("tailrace_"): value.decode() if isinstance(value, bytes) else value
            for key, value in attributes(path, name).items() if key.startswith("tailrace_")}


def held_to(original, compressed, code=0):
    """Return the bound that verify applies to `t`."""
    (field,) = [one for one in numbers("verify", original, compressed, code=code)["fields"]
                if one["path"] == "/t"]
    return field["absolute_bound"]


def largest_error(a, b):
    return float(np.abs(datasets(a)["t"].astype("f8") - datasets(b)["t"]).max())


def again(source, target, bound, *more):
    tailrace("repack", source, "-o", target, "--codec", "portable", "--bound", bound, "--again",
             *more)
    return target


@pytest.mark.parametrize("asked", [
    ["--bound", "abs=0.01"], ["--bound", "rel=0.001"], ["--bound", "pw_rel=0.001"],
    ["--codec", "trz", "--bound", "abs=0.01"], ["--target", "size=4kB"],
    ["--field", "t:bound=abs=0.01"], ["--publish=as-stored", "--bound", "abs=0.01"]])
def test_a_second_loss_is_refused(lossy, tmp_path, asked):
    copy = tmp_path / "copy.h5"
    done = tailrace("repack", lossy, "-o", copy, "-q", *asked, code=2)
    assert not copy.exists()
    words = " ".join(done.stderr.split())
    for part in ('field "/t"', "already lossy (abs=0.01", "--again", "bound=none",
                 "Repack the original"):
        assert part in words, words
    if "--bound" in asked:
        assert asked[asked.index("--bound") + 1] + " would add to that" in words


def test_on_several_ranks_all_refuse(lossy, tmp_path):
    done = tailrace("repack", lossy, "-o", tmp_path / "copy.h5", "--bound", "abs=0.01", ranks=2,
                    code=2)
    assert "--again" in done.stderr


@pytest.mark.parametrize("asked", [
    [], ["--codec", "deflate", "--bound", "abs=0.01"], ["--codec", "xor"], ["--publish=as-stored"],
    ["--field", "t:bound=none", "--bound", "abs=0.01"], ["--publish=cloud"]])
def test_what_stays_exact_needs_no_word(original, lossy, tmp_path, asked):
    """An exact copy also records the loss, for comparisons with the original and for repack."""
    copy = tmp_path / "copy.h5"
    done = tailrace("repack", lossy, "-o", copy, *asked)
    assert "add up" not in done.stdout + done.stderr
    assert np.array_equal(datasets(copy)["t"], datasets(lossy)["t"])
    assert said(copy)["bound_mode"] == "abs" and said(copy)["absolute_bound"] == FIRST
    assert held_to(original, copy) == FIRST
    # Stored chunks are copied.
    copied = "--publish=as-stored" in asked or "--publish=cloud" in asked
    assert held_to(lossy, copy) == (FIRST if copied else 0)
    tailrace("repack", copy, "-o", tmp_path / "next.h5", "--bound", "abs=0.01", code=2)


@pytest.mark.parametrize("codec", ["portable", "trz"])
def test_again_records_the_sum(original, lossy, tmp_path, codec):
    twice = tmp_path / "twice.h5"
    done = tailrace("repack", lossy, "-o", twice, "--codec", codec, "--bound", f"abs={SECOND}",
                    "--again")
    assert "errors add up, to abs=0.021: /t" in " ".join(done.stdout.split())
    words = said(twice)
    assert words["losses"] == f"abs={FIRST} then abs={SECOND}"
    assert (words["bound_mode"], words["bound_asked"], words["absolute_bound"]) == (
        "abs", TOTAL, TOTAL)
    assert "guard" not in words and "max_error" not in words
    assert said(twice, "x") == {}  # x is exact.
    if codec == "trz":  # The error exceeds each of the bounds.
        assert largest_error(original, twice) > max(FIRST, SECOND)
    assert held_to(original, twice) == TOTAL
    assert held_to(lossy, twice) == SECOND


def test_three_losses_and_every_file_between(original, lossy, tmp_path):
    twice = again(lossy, tmp_path / "twice.h5", "abs=0.02")
    thrice = again(twice, tmp_path / "thrice.h5", "abs=0.04")
    assert said(thrice)["losses"] == "abs=0.01 then abs=0.02 then abs=0.04"
    assert [held_to(one, thrice) for one in (original, lossy, twice)] == [
        pytest.approx(0.07), pytest.approx(0.06), 0.04]
    # A file outside this chain is compared with the total of all bounds.
    other = tmp_path / "other.h5"
    tailrace("repack", original, "-o", other, "--codec", "portable", "--bound", "abs=0.005")
    assert held_to(other, thrice) == pytest.approx(0.07)


def test_relative_bounds_are_summed_as_they_came_out(original, tmp_path):
    once, twice = tmp_path / "once.h5", tmp_path / "twice.h5"
    tailrace("repack", original, "-o", once, "--codec", "trz", "--bound", "rel=1e-3")
    tailrace("repack", once, "-o", twice, "--codec", "trz", "--bound", "psnr=70", "--again")
    first, second = said(twice)["losses"].split(" then ")
    assert first == f"abs={said(once)['absolute_bound']!r}" or first.startswith("abs=")
    total = float(first[4:]) + float(second[4:])
    assert said(twice)["absolute_bound"] == pytest.approx(total) == held_to(original, twice)


def test_shares_of_values_multiply(original, tmp_path):
    once, twice = tmp_path / "once.h5", tmp_path / "twice.h5"
    tailrace("repack", original, "-o", once, "--codec", "portable", "--bound", "pw_rel=1e-2")
    tailrace("repack", once, "-o", twice, "--codec", "portable", "--bound", "pw_rel=2e-2",
             "--again")
    words = said(twice)
    assert words["losses"] == "pw_rel=0.01 then pw_rel=0.02"
    assert words["bound_mode"] == "pw_rel" and "absolute_bound" not in words
    assert words["bound_asked"] == pytest.approx(1.01 * 1.02 - 1)
    tailrace("verify", original, twice)
    tailrace("verify", once, twice)


def test_of_mixed_modes_no_bound_is_stated(original, lossy, tmp_path):
    mixed = again(lossy, tmp_path / "mixed.h5", "pw_rel=1e-3")
    words = said(mixed)
    assert words["bound_mode"] == "unknown" and words["losses"] == "abs=0.01 then pw_rel=0.001"
    assert "absolute_bound" not in words and words["codec"] == "portable"
    tailrace("verify", lossy, mixed)
    done = tailrace("verify", original, mixed, code=1)
    assert "abs=0.01 then pw_rel=0.001" in " ".join(done.stdout.split())
    tailrace("verify", original, mixed, "--bound", "abs=0.1")
    tailrace("repack", mixed, "-o", tmp_path / "more.h5", "--bound", "abs=0.01", code=2)


@pytest.mark.parametrize("by", ["filter", "_QuantizeBitRoundNumberOfSignificantBits",
                                "quantization_nsd", "least_significant_digit"])
def test_losses_of_others_are_refused_with_their_reason(tmp_path, by):
    source, copy, twice = (tmp_path / name for name in ("in.h5", "copy.h5", "twice.h5"))
    with h5py.File(source, "w") as file:
        if by == "filter":
            file.create_dataset("t", data=4 * smooth((64, 96)), chunks=(64, 96), scaleoffset=2)
        else:
            file["t"] = np.round(4 * smooth((64, 96)), 2)
            file["t"].attrs[by] = np.int32(2)
    done = tailrace("repack", source, "-o", twice, "--bound", "abs=0.01", code=2)
    words = " ".join(done.stderr.split())
    assert "already lossy (bound unknown" in words and "--again" in words
    assert ("filter" if by == "filter" else "attributes of quantization") in words
    again(source, twice, "abs=0.01")
    assert said(twice)["losses"] == "unknown then abs=0.01"
    assert said(twice)["bound_mode"] == "unknown"
    assert held_to(source, twice) == 0.01
    # A lossless copy still records the loss, and is compared exactly.
    tailrace("repack", source, "-o", copy)
    assert held_to(source, copy) in (0, None)
    tailrace("repack", copy, "-o", tmp_path / "next.h5", "--bound", "abs=0.01", code=2)


def test_exact_fields_are_no_second_loss(tmp_path):
    """A relative bound of a constant field is 0, which causes no loss."""
    source, once = tmp_path / "in.h5", tmp_path / "once.h5"
    with h5py.File(source, "w") as file:
        file["constant"] = np.full((64, 96), 3, "f4")
    tailrace("repack", source, "-o", once, "--bound", "rel=1e-3", "--codec", "trz")
    assert said(once, "constant") == {}
    tailrace("repack", once, "-o", tmp_path / "twice.h5", "--bound", "abs=0.1")


def test_concat_keeps_what_is_said(lossy, tmp_path):
    twice, both = again(lossy, tmp_path / "twice.h5", "abs=0.01"), tmp_path / "both.h5"
    shutil.copy(twice, tmp_path / "more.h5")
    tailrace("concat", twice, tmp_path / "more.h5", "-o", both, "--codec", "deflate")
    assert said(both)["losses"] == "abs=0.01 then abs=0.01"
    assert said(both)["absolute_bound"] == 0.02
    mixed = tmp_path / "mixed.h5"
    tailrace("concat", twice, lossy, "-o", mixed, "--codec", "deflate")
    assert "losses" not in said(mixed) and "absolute_bound" not in said(mixed)


@pytest.mark.parametrize("part", [["--slab", "0:32,0:96"], ["--level", "1"], []])
def test_an_exported_part_keeps_them(lossy, tmp_path, part):
    path = tmp_path / "part.nc"
    tailrace("export", lossy, "-o", path, "--only", "t", *part)
    assert said(path)["losses"] == f"abs={FIRST}" and said(path)["absolute_bound"] == FIRST
    tailrace("repack", path, "-o", tmp_path / "next.h5", "--bound", "abs=0.01", code=2)


# --- Python


def test_a_variable_of_a_lossy_file_is_refused(original, lossy, tmp_path):
    path = tmp_path / "python.nc"
    with package.open(lossy) as source, package.open(path, "w") as file:
        with pytest.raises(ValueError, match="already lossy .abs=0.01.*again=True"):
            file.create_variable("t", ("y", "x"), data=source["t"], abs=SECOND, codec="portable")
        made = file.create_variable("t", ("y", "x"), data=source["t"], abs=SECOND,
                                    codec="portable", again=True)  # The refused name is free.
        made[:10] = source["t"][:10]
        other = file.create_variable("other", ("y", "x"), "f4", abs=SECOND)
        for write in (lambda: other.write(source["t"]),
                      lambda: other.__setitem__(..., source["t"])):
            with pytest.raises(ValueError, match="already lossy"):
                write()
        other[:] = source["t"][:]  # The origin of an array is unknown.
        declared = file.create_variable("declared", ("y", "x"), "f4", abs=SECOND,
                                        options="earlier-loss=abs=0.01")
        declared[:] = source["t"]
        file.create_variable("exact", ("y", "x"), data=source["t"])
    for name in ("t", "declared"):
        assert said(path, name)["losses"] == f"abs={FIRST} then abs={SECOND}", name
        assert said(path, name)["absolute_bound"] == TOTAL
    assert said(path, "exact")["losses"] == f"abs={FIRST}"
    assert said(path, "exact")["absolute_bound"] == FIRST
    assert said(path, "other")["absolute_bound"] == SECOND
    assert held_to(original, path, code=1) == TOTAL  # Exit code 1, because x is missing.


def test_xarray_knows_where_values_come_from(original, lossy, tmp_path):
    xr = pytest.importorskip("xarray")
    from tailrace._xarray import TailraceBackend

    path = tmp_path / "xarray.nc"
    with xr.open_dataset(lossy, engine=TailraceBackend) as data:
        data = data[["t"]]
        for keywords in ({"encoding": {"t": {"abs": SECOND}}}, {"options": "bound=abs=0.011"}):
            with pytest.raises(ValueError, match="already lossy .abs=0.01.*again=True"):
                package.write_dataset(data, path, **keywords)
        package.write_dataset(data.isel({data.t.dims[0]: slice(9)}), path)
        assert said(path)["losses"] == f"abs={FIRST}"
        package.write_dataset(data, path, encoding={"t": {"abs": SECOND}}, again=True)
        assert said(path)["losses"] == f"abs={FIRST} then abs={SECOND}"
        with pytest.raises(ValueError, match="already lossy"):
            package.write_dataset(data, path, "a")
        package.write_dataset(data * 2, path, encoding={"t": {"abs": SECOND}})
        assert "losses" not in said(path)


def test_make_portable_keeps_them(original, lossy, tmp_path):
    path = tmp_path / "twice.nc"
    tailrace("repack", lossy, "-o", path, "--netcdf", "--codec", "trz", "--bound", "abs=0.01",
             "--again")
    made = package.make_portable(path, tmp_path / "portable.nc")
    assert made["t"] == 0.02 and said(made.path)["losses"] == "abs=0.01 then abs=0.01"
    more = package.make_portable(path, tmp_path / "more.nc", loosen=0.5)
    assert more["t"] == 0.03
    assert said(more.path)["losses"] == "abs=0.01 then abs=0.01 then abs=0.01"
    mixed = tmp_path / "mixed.nc"
    tailrace("repack", path, "-o", mixed, "--codec", "trz", "--bound", "pw_rel=1e-3", "--again")
    made = package.make_portable(mixed, tmp_path / "unknown.nc")
    assert made["t"] == float("inf") and said(made.path)["bound_mode"] == "unknown"
    assert said(made.path)["losses"] == said(mixed)["losses"]
