"""URLs, bytes and file objects: refused, with calls that work instead."""

import io
import re

import fsspec
import h5py
import numpy as np
import pytest
import xarray as xr

import python_package

tailrace = python_package.load()
GIVEN = xr.Dataset({"u": ("x", np.sin(np.linspace(0, 9, 5000)))})


@pytest.fixture
def content(tmp_path):
    GIVEN.tailrace.to_netcdf(tmp_path / "u.nc", abs=1e-3, codec="trz")
    return (tmp_path / "u.nc").read_bytes()


def refused(kind, words, *calls):
    """Return the texts of the errors."""
    texts = []
    for call in calls:
        with pytest.raises(kind, match=words) as failure:
            call()
        texts.append(str(failure.value))
    return texts


def test_what_a_url_error_advises_works(content):
    url = "memory://folder/u.nc"
    with fsspec.open(url, "wb") as file:
        file.write(content)
    texts = refused(NotImplementedError, "URLs are not supported",
                    lambda: tailrace.open(url), lambda: xr.open_dataset(url, engine="tailrace"),
                    lambda: tailrace.info(url), lambda: tailrace.verify(url, url),
                    lambda: xr.open_mfdataset([url], engine="tailrace"),
                    lambda: tailrace.report(url, "a.nc", "r.html"))
    calls = re.findall(r"(?:fsspec|xarray)\.\w+\(.*?\)(?= returns| has)", texts[0])
    assert len(calls) == 2 and all(text == texts[0] for text in texts)
    local, opened = (eval(call, {"fsspec": fsspec, "xarray": xr}) for call in calls)
    with xr.open_dataset(local, engine="tailrace") as first, opened as second:
        for one in (first, second):
            assert 0 < abs(one.u - GIVEN.u).max() <= 1e-3


def test_what_an_error_of_bytes_advises_works(content, tmp_path):
    file = io.BytesIO(content)
    texts = refused(TypeError, "expected a path, found (the bytes of a file|a BytesIO|a Buffered)",
                    lambda: tailrace.open(content), lambda: tailrace.open(file),
                    lambda: xr.open_dataset(content, engine="tailrace"),
                    lambda: xr.open_dataset(file, engine="tailrace"),
                    lambda: xr.open_dataset(open(tmp_path / "u.nc", "rb"), engine="tailrace"))
    assert all('h5py.File or xarray.open_dataset(..., engine="h5netcdf")' in one for one in texts)
    with xr.open_dataset(file, engine="h5netcdf") as one, h5py.File(io.BytesIO(content)) as other:
        assert 0 < abs(one.u - GIVEN.u).max() <= 1e-3 and np.array_equal(other["u"], one.u)


def test_writing_goes_to_paths():
    for target in ("s3://bucket/u.nc", "https://example.org/u.nc"):
        protocol = target.partition(":")[0]
        refused(NotImplementedError, rf'write a file, .*fsspec.filesystem\("{protocol}"\).put',
                lambda: GIVEN.tailrace.to_netcdf(target), lambda: tailrace.open(target, "w"),
                lambda: GIVEN.tailrace.report(GIVEN, target))
    for target in (None, io.BytesIO()):
        refused(TypeError, "expected a path, .*write a file, and read its bytes",
                lambda: GIVEN.tailrace.to_netcdf(target), lambda: tailrace.open(target, "w"))
    refused(NotImplementedError, "without file://", lambda: tailrace.open("file:///tmp/u.nc"))


def test_a_path_may_look_like_a_url(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "abc:").mkdir()
    GIVEN.tailrace.to_netcdf("abc:/u.nc")
    with tailrace.open("abc://u.nc") as file:
        assert np.array_equal(file["u"], GIVEN.u)
