"""Plots of bench/plot_*.py from the committed CSVs: legends have readable names, texts fit."""

import importlib
import runpy
import sys

import h5py
import matplotlib
import matplotlib.image
import matplotlib.pyplot as plt
import numpy as np
import pytest
from cli_tools import ROOT, bench_script, find_bench_modules, smooth

pytestmark = pytest.mark.full

matplotlib.use("Agg")
RESULTS = ROOT / "lab" / "bench" / "results"
PICTURES = {
    "plot_codecs.py": [["trz_codecs.csv"], ["trz_sz3.csv"]],
    "plot_in_situ.py": [["overheads", "in_situ.csv"], ["sizes", "in_situ_sizes.csv"]],
    "plot_concat.py": [["compare", "concat_compare.csv"], ["scale", "concat_scaling.csv"]],
    "plot_transparent.py": [["write", "transparent_write.csv"],
                            ["chunks", "transparent_chunks.csv"], ["read", "transparent_read.csv"]],
    "plot_shared_book.py": [["shared_book.csv"]],
    "schedule_gaps.py": [["plot", "schedule_gaps.csv"]],
}
CASES = [(name, words) for name, cases in PICTURES.items() for words in cases]


def draw(monkeypatch, name, words, output):
    """Run a plotting script. @returns its figure."""
    plt.close("all")
    words = [str(RESULTS / word) if word.endswith(".csv") else word for word in words]
    monkeypatch.setattr(sys, "argv", [name, *words, "-o", str(output)])
    find_bench_modules(monkeypatch)
    runpy.run_path(str(bench_script(name)), run_name="__main__")
    return plt.gcf()


def legends(figure):
    return [*figure.legends, *(axes.get_legend() for axes in figure.axes if axes.get_legend())]


@pytest.mark.parametrize("name, words", CASES, ids=[f"{n}-{w[0]}" for n, w in CASES])
def test_pictures(monkeypatch, tmp_path, name, words):
    figure = draw(monkeypatch, name, words, tmp_path / "picture.png")
    assert matplotlib.image.imread(tmp_path / "picture.png").std() > 0.05
    seen = legends(figure)
    assert seen and all(text.get_text() for one in seen for text in one.get_texts())
    for one in seen:
        names = [text.get_text() for text in one.get_texts()]
        assert len(set(names)) == len(names)
        assert not [text for text in names if "_" in text.replace("$10^{", "")]
        # No two entries look alike.
        looks = [(handle.get_facecolor(), handle.get_hatch()) for handle in one.legend_handles
                 if hasattr(handle, "get_facecolor")]
        assert len(set(looks)) == len(looks)
    for axes in (one for one in figure.axes if one.get_visible()):
        low, high = axes.get_ylim()
        for line in axes.lines:
            if line.get_transform() == axes.transData:
                values = np.asarray(line.get_ydata(), float)
                assert low <= values.min() and values.max() <= high, line.get_label()
        for bar in axes.patches:
            ends = sorted([bar.get_y(), bar.get_y() + bar.get_height()])
            assert ends[1] <= high and (ends[0] >= low or axes.get_yscale() == "log")
        first_column = axes.get_subplotspec().is_first_col() or not axes.get_shared_y_axes()
        assert axes.get_ylabel() or not first_column
    width, height = figure.get_size_inches() * figure.dpi
    for one in figure.legends:
        box = one.get_window_extent()
        assert 0 <= box.x0 and box.x1 <= width and 0 <= box.y0 and box.y1 <= height


def test_every_script_is_drawn():
    scripts = {path.name for path in (ROOT / "lab" / "bench" / "plots").glob("plot_*.py")}
    assert scripts == {name for name in PICTURES if name.startswith("plot_")} | {"plot_cosmo.py"}


def test_picture_of_a_simulation(monkeypatch, tmp_path):
    """plot_cosmo.py draws steps like those of examples/cosmo, including an empty cell."""
    path = tmp_path / "cosmo.h5"
    with h5py.File(path, "w") as file:
        for step in range(3):
            group = file.create_group(f"step_{step:04d}")
            group.attrs["time"] = 0.25 * (step + 1)
            group["baryon_density"] = np.abs(smooth((16, 16, 16), step))
            group["baryon_density"][:, 3, 4] = -0.1
    plt.close("all")
    monkeypatch.setattr(sys, "argv", ["plot_cosmo.py", str(path), "-o", str(tmp_path / "c.png")])
    runpy.run_path(str(bench_script("plot_cosmo.py")), run_name="__main__")
    *panels, bar = plt.gcf().axes
    assert [axes.get_title() for axes in panels] == ["a = 0.25", "a = 0.50", "a = 0.75"]
    assert all("Mpc/h" in axes.get_xlabel() for axes in panels) and "density" in bar.get_ylabel()
    for axes in panels:
        assert np.ma.count_masked(axes.images[0].norm(axes.images[0].get_array())) == 0


def test_every_method_has_words(monkeypatch):
    """Every method has a readable name, also in plots of CSVs that are not committed."""
    find_bench_modules(monkeypatch)
    plot = importlib.import_module("plot_transparent")
    transparent = importlib.import_module("transparent")
    codecs = [codec.replace("@", "_") for codec in transparent.CODECS]
    methods = [*plot.NAMES, *(f"P_{layout}" for layout in transparent.LAYOUTS),
               *(f"{way}_{codec}" for way in "PT" for codec in codecs)]
    words = [plot.label_of(method) for method in methods]
    assert len(set(words)) == len(words) and not [text for text in words if "_" in text]


def test_the_pages_picture_of_codecs(monkeypatch, tmp_path):
    """docs/trz-codecs.png equals the script's plot of the CSV, except for differences of fonts."""
    draw(monkeypatch, "plot_codecs.py", ["trz_codecs.csv"], tmp_path / "made.png")
    made, shown = (matplotlib.image.imread(path) for path in
                   (tmp_path / "made.png", ROOT / "docs" / "trz-codecs.png"))
    assert made.shape == shown.shape and np.abs(made - shown).mean() < 0.01
