"""The blocks of docs/python.md run as they stand there, from the top of the page to its end."""

import re
import warnings

import pytest

import python_package
from cli_tools import ROOT

tailrace = python_package.load()
PAGE = (ROOT / "docs" / "python.md").read_text(encoding="utf-8")

#: Sections whose blocks need what this process has not: several ranks.
ELSEWHERE = {"Communicators"}


def blocks():
    """(heading, source) of each block of Python."""
    for part in re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]:
        heading = part.partition("\n")[0]
        for source in re.findall(r"^```python\n(.*?)^```", part, re.DOTALL | re.MULTILINE):
            yield heading, source


def test_the_page_runs(tmp_path, monkeypatch):
    for package in ("xarray", "dask", "matplotlib", "zarr", "fsspec"):
        pytest.importorskip(package)
    import matplotlib
    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    names, run = {}, []
    for heading, source in blocks():
        if heading in ELSEWHERE:
            continue
        if heading == "xarray and dask":
            names["more"] = later_rows()
        with warnings.catch_warnings():
            warnings.simplefilter("error", SyntaxWarning)
            exec(compile(source, f"docs/python.md, {heading}", "exec"), names)  # noqa: S102
        run.append(heading)
    assert {"Files", "Choosing a bound", "A report for a paper", "xarray and dask",
            "Sharing files", "zarr and kerchunk"} <= set(run)


def later_rows():
    """`more`, what the page appends along time."""
    import xarray as xr
    with xr.open_dataset("u.nc", engine="tailrace") as dataset:
        return dataset.isel(time=slice(0, 2)).load()
