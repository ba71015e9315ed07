"""tailrace verify --report: each number is compared with its formula in NumPy, on real data."""

import html.parser
import json
import math

import h5py
import netCDF4
import numpy as np
import pytest

from cli_tools import data_file, datasets, tailrace

PIECE = 4096


def valid_pairs(original, decoded, fill):
    """Convert both arrays to doubles, with NaN in both if either value is missing."""
    first, second = original.astype("f8"), decoded.astype("f8")
    missing = ~np.isfinite(first) | ~np.isfinite(second)
    if fill is not None:
        missing |= (original == fill) | (decoded == fill)
    return np.where(missing, np.nan, first), np.where(missing, np.nan, second)


def kolmogorov_smirnov(first, second):
    first, second = (np.sort(values[~np.isnan(values)]) for values in (first, second))
    places = np.concatenate([first, second])
    below = [np.searchsorted(values, places, "right") for values in (first, second)]
    statistic = np.abs(below[0] - below[1]).max() / len(first)
    reach = statistic * math.sqrt(len(first) / 2)
    terms = [2 * (-1) ** (k - 1) * math.exp(-2 * k * k * reach * reach) for k in range(1, 2000)]
    return statistic, math.fsum(terms) if reach > 0.05 else 1.0


def window_means(values, weights):
    """Return weighted means of all 11 x 11 windows, over values that are not NaN."""
    windows = np.lib.stride_tricks.sliding_window_view(values, (11, 11))
    there = np.lib.stride_tricks.sliding_window_view(~np.isnan(values), (11, 11))
    return (np.einsum("ijkl,kl->ij", np.nan_to_num(windows), weights)
            / np.einsum("ijkl,kl->ij", there.astype("f8"), weights))


def similarity(first, second, of_means, of_variances):
    steps = np.arange(-5, 6)
    weights = np.exp(-(steps[:, None] ** 2 + steps ** 2) / (2 * 1.5 ** 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_a, mean_b = window_means(first, weights), window_means(second, weights)
        middle = np.nanmean(first)
        a, b = first - middle, second - middle
        low_a, low_b = mean_a - middle, mean_b - middle
        variances = (window_means(a * a, weights) - low_a ** 2
                     + window_means(b * b, weights) - low_b ** 2)
        covariance = window_means(a * b, weights) - low_a * low_b
    found = ((2 * mean_a * mean_b + of_means) * (2 * covariance + of_variances)
             / ((mean_a ** 2 + mean_b ** 2 + of_means) * (variances + of_variances)))
    found = found[~np.isnan(first[5:-5, 5:-5])]
    return found.mean() if found.size else None


def ssim(first, second, extent):
    return similarity(first, second, (0.01 * extent) ** 2, (0.03 * extent) ** 2)


def data_ssim(first, second):
    if np.isnan(first).all():
        return None
    least = min(np.nanmin(first), np.nanmin(second))
    extent = max(np.nanmax(first), np.nanmax(second)) - least
    levels = [np.round((values - least) / extent * 255) / 255 for values in (first, second)]
    return similarity(*levels, 1e-8, 1e-8)


def power(values):
    """Return the power spectrum of a map or a piece of a line, and the frequencies."""
    window = np.ones(values.shape)
    squares = np.zeros(values.shape)
    for axis, n in enumerate(values.shape):
        k = np.arange(n)
        line = [1] * values.ndim
        line[axis] = n
        window = window * (0.5 - 0.5 * np.cos(2 * np.pi * k / n)).reshape(line)
        squares = squares + ((np.minimum(k, n - k) / n) ** 2).reshape(line)
    anomalies = np.nan_to_num(values - np.nanmean(values))
    return np.abs(np.fft.fftn(anomalies * window)) ** 2 / values.size ** 2, np.sqrt(squares)


def spectrum(maps):
    n_bands = min(256, min(maps[0].shape) // 2)
    sums, n = np.zeros(n_bands), 0
    for values in maps:
        if np.isnan(values).all():
            continue
        found, frequency = power(values)
        band = np.floor(2 * n_bands * frequency + 0.5).astype(int).ravel()
        sums += np.bincount(band, found.ravel(), n_bands + 1)[1:n_bands + 1]
        n += 1
    return np.arange(1, n_bands + 1) / (2 * n_bands), sums / n


def maps_of(values):
    values = np.squeeze(values)
    if values.ndim == 1:
        piece = min(PIECE, len(values))
        return [values[i:i + piece] for i in range(0, len(values) - piece + 1, piece)]
    return list(values.reshape(-1, *values.shape[-2:]))


def compare_similarity(found, expected, grid):
    expected = [value for value in expected if value is not None]
    assert found["n_maps"] == len(expected)
    assert found["mean"] == pytest.approx(np.mean(expected), abs=1e-9)
    assert found["least"] == pytest.approx(np.min(expected), abs=1e-9)
    assert len(found["least_map"]) == len(grid)


def compare(found, original, decoded, fill):
    first, second = valid_pairs(original, decoded, fill)
    there = ~np.isnan(first)
    error = (second - first)[there]
    assert found["n_values"] == there.sum()
    assert found["mean_bias"] == pytest.approx(math.fsum(error) / error.size, rel=1e-12)
    assert found["root_mean_square_error"] == pytest.approx(
        math.sqrt(math.fsum(error * error) / error.size), rel=1e-12)
    assert 1 - found["correlation"] == pytest.approx(
        1 - np.corrcoef(first[there], second[there])[0, 1], rel=1e-4, abs=1e-12)
    statistic, p = kolmogorov_smirnov(first, second)
    assert found["ks_statistic"] <= statistic <= found["ks_at_most"]
    assert statistic - found["ks_statistic"] <= 1e-5
    assert found["ks_p_value"] == pytest.approx(p, abs=2e-2)

    maps = [maps_of(values) for values in (first, second)]
    shape = maps[0][0].shape
    assert found["map_shape"] == list(shape)
    assert found["map_axes"] == [at for at, n in enumerate(original.shape) if n > 1][-2:]
    if len(shape) == 2 and min(shape) >= 11:
        extent = np.nanmax(first) - np.nanmin(first)
        grid = [n for n in original.shape[:-2]]
        compare_similarity(found["ssim"], [ssim(a, b, extent) for a, b in zip(*maps)], grid)
        compare_similarity(found["data_ssim"], [data_ssim(a, b) for a, b in zip(*maps)], grid)
    else:
        assert found["ssim"] is None and found["data_ssim"] is None
    if min(shape) < 8:
        assert found["spectrum"] is None
        return
    frequency, of_original = spectrum(maps[0])
    _, of_decoded = spectrum(maps[1])
    assert found["spectrum"]["frequency"] == pytest.approx(frequency)
    assert found["spectrum"]["original"] == pytest.approx(of_original, rel=1e-8)
    assert found["spectrum"]["decoded"] == pytest.approx(of_decoded, rel=1e-8)
    assert found["spectrum"]["ratio"] == pytest.approx(of_decoded / of_original, rel=1e-8)


def report_of(folder, source, target, *options, ranks=1, name="report.json"):
    path = folder / name
    tailrace("verify", source, target, "--report", path, *options, ranks=ranks, timeout=600)
    return {field["path"]: field for field in json.loads(path.read_text())["fields"]}


CASES = {
    "climate.h5": (["levitus_temp", "levitus_salt_nan", "ccm_T"], "--field",
                   "levitus_temp:fill=-1e10"),
    "nyx64_s060.h5": (["native_fields/baryon_density", "native_fields/velocity_x"],),
    "nyx64_particles_s090.h5": (["x"],),
    "lammps_lj_early.h5": (["x"],),
}


LARGE = ("climate.h5", "nyx64_s060.h5")


@pytest.mark.parametrize("name", [
    pytest.param(name, marks=pytest.mark.full if name in LARGE else []) for name in CASES])
def test_every_number_is_its_formula(name, tmp_path):
    fields, *options = CASES[name]
    source, target = data_file(name, tmp_path), tmp_path / "out.h5"
    originals = datasets(source)
    fields = [field for field in fields if field in originals]
    only = [word for field in fields for word in ("--only", f"*{field}")]
    tailrace("repack", source, "-o", target, "--bound", "rel=1e-3", "--codec", "trz", *only,
             *options)
    reports = [report_of(tmp_path, source, target, *only, *options, ranks=ranks)
               for ranks in (1, 2, 3)]
    assert reports[0] == reports[1] == reports[2], "ranks change nothing"
    plain = tmp_path / "plain.h5"
    tailrace("export", target, "-o", plain)
    decoded = datasets(plain)
    for field in fields:
        found = reports[0]["/" + field]
        fill = -1e10 if field == "levitus_temp" else None
        assert found["kept"]
        compare(found["fidelity"], originals[field], decoded[field],
                None if fill is None else np.float32(fill))


@pytest.mark.parametrize("form", ["NETCDF3_CLASSIC", "NETCDF4"])
def test_doubles_and_a_fill_value_of_netcdf(form, tmp_path):
    values = next(iter(datasets(data_file("climate.h5", tmp_path)).values())).astype("f8")[:2]
    values = values.reshape(-1, *values.shape[-2:])[:3, :61, :90]
    values[1, 20:40, 30:50] = -999.0
    source, target = tmp_path / "in.nc", tmp_path / "out.nc"
    with netCDF4.Dataset(source, "w", format=form) as file:
        for name, n in zip("tyx", values.shape):
            file.createDimension(name, n)
        variable = file.createVariable("u", "f8", ("t", "y", "x"), fill_value=-999.0)
        variable[:] = values
        file.createVariable("s", "f8", ())[...] = 1.5
    tailrace("repack", source, "-o", target, "--bound", "abs=0.01", "--codec", "trz")
    found = report_of(tmp_path, source, target, ranks=2)
    plain = tmp_path / "plain.h5"
    tailrace("export", target, "-o", plain)
    compare(found["/u"]["fidelity"], values, datasets(plain)["u"], -999.0)
    assert found["/u"]["n_fill"] == (values == -999.0).sum() > 0
    scalar = found["/s"]["fidelity"]
    assert scalar["n_values"] == 1 and scalar["map_shape"] == []
    assert scalar["ssim"] is None and scalar["spectrum"] is None


def test_equal_fields_and_integers(tmp_path):
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    generator = np.random.default_rng(2)
    with h5py.File(source, "w") as file:
        file["n"] = generator.integers(0, 50, (40, 30), "i4")
        file["big"] = generator.integers(2**62, 2**63, 5000, "u8", endpoint=False) * 2
        file["none"] = np.zeros((0, 20), "f4")
        file["nan"] = np.full((20, 20), np.nan, "f8")
    tailrace("repack", source, "-o", target, "--codec", "portable")
    found = report_of(tmp_path, source, target, ranks=3)
    for name in ("/n", "/big"):
        fidelity = found[name]["fidelity"]
        assert fidelity["mean_bias"] == fidelity["root_mean_square_error"] == 0
        assert fidelity["ks_statistic"] == fidelity["ks_at_most"] == 0
        assert fidelity["ks_p_value"] == 1
        assert fidelity["correlation"] == pytest.approx(1, abs=1e-15)
        assert fidelity["spectrum"]["ratio"] == pytest.approx([1] * len(
            fidelity["spectrum"]["ratio"]), abs=1e-12)
    assert found["/n"]["fidelity"]["ssim"]["least"] == 1
    assert found["/n"]["fidelity"]["data_ssim"]["least"] == 1
    for name in ("/none", "/nan"):
        fidelity = found[name]["fidelity"]
        assert fidelity["n_values"] == 0
        assert fidelity["mean_bias"] is fidelity["ks_statistic"] is fidelity["ssim"] is None
        assert fidelity["spectrum"] is None


def test_a_lumpy_distribution_needs_more_passes(tmp_path):
    """The statistic is exact even if values have few magnitudes, so that single bins are large."""
    generator = np.random.default_rng(3)
    values = np.round(generator.standard_normal(60000), 1).astype("f4")
    values[::7] *= np.float32(1e-30)
    shifted = values + np.where(values > 0, np.float32(1e-7), np.float32(-1e-7))
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    for path, data in ((source, values), (target, shifted)):
        with h5py.File(path, "w") as file:
            file["u"] = data
    options = ("--bound", "abs=1e-6")
    found = report_of(tmp_path, source, target, *options)["/u"]["fidelity"]
    statistic, _ = kolmogorov_smirnov(*valid_pairs(values, shifted, None))
    assert statistic > 0.01
    assert found["ks_statistic"] == found["ks_at_most"] == statistic


def test_memory_changes_nothing_but_what_it_cannot_hold(tmp_path):
    source, target = data_file("climate.h5", tmp_path), tmp_path / "out.h5"
    options = ("--only", "levitus_salt_nan")
    tailrace("repack", source, "-o", target, "--bound", "rel=1e-3", *options)
    much = report_of(tmp_path, source, target, *options)["/levitus_salt_nan"]["fidelity"]
    less = report_of(tmp_path, source, target, *options, "--memory",
                     "8MiB")["/levitus_salt_nan"]["fidelity"]
    searched = ("ks_statistic", "ks_at_most")  # Between them is the statistic, within 1e-5.
    assert all(less[key] == pytest.approx(much[key], abs=1e-5) for key in searched)
    assert max(each["ks_statistic"] for each in (less, much)) <= min(
        each["ks_at_most"] for each in (less, much))
    derived = {key: much[key] for key in (*searched, "ks_p_value")}
    assert less | derived == much
    least = report_of(tmp_path, source, target, *options, "--memory",
                      "64KiB")["/levitus_salt_nan"]["fidelity"]
    assert least["ssim"] is None and least["spectrum"] is None
    assert "--memory" in least["left_out"][0]
    for key in ("n_values", "mean_bias", "root_mean_square_error", "correlation"):
        assert least[key] == much[key]


class Page(html.parser.HTMLParser):
    """Parser that collects the parts of a page."""

    def __init__(self):
        super().__init__()
        self.tags, self.links, self.text = [], [], ""

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.links += [value for name, value in attributes
                       if name in ("src", "href", "xlink:href") and value[:1] != "#"]

    def handle_data(self, data):
        self.text += data


def test_page_names_every_variable_and_what_is_broken(tmp_path):
    source, target = data_file("climate.h5", tmp_path), tmp_path / "out.h5"
    tailrace("repack", source, "-o", target, "--bound", "rel=1e-2", "--codec", "portable",
             "--only", "levitus_*", "--allow-wide-bound")
    with h5py.File(target, "r+") as file:
        field = file["levitus_salt_nan"]
        place = (0, field.shape[1] * 5 // 9, field.shape[2] * 5 // 9)
        field[place] = 1e9
    path = tmp_path / "page.html"
    tailrace("verify", source, target, "--only", "levitus_*", "--report", path, ranks=2, code=1)
    page = Page()
    page.feed(path.read_text())
    assert not page.links and "script" not in page.tags, "the page needs nothing else"
    assert page.tags.count("table") >= 2
    for words in ("/levitus_temp", "/levitus_salt_nan", "BROKEN", "DOUBTFUL", "Wang et al. 2004",
                  str(list(place))):
        assert words in page.text, words


def test_words_that_cannot_be(tmp_path):
    names = (tmp_path / "a.h5", tmp_path / "b.h5")
    assert ".html or .json" in tailrace("verify", *names, "--report", "x.txt", code=2).stderr
    assert "--report" in tailrace("verify", *names, "--memory", "1MiB", code=2).stderr
    assert "--report" in tailrace("verify", "--concat", *names, "--report", "x.json",
                                  code=2).stderr
