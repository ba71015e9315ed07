"""significant_digits= rounds like the netCDF-C library, bit for bit; bits() counts information."""

import pickle
import warnings

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr

import python_package
from cli_tools import smooth

tailrace = python_package.load()
RANDOM = np.random.default_rng(7)
MODES = {"BitGroom": "_QuantizeBitGroomNumberOfSignificantDigits",
         "GranularBitRound": "_QuantizeGranularBitRoundNumberOfSignificantDigits",
         "BitRound": "_QuantizeBitRoundNumberOfSignificantBits"}
NUMBERS = {("f4", "BitRound"): [1, 7, 22, 23], ("f8", "BitRound"): [1, 30, 51, 52],
           "f4": [1, 3, 6], "f8": [1, 3, 7, 15]}
CASES = [(dtype, mode, number) for dtype in ("f4", "f8") for mode in MODES
         for number in NUMBERS.get((dtype, mode), NUMBERS[dtype])]


def values(dtype, n=2001):
    """Return values of many sizes, powers of ten and two, zeros; an odd number of them."""
    found = np.concatenate([RANDOM.normal(size=n), np.exp(RANDOM.normal(size=n) * 15),
                            10.0 ** np.arange(-30, 31), -(2.0 ** np.arange(-100, 100)),
                            RANDOM.uniform(-1, 1, n), [0.0, -0.0, 1.0, -1.0, 1e36]])
    return found[:len(found) // 3 * 3].reshape(3, -1).astype(dtype)


@pytest.mark.parametrize("dtype, mode, number", CASES)
def test_values_and_attribute_are_those_of_netcdf_c(dtype, mode, number, tmp_path):
    given = values(dtype)
    given[0, :4] = [9.969209968386869e36, np.nan, -77, 9.969209968386869e36]
    with netCDF4.Dataset(tmp_path / "theirs.nc", "w") as file:
        for name, n in zip("yx", given.shape):
            file.createDimension(name, n)
        for name, fill in (("plain", None), ("filled", -77)):
            file.createVariable(name, dtype, ("y", "x"), zlib=True, significant_digits=number,
                                quantize_mode=mode, fill_value=fill)[:] = given
    with tailrace.open(tmp_path / "exact.nc", "w") as exact, \
            tailrace.open(tmp_path / "ours.nc", "w") as file:
        for name, n in zip("yx", given.shape):
            file.create_dimension(name, n)
        for name, fill in (("plain", None), ("filled", -77)):
            exact.create_variable(name, ("y", "x"), data=given, fill_value=fill)
            file.create_variable(name, ("y", "x"), dtype, fill_value=fill, zlib=True,
                                 significant_digits=number, quantize_mode=mode)
            file[name][:2] = given[:2]  # in parts, where BitGroom counts the positions
            file[name][2, 1:] = given[2, 1:]
            file[name][2, 0] = given[2, 0]
    with h5py.File(tmp_path / "theirs.nc") as theirs, h5py.File(tmp_path / "ours.nc") as ours:
        for name in ("plain", "filled"):
            assert int(ours[name].attrs[MODES[mode]].item()) == number
            assert int(theirs[name].attrs[MODES[mode]].item()) == number
            assert ours[name].compression == "gzip"
            first, second = (file[name][...].view(f"u{given.itemsize}") for file in (ours, theirs))
            assert np.array_equal(first, second), given[first != second]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tailrace.verify(tmp_path / "exact.nc", tmp_path / "ours.nc",
                        ignore_attributes=["_Quantize*"]).check()


@pytest.mark.parametrize("mode", MODES)
def test_special_values_stay_exact(mode, tmp_path):
    given = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, -3e-45, 3.4028235e38], "f4")
    with tailrace.open(tmp_path / "a.nc", "w") as file:
        file.create_variable("u", ("x",), data=given, significant_digits=2, quantize_mode=mode)
    with tailrace.open(tmp_path / "a.nc") as file:
        found = file["u"][...]
    exact = slice(0, 7) if mode == "BitGroom" else slice(0, 8)
    assert np.array_equal(found.view("u4")[exact], given.view("u4")[exact])
    assert np.isfinite(found[7])


@pytest.mark.parametrize("mode", MODES)
def test_the_loss_is_recorded_and_adds_up(mode, tmp_path):
    given = values("f4")
    with tailrace.open(tmp_path / "a.nc", "w", rel=1e-3, codec="trz") as file:
        file.create_variable("u", ("y", "x"), data=given, significant_digits=3, quantize_mode=mode)
    with tailrace.open(tmp_path / "a.nc") as file:
        u, bound = file["u"], float(file["u"].bound.partition("pw_rel=")[2])
        some = given != 0
        assert u.codec == "trz"  # without loss: the bound of the file is not for rounded values
        error = np.abs(u[...] - given.astype("f8"))[some] / np.abs(given[some])
        assert bound / 4 < error.max() <= bound
        with tailrace.open(tmp_path / "b.nc", "w") as other:
            for how in ({"rel": 1e-3}, {"significant_digits": 2}):
                with pytest.raises(ValueError, match="already lossy .*again=True"):
                    other.create_variable("v", ("y", "x"), data=u, **how)
            other.create_variable("u", ("y", "x"), data=u, significant_digits=2, again=True)
            other.create_variable("w", ("y", "x"), "f4", significant_digits=2)
            with pytest.raises(ValueError, match="already lossy"):
                other["w"][...] = u
    with tailrace.open(tmp_path / "b.nc") as other:
        assert other["u"].attrs["tailrace_losses"].count("pw_rel") == 2


def test_more_values_are_rounded_like_the_first(tmp_path):
    given = values("f4")
    how = {"significant_digits": 5, "quantize_mode": "BitRound"}
    with netCDF4.Dataset(tmp_path / "theirs.nc", "w") as file:
        file.createDimension("y", None)
        file.createDimension("x", given.shape[1])
        file.createVariable("u", "f4", ("y", "x"), **how)[0:3] = given
    with tailrace.open(tmp_path / "ours.nc", "w") as file:
        file.create_dimension("y", None)
        file.create_variable("u", ("y", "x"), data=given, **how)
    for path in ("theirs.nc", "ours.nc"):
        with tailrace.open(tmp_path / path, "a") as file:
            file["u"][3:6] = given
            file.create_variable("copy", ("y", "x"), data=given.repeat(2, 0), attrs={
                MODES["BitRound"]: np.int32(5)})  # an attribute of a copy rounds nothing
        with tailrace.open(tmp_path / path) as file:
            u = file["u"][...]
            assert np.array_equal(u[:3], u[3:]) and not np.array_equal(u[:3], given)
            assert np.array_equal(file["copy"][...], given.repeat(2, 0))


def test_xarray_rounds_and_appends(tmp_path):
    given = xr.Dataset({"t": (("time", "x"), smooth((6, 80)) + 280)})
    how = {"t": {"significant_digits": 9, "quantize_mode": "BitRound", "zlib": True}}
    given.to_netcdf(tmp_path / "theirs.nc", engine="netcdf4", encoding=how)
    given.tailrace.to_netcdf(tmp_path / "ours.nc", encoding=how, unlimited_dims="time", rel=1e-2)
    given.tailrace.to_netcdf(tmp_path / "ours.nc", append_dim="time")
    with xr.open_dataset(tmp_path / "ours.nc", engine="tailrace") as ours, \
            xr.open_dataset(tmp_path / "theirs.nc", engine="netcdf4") as theirs:
        for part in (slice(0, 6), slice(6, 12)):
            assert np.array_equal(ours.t[part], theirs.t)
        assert ours.t.attrs[MODES["BitRound"]] == 9


@pytest.mark.parametrize("keys, kind, words", [
    (dict(significant_digits=7), ValueError, "is 7, must be 1 to 6 digits for float32 and"),
    (dict(significant_digits=24, quantize_mode="BitRound"), ValueError, "1 to 23 bits"),
    (dict(significant_digits=-1), ValueError, "is -1"),
    (dict(significant_digits=2.5), TypeError, "2.5, must be a whole number"),
    (dict(significant_digits=2, quantize_mode="bits"), ValueError, "one of BitGroom, Granular"),
    (dict(quantize_mode="BitRound"), ValueError, "needs significant_digits="),
    (dict(significant_digits=2, abs=0.1), ValueError, "significant_digits and abs; give one"),
    (dict(significant_digits=2, least_significant_digit=1), ValueError, "give one"),
    (dict(significant_digits=2, dtype="i2"), ValueError, "not to values that are stored as int16")])
def test_what_cannot_be_rounded_is_refused(keys, kind, words, tmp_path):
    given = {"data": smooth((8, 9)), **keys}
    with tailrace.open(tmp_path / "a.nc", "w") as file:
        with pytest.raises(kind, match=f"'u'.*{words}"):
            file.create_variable("u", ("y", "x"), **given)
    with pytest.raises(kind, match=f"'u'.*{words}"):
        tailrace.write_dataset(xr.Dataset({"u": (("y", "x"), given["data"])}), tmp_path / "b.nc",
                               encoding={"u": keys})
    assert not (tmp_path / "b.nc").exists()
    with tailrace.open(tmp_path / "a.nc", "w") as file:  # 0: no rounding, as in netCDF4
        file.create_variable("u", ("y", "x"), data=smooth((8, 9)), significant_digits=0)


# --- bits -----------------------------------------------------------------------------------------


def entropy_of_pairs(first, second):
    """Return the mutual information of two arrays of bits, from their joint distribution."""
    joint = np.histogram2d(first, second, bins=[[-0.5, 0.5, 1.5]] * 2)[0] / first.size
    entropy = [-sum(p * np.log2(p) for p in probabilities.ravel() if p > 0)
               for probabilities in (joint.sum(0), joint.sum(1), joint)]
    return entropy[0] + entropy[1] - entropy[2]


@pytest.mark.parametrize("dtype, n_bits, exponent", [("f4", 32, 8), ("f8", 64, 11)])
def test_information_is_that_of_the_joint_distribution(dtype, n_bits, exponent):
    field = (np.cumsum(RANDOM.normal(size=(20, 3000)), axis=1) / 9).astype(dtype)
    found = tailrace.bits(field)
    for place in [0, *range(exponent + 1, exponent + 12)]:  # sign and mantissa
        plane = (field.view(f"u{n_bits // 8}") >> (n_bits - 1 - place)) & 1
        expected = entropy_of_pairs(plane[:, :-1].ravel(), plane[:, 1:].ravel())
        if expected > 1e-3:
            assert found.information[place] == pytest.approx(expected, rel=1e-9)
        else:
            assert found.information[place] < 1.1e-3
    total = np.cumsum(found.information) / found.information.sum()
    assert total[exponent + found] >= 0.99 > total[exponent + found - 1]
    assert found.dtype == dtype and found.pw_rel == 2.0 ** -(found + 1)
    assert f"{found} of {n_bits - exponent - 1} mantissa bits hold 99 %" in repr(found)


def test_results_equal_those_of_xbitinfo():
    """Numbers of xbitinfo 0.0.7 (get_bitinformation, get_keepbits) for these fields."""
    random = np.random.default_rng(1)
    walk = np.cumsum(random.normal(size=(20, 40, 500)), axis=2).astype("f4")
    found = tailrace.bits(walk)
    assert found == 2 and np.round(found.information[:13], 4).tolist() == [
        0.8249, 0.1177, 0, 0, 0, 0, 0.6614, 0.5311, 0.3007, 0.1383, 0.0442, 0.0061, 0.0002]
    wave = (280 + 5 * np.sin(np.linspace(0, 30, 100000)) + random.normal(size=100000) * 0.05)
    assert tailrace.bits(wave.astype("f4").reshape(10, 10000)) == 10


def test_random_bits_hold_no_information():
    mantissas = RANDOM.uniform(1, 2, (50, 2000))
    for field in (mantissas, mantissas.astype("f4")):
        found = tailrace.bits(field)
        assert found == 0 and not found.information.any()
    noisy = (np.linspace(1, 1.9, 100000) + RANDOM.normal(size=100000) * 2.0 ** -9).astype("f4")
    assert 6 <= tailrace.bits(noisy) <= 11  # the noise is random from about the ninth bit on


def test_axes_missing_values_and_more_information(tmp_path):
    field = np.cumsum(np.cumsum(RANDOM.normal(size=(200, 300)), axis=1), axis=1).astype("f4")
    along, across = tailrace.bits(field), tailrace.bits(field, axis=0)
    assert along > across and along.axis == 1 and across.axis == 0
    assert tailrace.bits(field, axis=[0, -1]) == along
    assert tailrace.bits(field, 0.5) < along <= tailrace.bits(field, 0.9999)
    gaps = field.copy()
    gaps[:, 100:120] = -999
    gaps[5] = np.nan
    masked = np.ma.masked_equal(gaps, -999)
    array = xr.DataArray(gaps, dims=("y", "x"), attrs={"_FillValue": -999.0})
    with tailrace.open(tmp_path / "a.nc", "w") as file:
        file.create_variable("u", ("y", "x"), data=gaps, fill_value=-999.0)
    with tailrace.open(tmp_path / "a.nc") as file:
        for found in (tailrace.bits(masked), tailrace.bits(array, axis="x"),
                      tailrace.bits(array.chunk(y=50)), tailrace.bits(file["u"], axis="x"),
                      tailrace.bits(gaps, fill_value=-999)):
            assert abs(found - along) <= 1


def test_packed_values_are_doubted():
    field = 280 + 20 * np.sin(np.linspace(0, 40, 100000))
    packed = (np.round(field / 0.01) * 0.01).astype("f4")
    with pytest.warns(RuntimeWarning, match="data: bits from .* seem to be packed or rounded"):
        found = tailrace.bits(packed)
    assert 8 <= found <= found.artificial_from < 20
    assert found.information[9 + found.artificial_from:].sum() > 0.1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tailrace.bits(field).artificial_from is None
        assert tailrace.bits(packed, 1.0) > found  # all of it


def test_an_undeclared_fill_value_is_named():
    walk = np.cumsum(RANDOM.normal(size=(40, 3000)), axis=1).astype("f4")
    gaps = walk.copy()
    gaps[:, 500:1500] = -1e10
    with pytest.warns(RuntimeWarning, match=r"data: -1e\+10 seems to be an undeclared fill value: "
                                            r"pass fill_value=-1e\+10"):
        distorted = tailrace.bits(gaps)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = tailrace.bits(gaps, fill_value=-1e10)
    assert abs(found - tailrace.bits(walk)) <= 1 and distorted != found


def test_zeros_do_not_count_as_information():
    """Rain in spots: noise from the fourth mantissa bit on, and zeros between the spots."""
    rain = np.exp(np.cumsum(RANDOM.normal(size=(40, 3000)), axis=1) * 0.1).astype("f4")
    rain *= (1 + RANDOM.normal(size=rain.shape) * 2.0 ** -4).astype("f4")
    wet = tailrace.bits(rain)
    dry = rain.copy()
    dry[:, 300:1100] = 0
    dry[:, 2000:2900] = -0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = tailrace.bits(dry)
    assert abs(found - wet) <= 1 and wet.zeros == 0 and "zeros" not in repr(wet)
    assert found.zeros == pytest.approx(1700 / 3000) and "zeros (57 %) left out" in repr(found)
    assert pickle.loads(pickle.dumps(found)).zeros == found.zeros
    with pytest.raises(ValueError, match="no two neighbours that are numbers other than 0 along"):
        tailrace.bits(np.array([0.0, 1.0, 0.0]))


@pytest.mark.parametrize("data, how, kind, words", [
    (np.arange(9), {}, TypeError, "always stored exactly"),
    (np.zeros((1, 1)), {}, ValueError, "single value"), (np.ones(9), {}, ValueError, "are equal"),
    (np.full(9, np.nan), {}, ValueError, "no two neighbours"),
    (np.arange(9.0), {"axis": 1}, ValueError, "axis is 1, must be 0 to 0"),
    (np.arange(9.0), {"axis": "x"}, ValueError, "axis is 'x'"),
    (np.arange(9.0).reshape(1, 9), {"axis": 0}, ValueError, "along which there is a single"),
    (np.arange(9.0), {"information": 2}, ValueError, "> 0 and <= 1"),
    (np.arange(9.0), {"information": "all"}, TypeError, "must be a number"),
    (xr.DataArray(np.arange(9.0), dims="t"), {"axis": "x"}, ValueError, "or one of t")])
def test_bits_are_refused_in_words(data, how, kind, words):
    with pytest.raises(kind, match=words):
        tailrace.bits(data, **how)
