"""suggest_bound: its numbers are those of stored arrays, for every kind of array."""

import json
import math
import sys

import h5py
import netCDF4
import numpy as np
import pytest

import cli_tools
import python_package
from cli_tools import smooth

tailrace = python_package.load()
FIELD = smooth((12, 40, 48))


def shells(values):
    """Return the windowed spectrum of a map, computed by plain sums over all waves."""
    values = values.astype("f8") - values.mean(dtype="f8")
    n_shells = min(256, min(values.shape) // 2)
    for axis, n in enumerate(values.shape):
        along = [1] * values.ndim
        along[axis] = n
        values = values * (0.5 - 0.5 * np.cos(2 * np.pi * np.arange(n) / n)).reshape(along)
    power = np.abs(np.fft.fftn(values)) ** 2 / values.size ** 2
    k = np.meshgrid(*[np.fft.fftfreq(n) for n in values.shape], indexing="ij")
    shell = np.floor(2 * n_shells * np.sqrt(sum(one**2 for one in k)) + 0.5)
    return np.array([power[shell == at + 1].sum() for at in range(n_shells)])


def spectrum(values):
    """Return the mean of the spectra of a field's maps."""
    maps = values.reshape(-1, *values.shape[-2:]) if values.ndim > 1 else [values]
    return np.mean([shells(one) for one in maps], axis=0)


@pytest.mark.parametrize("shape", [(3000,), (40, 48), (12, 20, 31), (3, 8, 20, 24)])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_numbers_are_those_of_the_file(shape, dtype, tmp_path):
    field = smooth(shape).astype(dtype)
    table = tailrace.suggest_bound(field, abs=0.02, rel=[1e-2, 1e-4], psnr=70, pw_rel=1e-3)
    assert [row.bound for row in table] == ["abs=0.02", "rel=0.01", "rel=0.0001", "pw_rel=0.001",
                                            "psnr=70"]
    assert table.n_values == field.size and table.n_special == 0
    for row in table:
        path = tmp_path / "u.nc"
        with tailrace.open(path, "w") as file:
            file.create_variable("u", [f"d{n}" for n in range(len(shape))], data=field,
                                 codec="trz", bound=row.bound)
        with h5py.File(path) as file:
            decoded = file["u"][...]
            assert row.encoded_bytes == file["u"].id.get_storage_size()
        assert row.raw_bytes == field.nbytes and row.ratio == field.nbytes / row.encoded_bytes
        first, second = field.astype("f8"), decoded.astype("f8")
        assert row.max_error == np.abs(second - first).max()
        if row.bound.startswith("pw_rel"):
            assert row.absolute_bound is None
        else:
            assert 0 < row.max_error <= row.absolute_bound
        assert row.mean_change == pytest.approx(second.mean() - first.mean(), abs=1e-12)
        assert row.mean_shift == pytest.approx(row.mean_change / first.std(), rel=1e-6)
        assert row.std_change == pytest.approx(second.std() / first.std() - 1, abs=1e-9)
        off, of = (sum(np.square(np.diff(one, axis=a)).sum()
                       for a in range(max(0, len(shape) - 2), len(shape)))
                   for one in (second - first, first))
        assert row.gradient_error == pytest.approx(math.sqrt(off / of), rel=1e-9)
        psnr = 20 * np.log10(np.ptp(first) / np.sqrt(np.square(second - first).mean()))
        assert row.psnr_db == pytest.approx(psnr)
        assert row.power == pytest.approx(spectrum(second), rel=1e-6)
    assert table.wave_numbers[-1] == 0.5
    assert table.power == pytest.approx(spectrum(field), rel=1e-6)
    assert table.mean == pytest.approx(first.mean()) and table.std == pytest.approx(first.std())
    assert table.range == (first.min(), first.max())


def test_spectra_along_three_dimensions():
    field = smooth((3, 8, 20, 24))
    table = tailrace.suggest_bound(field, rel=1e-3, axes=(1, 2, 3))
    assert table.axes == (1, 2, 3)
    assert table.power == pytest.approx(np.mean([shells(one) for one in field], axis=0), rel=1e-6)


@pytest.mark.parametrize("shape", [(9000,), (24, 40), (6, 24, 40), (2, 5, 24, 1, 40)])
def test_verify_and_report_have_the_same_spectra(shape, tmp_path):
    """White noise below a smooth field: rel=1e-2 changes the power of its short waves."""
    field = smooth(shape)
    field[..., 1::7] = np.nan
    names = [f"d{n}" for n in range(len(shape))]
    for path, bound in (("a.nc", {}), ("b.nc", {"codec": "trz", "rel": 1e-2})):
        with tailrace.open(tmp_path / path, "w") as file:
            file.create_variable("u", names, data=field, **bound)
    table = tailrace.suggest_bound(field, rel=1e-2)
    made = tailrace.report(tmp_path / "a.nc", tmp_path / "b.nc", tmp_path / "r.html", figures=False)
    cli_tools.tailrace("verify", tmp_path / "a.nc", tmp_path / "b.nc", "--report",
                       tmp_path / "r.json")
    found = json.loads((tmp_path / "r.json").read_text())["fields"][0]["fidelity"]
    ratio = np.array(found["spectrum"]["ratio"])
    assert np.abs(ratio - 1).max() > 0.05
    assert tuple(found["map_axes"]) == table.axes == made["u"].near._axes
    assert table.wave_numbers == pytest.approx(found["spectrum"]["frequency"])
    assert table[0].power / table.power == pytest.approx(ratio, rel=1e-6)
    assert made["u"].near.power_decoded / made["u"].near.power == pytest.approx(ratio, rel=1e-6)
    kept = np.argmax(np.abs(ratio - 1) > 0.05) / len(ratio)
    assert table[0].spectrum_kept == made["u"].near.spectrum_kept == kept
    text = (f"along dimensions {', '.join(map(str, table.axes))}" if len(table.axes) > 1
            else "along dimension 0")
    assert text in str(table)
    assert f"along {', '.join(names[at] for at in table.axes)}" in (tmp_path / "r.html").read_text()


def test_without_a_bound_six_are_tried_and_one_is_suggested():
    table = tailrace.suggest_bound(FIELD)
    assert [row.bound for row in table] == [f"rel={10.0 ** -n:g}" for n in range(1, 7)]
    ratios = [row.ratio for row in table]
    assert ratios == sorted(ratios, reverse=True)
    assert [row.gradient_error for row in table] == sorted(
        (row.gradient_error for row in table), reverse=True)
    found = table.suggest()
    assert found in list(table) and found.gradient_error <= 0.05
    looser = [row for row in table if row.ratio > found.ratio]
    assert looser and all(row.gradient_error > 0.05 or row.spectrum_kept < 0.5
                          or abs(row.mean_shift) > 1e-3 for row in looser)
    with pytest.raises(ValueError, match=(
            r"data: none of the bounds rel=0.1 to rel=1e-06 is within the limits. The nearest is "
            r"rel=1e-06: gradient changes by .* %, must be at most 1e-10 %. Try smaller bounds: "
            r"suggest_bound\(..., rel=1e-07\), or greater limits: suggest\(gradient=")) as failure:
        table.suggest(gradient=1e-12)
    greater = float(str(failure.value).rpartition("=")[2].rstrip(")"))
    assert table.suggest(gradient=greater).bound == "rel=1e-06"
    with pytest.raises(ValueError, match=r"spectrum keeps .* %, must be at least 200 %"):
        table.suggest(spectrum=2.0)
    with pytest.raises(ValueError, match=r"suggest_bound\(..., psnr=30\)"):
        tailrace.suggest_bound(FIELD, psnr=10).suggest()
    assert "none of these" in str(tailrace.suggest_bound(FIELD, rel=0.3))


@pytest.mark.parametrize("where", ["array", "masked", "file", "h5py", "netCDF4", "xarray", "dask"])
def test_special_values_are_kept_and_left_out(where, tmp_path):
    field = FIELD.copy()
    field[:, :5, :7] = np.nan
    field[3, 20:30] = -999
    field[0, 30, 30] = np.inf
    good = np.isfinite(field) & (field != -999)
    path = tmp_path / "u.nc"
    with tailrace.open(path, "w") as file:
        file.create_variable("u", ("z", "y", "x"), data=field, fill_value=-999.0,
                             attrs={"units": "K"})
    n_special = int((~good).sum())
    keywords, opened = {}, None
    if where == "array":
        data, keywords = field, {"fill_value": -999}
    elif where == "masked":
        data = np.ma.masked_equal(field, -999)
    elif where == "file":
        opened = tailrace.open(path)
        data = opened["u"]
    elif where == "h5py":
        opened = h5py.File(path)
        data = opened["u"]
    elif where == "netCDF4":
        opened = netCDF4.Dataset(path)
        data = opened["u"]
    else:
        xarray = pytest.importorskip("xarray")
        opened = xarray.open_dataset(path, engine="tailrace",
                                     chunks={} if where == "dask" else None)
        data = opened.u
    table = tailrace.suggest_bound(data, rel=1e-3, **keywords)
    if where == "netCDF4":
        assert np.ma.isMaskedArray(data[3]) and data.mask and data.scale  # Settings are unchanged.
    if opened is not None:
        opened.close()
    row, = table
    assert table.n_special == n_special and table.n_values == field.size - n_special
    assert table.mean == pytest.approx(field[good].mean(dtype="f8"))
    assert 0 < row.max_error <= row.absolute_bound == pytest.approx(1e-3 * np.ptp(field[good]))
    assert f"{n_special:,} values are NaN" in str(table)
    if where not in ("array", "masked"):
        assert table.name == "u" and table.units == "K" and " K" in str(table)


@pytest.mark.parametrize("where", ["missing_value", "fillvalue", "netCDF4"])
def test_fill_values_of_others(where, tmp_path):
    field = FIELD.copy()
    field[:, :5] = 1e20
    with h5py.File(tmp_path / "u.h5", "w") as file:
        u = file.create_dataset("u", data=field, fillvalue=1e20 if where == "fillvalue" else None)
        if where != "fillvalue":
            u.attrs["missing_value"] = np.array([1e20], "f4")
    opened = netCDF4.Dataset if where == "netCDF4" else h5py.File
    with opened(tmp_path / "u.h5") as file:
        table = tailrace.suggest_bound(file["u"], rel=1e-3)
    assert table.n_special == 12 * 5 * 48 and table.unnamed_fill is None
    assert "suggested" in str(table)


def test_a_fill_value_that_nobody_names_is_said():
    field = FIELD.copy()
    field[:, :5] = -1e34
    table = tailrace.suggest_bound(field)
    assert table.unnamed_fill == np.float32(-1e34) and "fill_value=-1e+34" in str(table)
    assert "suggested" not in str(table) and "bold" not in table._repr_html_()
    named = tailrace.suggest_bound(field, fill_value=-1e34)
    assert named.unnamed_fill is None and "bold" in named._repr_html_()


def test_a_fill_value_that_was_given_is_not_asked_for():
    field = np.abs(FIELD) ** 20
    field[:, :5] = -999
    for how, asked in (({}, True), ({"fill_value": -999.0}, False)):
        table = tailrace.suggest_bound(np.where(field < 0, np.nan, field) if asked else field,
                                       rel=[0.5], **how)
        assert table[0].below > 0.25 and (table.fill_value is None) == asked
        assert ("as fill_value=" in str(table)) == asked
        with pytest.raises(ValueError, match=r"it exceeds .* % of the values") as failure:
            table.suggest()
        assert ("as fill_value=" in str(failure.value)) == asked


def test_a_bound_above_the_values_is_not_suggested():
    field = FIELD.copy()
    field[:, :5] = 1e10
    table = tailrace.suggest_bound(field)
    assert table.unnamed_fill == 1e10
    with pytest.raises(ValueError, match=r"pass fill_value=1e\+10"):
        table.suggest()
    assert "fill_value=1e+10" in str(table) and "suggested" not in str(table)
    below = np.count_nonzero((np.abs(field) < table[0].absolute_bound) & (field != 0))
    assert table[0].below == below / np.count_nonzero(field) > 0.8
    field[:, 1:5] = FIELD[:, 1:5]
    field[:, 0] = np.geomspace(1e6, 1e10, 48)  # A broad distribution instead of a fill value.
    table = tailrace.suggest_bound(field)
    assert table.unnamed_fill is None
    with pytest.raises(ValueError, match="it exceeds .* % of the values"):
        table.suggest()
    assert "smaller than the bound rel=1e-06" in str(table)
    assert "fill_value=" not in str(tailrace.suggest_bound(FIELD, rel=1e-3))


@pytest.mark.parametrize("fill", [None, -9.0])
def test_large_arrays_are_judged_by_whole_chunks(fill):
    field = smooth((40, 60, 50))
    field[5, 5, 5] = 30  # The range includes it, even if its chunk is not sampled.
    if fill is not None:
        field[::3, ::3] = fill
    table = tailrace.suggest_bound(field, rel=1e-3, psnr=60, abs=1e-2, sample_bytes=50_000,
                                   chunks=(8, 16, 16), fill_value=fill)
    assert "a sample of 6 of 45 chunks of 8x16x16" in table.sample
    assert "(49.2 kB of 480.0 kB)" in table.sample and table.sample in " ".join(str(table).split())
    n_bytes = 6 * 8 * 16 * 16 * 4
    assert {row.raw_bytes for row in table} == {n_bytes}
    assert table.n_values + table.n_special == n_bytes // 4
    good = field[field != fill] if fill is not None else field
    span = float(good.max()) - float(good.min())
    by_bound = {row.bound: row for row in table}
    assert by_bound["rel=0.001"].absolute_bound == pytest.approx(1e-3 * span)
    assert by_bound["psnr=60"].absolute_bound == pytest.approx(1e-3 * span)
    assert by_bound["abs=0.01"].absolute_bound == 0.01
    assert all(0 < row.max_error <= row.absolute_bound for row in table)
    again = tailrace.suggest_bound(field, rel=1e-3, psnr=60, abs=1e-2, sample_bytes=50_000,
                                   chunks=(8, 16, 16), fill_value=fill)
    assert list(again) == list(table)
    tiny = tailrace.suggest_bound(field, abs=1e-2, sample_bytes=1)
    assert "a sample of 1 of" in tiny.sample


def test_the_chunks_of_a_file_are_sampled_as_they_are(tmp_path):
    field = smooth((40, 60, 50))
    with tailrace.open(tmp_path / "u.nc", "w") as file:
        file.create_variable("u", ("z", "y", "x"), data=field, chunks=(10, 20, 25), codec="trz",
                             abs=1e-3)
    with tailrace.open(tmp_path / "u.nc") as file:
        table = tailrace.suggest_bound(file["u"], abs=1e-2, sample_bytes=100_000)
    assert "5 of 24 chunks of 10x20x25" in table.sample


@pytest.mark.parametrize("codec, settings", [("sz3", {}), ("portable", {}), ("zfp", {}),
                                             ("trz", {"preset": "ratio"})])
def test_other_codecs(codec, settings):
    if codec in ("sz3", "zfp"):
        pytest.importorskip("hdf5plugin")
    row, = tailrace.suggest_bound(FIELD, abs=1e-2, codec=codec, **settings)
    assert 0 < row.max_error <= 1e-2 and row.ratio > 1.5


@pytest.mark.parametrize("data", [np.ones((4, 5)), np.full((4, 5), np.nan), np.zeros((1, 1, 1)),
                                  np.arange(2.0)])
def test_nothing_to_lose(data):
    table = tailrace.suggest_bound(data)
    for row in table:
        assert row.max_error <= (row.absolute_bound or 0) and row.ratio > 0
        assert row.psnr_db is None or row.max_error > 0
    assert not {"inf", "-inf", "NaN"} & set(str(table).replace("NaN, inf", "").split())


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("factor", [1e200, 1.7e308, 1e-290, 1e-310])
def test_values_whose_squares_are_no_numbers(factor):
    """The shares must equal those of values of ordinary size."""
    near = np.clip(FIELD / np.abs(FIELD).max(), -1, 1).astype("f8")
    table = tailrace.suggest_bound(near * factor, rel=[1e-2, 1e-3])
    expected = tailrace.suggest_bound(near, rel=[1e-2, 1e-3])
    assert table.std == pytest.approx(factor * expected.std, rel=1e-6)
    assert table.mean == pytest.approx(factor * expected.mean, rel=1e-6)
    for row, other in zip(table, expected):
        assert row.max_error <= row.absolute_bound
        if factor in (1.7e308, 1e-310):
            assert row.max_error == row.gradient_error == 0  # trz stores such values exactly.
            continue
        assert row.max_error > 0
        assert row.gradient_error == pytest.approx(other.gradient_error, rel=0.3)
        assert row.psnr_db == pytest.approx(other.psnr_db, abs=1)
        assert row.spectrum_kept == pytest.approx(other.spectrum_kept, abs=0.2)
    assert max(map(len, str(table).splitlines())) <= 80


REFUSED = {
    "integers": (lambda: tailrace.suggest_bound(np.arange(9)), TypeError,
                 "data holds int64, which is always stored exactly"),
    "halves": (lambda: tailrace.suggest_bound(np.ones(9, "f2")), TypeError, "float16"),
    "texts": (lambda: tailrace.suggest_bound(["a"]), TypeError, "bounds apply to float32"),
    "no values": (lambda: tailrace.suggest_bound(np.ones((0, 3))), ValueError, "no values"),
    "a scalar": (lambda: tailrace.suggest_bound(3.0), ValueError, "single value"),
    "a bound of 0": (lambda: tailrace.suggest_bound(FIELD, abs=0), ValueError, "abs is 0"),
    "a text": (lambda: tailrace.suggest_bound(FIELD, rel="1e-3"), TypeError, "rel is '1e-3'"),
    "no number": (lambda: tailrace.suggest_bound(FIELD, rel=["x"]), TypeError, "rel is 'x'"),
    "axes": (lambda: tailrace.suggest_bound(FIELD, axes=[0, 5]), ValueError,
             "axis is 5, must be 0 to 2"),
    "chunks": (lambda: tailrace.suggest_bound(FIELD, chunks=(4,)), ValueError, "chunks are (4,)"),
    "sample": (lambda: tailrace.suggest_bound(FIELD, sample_bytes=0), ValueError, "sample_bytes"),
    "codec": (lambda: tailrace.suggest_bound(FIELD, codec="zz"), ValueError, "zz"),
    "setting": (lambda: tailrace.suggest_bound(FIELD, preset="no"), ValueError, "preset"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_meant_is_refused_in_words(case):
    call, kind, words = REFUSED[case]
    with pytest.raises(kind) as caught:
        call()
    assert words in str(caught.value)


def test_tables_fit_a_terminal_and_escape_what_they_are_told(tmp_path):
    with h5py.File(tmp_path / "u.nc", "w") as file:
        file["<b>u&"] = 1e7 * FIELD
        file["<b>u&"].attrs["units"] = "<i>" * 30
    with h5py.File(tmp_path / "u.nc") as file:
        table = tailrace.suggest_bound(file["<b>u&"], pw_rel=[1.234567e-5, 0.5], abs=1234.5678)
    lines = str(table).splitlines()
    assert max(map(len, lines)) <= 80 or any("<i>" * 26 in line for line in lines)
    assert max(len(line) for line in lines if "<i>" not in line) <= 80
    page = table._repr_html_()
    assert "<b>u" not in page and "<i>" not in page and "&lt;b&gt;u&amp;" in page
    assert page.count("<tr") == 4


def test_a_plot_needs_matplotlib(monkeypatch):
    table = tailrace.suggest_bound(FIELD, rel=[1e-2, 1e-3])
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(ImportError, match="pip install matplotlib"):
        table.plot()


def test_a_plot(tmp_path):
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    axes = tailrace.suggest_bound(FIELD, rel=[1e-2, 1e-3]).plot()
    ratio, changes, spectra = axes
    assert len(ratio.lines[0].get_ydata()) == 2 and len(spectra.lines) == 3
    assert {line.get_label() for line in spectra.lines} == {"rel=0.01", "rel=0.001", "original"}
    ratio.figure.savefig(tmp_path / "plot.png")
    assert (tmp_path / "plot.png").stat().st_size > 10_000


def test_nothing_is_left_behind(tmp_path, monkeypatch, caplog):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with caplog.at_level("INFO", "tailrace"):
        tailrace.suggest_bound(FIELD, abs=0.1)
        with pytest.raises(ValueError, match="zz"):
            tailrace.suggest_bound(FIELD, codec="zz")
    assert list(tmp_path.iterdir()) == [] and caplog.text == ""
