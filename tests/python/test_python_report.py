"""report: the page has the results of verify() and NumPy, and emphasizes violated bounds."""

import base64
import html.parser
import re
import sys
import warnings

import h5py
import netCDF4
import numpy as np
import pytest

import python_package
from cli_tools import smooth

tailrace = python_package.load()
report_module = sys.modules["tailrace._report"]
FIELD = smooth((12, 40, 48))
EVIL = '<script>alert("x")</script>&$_$'


class Checked(html.parser.HTMLParser):
    """Parser that checks that tags are closed, and collects texts, pictures and references."""

    VOID = {"meta", "img", "br"}

    def __init__(self):
        super().__init__()
        self.open, self.tags, self.text, self.pictures, self.links = [], [], "", [], []
        self.ids = set()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        found = dict(attrs)
        self.ids.add(found.get("id"))
        if tag == "img":
            self.pictures.append(found["src"])
        self.links += [found[key] for key in ("href", "src") if key in found]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data


def read(path):
    """Parse the page; check that it is valid HTML without external resources."""
    page = Checked()
    page.feed(path.read_text(encoding="utf-8"))
    page.close()
    assert page.open == [] and "script" not in page.tags and "link" not in page.tags
    for link in page.links:
        assert link.startswith("data:image/svg+xml;base64,") or link[1:] in page.ids
    page.words = " ".join(page.text.split())
    return page


def write(path, field, **how):
    with tailrace.open(path, "w") as file:
        file.create_variable("u", ("z", "y", "x"), data=field, fill_value=-999.0,
                             chunks=(4, 40, 48), attrs={"units": "m/s"}, **how)
        file.create_variable("g/n", ("y",), data=np.arange(40))
        file.create_variable("same", ("y",), data=np.arange(40.0))


@pytest.fixture
def files(tmp_path):
    field = FIELD.copy()
    field[0, :3] = np.nan
    field[5, 5] = -999
    write(tmp_path / "first.nc", field)
    write(tmp_path / "small.nc", field, rel=1e-3, codec="trz")
    return tmp_path / "first.nc", tmp_path / "small.nc", field


def test_the_page_says_what_the_files_hold(files, tmp_path):
    pytest.importorskip("matplotlib")
    first, small, field = files
    made = tailrace.report(first, small, tmp_path / "report.html", title="Winds & waves")
    assert made and made.ok and made.check() is made and set(made) == {"/u", "/g/n", "/same"}
    with h5py.File(small) as file:
        decoded = file["u"][...]
        stored = file["u"].id.get_storage_size()
    good = np.isfinite(field) & (field != -999)
    errors = decoded[good].astype("f8") - field[good]
    one = made["u"]
    assert one.kept and one.shape == (12, 40, 48) and one.chunks == (4, 40, 48)
    assert one.codec == "trz" and one.bound == "rel=0.001" and one.units == "m/s"
    assert one.max_error == np.abs(errors).max() <= one.absolute_bound
    assert one.absolute_bound == pytest.approx(1e-3 * np.ptp(field[good]))
    assert one.ratio == pytest.approx(field.nbytes / stored)
    assert one.n_beyond_bound == 0
    assert one.effects.mean_change == pytest.approx(errors.mean(), abs=1e-9)
    assert one.effects.psnr_db == pytest.approx(one.psnr_db)
    histogram = one.drawn.histogram
    expected, _ = np.histogram(errors, histogram.edges)
    assert histogram.limit == one.absolute_bound and histogram.n_lost == 0
    assert histogram.counts.sum() == good.sum()
    assert np.abs(histogram.counts - expected).sum() <= 4  # Rounding matters on edges.
    at_middle = np.where(good[6], np.abs(decoded[6].astype("f8") - field[6]), np.nan)
    assert np.array_equal(one.drawn.error_map, at_middle, equal_nan=True)
    assert one.drawn.slice_text == "at z[6]" and one.drawn.map_dims == ("y", "x")
    assert made["g/n"].kept and made["g/n"].drawn is None and made["same"].max_error == 0
    page = read(tmp_path / "report.html")
    for words in ("Winds & waves", "All 3 variables are within their error bounds", "4x40x48",
                  f"ratio {one.ratio:.4g}", f"{one.max_error:.4g} m/s", f"{one.psnr_db:.1f}",
                  "144 NaN, 48 fill; all kept bit for bit", "equal to the last bit",
                  str(first), str(small), "at z[6]"):
        assert words in page.words, words
    assert len(page.pictures) == 1 and "FAIL" not in page.words
    picture = base64.b64decode(page.pictures[0].partition(",")[2])
    assert picture.startswith(b"<?xml") and b"</svg>" in picture
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["first.nc", "report.html", "small.nc"]


@pytest.mark.parametrize("how", [{"abs": 1e-2}, {"pw_rel": 1e-3}, {"psnr": 60.0}])
def test_a_value_beyond_its_bound_is_said_loudly(how, tmp_path):
    write(tmp_path / "first.nc", 3 + FIELD)
    worse = 3 + FIELD
    worse[2, 3, 4:9] += 2
    worse[6, 20, 20] = np.nan
    write(tmp_path / "small.nc", worse, codec="trz", **how)
    made = tailrace.report(tmp_path / "first.nc", tmp_path / "small.nc", tmp_path / "r.html",
                           figures="abs" in how)
    assert not made and not made.ok and made["u"].failed and made["u"].n_beyond_bound == 6
    assert made["u"].drawn.histogram.n_lost == 1 and made["u"].effects.n_lost == 1
    counts = made["u"].drawn.histogram
    assert counts.limit > 2 * (how.get("pw_rel") or 1e-3) and counts.counts.sum() == FIELD.size - 1
    with pytest.raises(tailrace.BoundError, match="6 values beyond the bound"):
        made.check()
    page = read(tmp_path / "r.html")
    assert "BOUND BROKEN: 6 values of 1 variable beyond the error bound (u)" in page.words
    assert "FAIL: 6 of 23,040 values beyond the bound" in page.words
    assert "[2, 3, 4]" in page.words and "All 3" not in page.words
    assert page.text.index("BOUND BROKEN") < page.text.index("first.nc")


def test_a_missing_variable_is_a_problem(files, tmp_path):
    first, _, _ = files
    with tailrace.open(tmp_path / "less.nc", "w") as file:
        file.create_variable("same", ("y",), data=np.arange(40.0))
    made = tailrace.report(first, tmp_path / "less.nc", tmp_path / "r.html")
    assert not made.ok and any("u" in problem for problem in made.problems)
    with pytest.raises(tailrace.CopyError):
        made.check()
    page = read(tmp_path / "r.html")
    assert all(" ".join(problem.split()) in page.words for problem in made.problems)
    assert "within their error bounds" not in page.words


def test_a_bound_above_the_values_is_doubted(tmp_path):
    field = FIELD.copy()
    field[:, :5] = 1e10
    for name, fill in (("doubt", None), ("good", 1e10)):
        doubted = name == "doubt"
        how = {"rel": 1e-3, "codec": "trz", "allow_wide_bound": doubted}
        for part, words in (("first", {}), ("small", how)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore" if doubted else "error")
                with tailrace.open(tmp_path / f"{part}.nc", "w") as file:
                    file.create_variable("u", ("z", "y", "x"), data=field, fill_value=fill,
                                         **words)
        made = tailrace.report(tmp_path / "first.nc", tmp_path / "small.nc", tmp_path / "r.html",
                               figures=False)
        page = read(tmp_path / "r.html")
        assert made.ok and ("DOUBTFUL /u" in page.words) == doubted == bool(made.doubts)
        verified = tailrace.verify(tmp_path / "first.nc", tmp_path / "small.nc")
        assert verified["u"].details["doubtful"] == doubted == bool(verified.doubts)
        for found in (made, verified):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                assert found.check() is found
            assert [str(one.message) for one in caught] == found.doubts


def test_an_absolute_bound_that_erases_the_values_is_doubted(tmp_path):
    for part, words in (("first", {}), ("small", {"abs": 2 * np.ptp(FIELD), "codec": "trz"})):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with tailrace.open(tmp_path / f"{part}.nc", "w") as file:
                file.create_variable("u", ("z", "y", "x"), data=FIELD, **words)
                file.create_variable("same", ("z", "y", "x"), data=0 * FIELD + 1, **words)
    assert len(caught) == 1 and "at least half of the range" in str(caught[0].message)
    made = tailrace.report(tmp_path / "first.nc", tmp_path / "small.nc", tmp_path / "r.html",
                           figures=False)
    page = read(tmp_path / "r.html")
    assert made.ok and len(made.doubts) == 1 and "DOUBTFUL /u" in page.words
    assert page.text.index("DOUBTFUL /u") < page.text.index("first.nc")


def test_what_comes_from_files_is_escaped(tmp_path):
    folder = tmp_path / "a<b>&"
    folder.mkdir()
    for name, values in (("first.h5", FIELD), ("<i>.h5", FIELD + 1e-3)):
        with h5py.File(folder / name, "w") as file:
            file["u"] = values
            for key in ("units", "long_name", "history"):
                file["u"].attrs[key] = EVIL
            file["u"].attrs[EVIL] = "x"
            file["<b>w"] = values
    made = tailrace.report(folder / "first.h5", folder / "<i>.h5", tmp_path / "r.html", abs=1,
                           title=EVIL)
    assert made.ok
    text = (tmp_path / "r.html").read_text()
    page = read(tmp_path / "r.html")
    assert {"script", "b", "i"} & set(page.tags) == set() and "<script" not in text
    assert page.text.count(EVIL) >= 6 and "<b>w" in page.text and "a<b>&" in page.text
    assert "<b>w" not in made._repr_html_() and "&lt;b&gt;w" in made._repr_html_()


def test_files_of_others_without_a_bound_get_no_verdict(tmp_path):
    for name, values in (("first.h5", FIELD), ("other.h5", np.round(FIELD, 2))):
        with h5py.File(tmp_path / name, "w") as file:
            file["u"] = values
            file["n"] = np.arange(5)
    told = []
    made = tailrace.report(tmp_path / "first.h5", tmp_path / "other.h5", tmp_path / "r.html",
                           figures=False, progress=lambda done, total: told.append((done, total)))
    assert made["u"].kept is None and made["u"].bound == "none known" and made["n"].kept
    assert made["u"].max_error == np.abs(np.round(FIELD, 2).astype("f8") - FIELD).max()
    assert told and told[-1][0] == told[-1][1]
    words = read(tmp_path / "r.html").words
    assert ("1 of 2 variables have no known error bound to be held to; 1 within "
            "theirs") in words
    assert tailrace.report(tmp_path / "first.h5", tmp_path / "other.h5", tmp_path / "r.html",
                           figures=False, abs=0.0051)["u"].kept


def without_matplotlib(monkeypatch):
    for name in [key for key in sys.modules if key.partition(".")[0] == "matplotlib"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)


def test_without_matplotlib_there_are_tables(files, tmp_path, monkeypatch):
    first, small, _ = files
    without_matplotlib(monkeypatch)
    assert tailrace.report(first, small, tmp_path / "r.html").ok
    page = read(tmp_path / "r.html")
    assert page.pictures == [] and "pip install matplotlib" in page.words
    assert "All 3 variables" in page.words


def test_figures_can_be_left_out(files, tmp_path):
    first, small, _ = files
    tailrace.report(first, small, tmp_path / "r.html", figures=False)
    page = read(tmp_path / "r.html")
    assert page.pictures == [] and "matplotlib" not in page.words
    with pytest.raises(TypeError, match="figures"):
        tailrace.report(first, small, tmp_path / "r.html", figures="no")


@pytest.mark.parametrize("shape, dtype", [((), "f4"), ((1,), "f8"), ((5000,), "f4"), ((1, 1), "f4"),
                                          ((7, 1, 30), "f8"), ((3, 4, 20, 30), "f4"),
                                          ((6, 20), "i2"), ((), "i2")])
def test_arrays_of_every_rank(shape, dtype, tmp_path):
    first = (1000 * smooth(shape or (1,)).reshape(shape)).astype(dtype)
    second = first + np.asarray(1, dtype)
    made = tailrace.report(first, second, tmp_path / "r.html", abs=1.5)
    one = made["data"]
    assert made.ok and one.kept and one.max_error == pytest.approx(1, rel=1e-3)
    assert one.ratio is None and one.codec == "" and one.shape == shape
    assert one.drawn.histogram.counts.sum() == first.size
    assert not tailrace.report(first, second, tmp_path / "r.html", abs=0.5, figures=False).ok
    found = tailrace.report(first, second, tmp_path / "r.html", figures=False)
    assert found.ok and found["data"].kept is None and found["data"].bound == "none known"
    assert "1 of 1 variables have no known error bound" in read(tmp_path / "r.html").words


def test_arrays_files_and_mappings_go_together(files, tmp_path):
    first, small, field = files
    page = tmp_path / "r.html"
    masked = np.ma.masked_equal(field, -999)
    assert tailrace.report({"u": masked}, small, page, figures=False, only="u").ok
    with tailrace.open(small) as file:
        decoded = file["u"][...]
        assert tailrace.report({"u": field}, {"u": decoded}, page, figures=False, abs=0.1)["u"].kept
        # A single array is compared with the file's variable of its shape.
        made = tailrace.report(first, file["u"], page, figures=False, abs=0.1, only="u")
    assert list(made) == ["/u"] and made.ok
    with pytest.raises(ValueError, match="compared with 2 variables"):
        tailrace.report(field, {"a": field, "b": field}, page)
    with netCDF4.Dataset(first) as file:
        made = tailrace.report({"u": field}, {"u": file["u"]}, page, figures=False, abs=0.1)
        assert made.ok and "144 NaN, 48 fill" in read(page).words and file["u"].mask
    xarray = pytest.importorskip("xarray")
    pair = [xarray.open_dataset(path, engine="tailrace", mask_and_scale=False)[["u", "same"]]
            for path in (first, small)]
    made = tailrace.report(*pair, page, figures=False, rel=1e-3)
    assert made.ok and set(made) == {"/u", "/same"} and "144 NaN, 48 fill" in read(page).words


def test_classic_files_and_npy(tmp_path):
    np.save(tmp_path / "u.npy", FIELD)
    with netCDF4.Dataset(tmp_path / "classic.nc", "w", format="NETCDF3_64BIT_OFFSET") as file:
        for name, n in zip("zyx", FIELD.shape):
            file.createDimension(name, n)
        file.createVariable("u", "f4", ("z", "y", "x"))[:] = FIELD
    with tailrace.open(tmp_path / "small.nc", "w") as file:
        file.create_variable("u", ("z", "y", "x"), data=FIELD, abs=1e-2, codec="trz")
    for original in ("classic.nc", "u.npy"):
        made = tailrace.report(tmp_path / original, tmp_path / "small.nc", tmp_path / "r.html",
                               figures=False)
        assert made.ok and len(made) == 1
        one, = made.values()
        assert one.drawn.histogram.counts.sum() == FIELD.size, original


@pytest.mark.parametrize("shape, chunks", [((40, 33, 50), (7, 10, 50)), ((5000, 3), None),
                                           ((3, 5000), (1, 999)), ((9999,), (100,))])
def test_boxes_cover_everything_once_in_whole_chunks(shape, chunks):
    seen = np.zeros(shape, int)
    for box in report_module.boxes(shape, chunks, 4, 20_000):
        seen[box] += 1
        extents = [part.stop - part.start for part in box]
        assert np.prod(extents) * 4 <= max(20_000, 4 * np.prod(chunks or [1]))
        if chunks:
            assert all(part.start % n == 0 for part, n in zip(box, chunks))
    assert (seen == 1).all()


def test_memory_is_that_of_boxes(tmp_path, monkeypatch):
    """Each read is at most a box, the cells of the middle slice, or the box of the spectra."""
    shape = (16, 300, 700)
    field = smooth(shape)
    with tailrace.open(tmp_path / "a.nc", "w") as file:
        file.create_variable("u", ("z", "y", "x"), data=field, chunks=(8, 100, 100))
    with tailrace.open(tmp_path / "b.nc", "w") as file:
        file.create_variable("u", ("z", "y", "x"), data=field, chunks=(8, 100, 100), codec="trz",
                             abs=0.01)
    monkeypatch.setattr(report_module, "_SPECTRUM_VALUES", 100_000)
    monkeypatch.setattr(report_module.boxes, "__defaults__", (1 << 20,))
    sizes = []
    read_part = tailrace.Variable.__getitem__

    def counting(variable, key):
        values = read_part(variable, key)
        sizes.append(np.asarray(values).nbytes)
        return values

    monkeypatch.setattr(tailrace.Variable, "__getitem__", counting)
    made = tailrace.report(tmp_path / "a.nc", tmp_path / "b.nc", tmp_path / "r.html",
                               figures=False)
    one = made["u"]
    assert max(sizes) <= 1 << 20 and sum(sizes) >= 2 * field.nbytes
    assert one.drawn.histogram.counts.sum() == field.size
    assert one.drawn.error_map.shape == (300, 350) and one.drawn.map_shape == (300, 700)
    assert "the box z" in one.drawn.box_text
    with h5py.File(tmp_path / "b.nc") as file:
        off = np.abs(file["u"][8].astype("f8") - field[8])
    assert np.array_equal(one.drawn.error_map, off.reshape(300, 350, 2).max(axis=2))


def test_histograms_grow_and_keep_their_counts():
    generator = np.random.default_rng(3)
    histogram = report_module.Histogram(0.0)
    parts = [np.zeros(5), *(generator.normal(size=1000) * 10.0**n for n in (-3, 0, 2)),
             np.array([np.inf, 7.0])]
    for part in parts:
        histogram.add(part)
    everything = np.concatenate(parts)
    everything = everything[np.isfinite(everything)]
    expected, _ = np.histogram(everything, histogram.edges)
    assert histogram.counts.sum() == everything.size and histogram.n_lost == 1
    assert np.abs(histogram.counts - expected).sum() <= 4
    assert np.abs(everything).max() <= histogram.limit <= 3 * np.abs(everything).max()


def test_the_older_page_stays_if_the_new_one_fails(files, tmp_path):
    first, small, _ = files
    page = tmp_path / "r.html"
    page.write_text("older")
    with pytest.raises(FileNotFoundError):
        tailrace.report(first, tmp_path / "none.nc", page)
    assert page.read_text() == "older"
    with pytest.raises(ValueError, match="one bound"):
        tailrace.report(first, small, page, abs=1, rel=1)
    with pytest.raises(OSError, match="nowhere"):
        tailrace.report(first, small, tmp_path / "nowhere" / "r.html")
    assert re.fullmatch("older", page.read_text())
