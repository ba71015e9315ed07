"""Warnings, refusals, suggestions and reports that an analyst meets on the first day."""

import json
import subprocess
import sys

import h5py
import numpy as np
import pytest

import python_package
from cli_tools import smooth
from cli_tools import tailrace as program

tailrace = python_package.load()
xr = pytest.importorskip("xarray")

FIELD = smooth((5, 12, 16)).astype("f4")


def sea():
    values = FIELD.copy()
    values[:, :4] = np.nan
    return xr.Dataset({"t": (("depth", "lat", "lon"), values, {"units": "degC"})},
                      {"depth": ("depth", np.arange(5.0) * 100, {"units": "m"}),
                       "lat": ("lat", np.arange(12.0), {"units": "degrees_north"}),
                       "lon": ("lon", np.arange(16.0), {"units": "degrees_east"})})


def test_a_bound_beside_a_codec_without_loss_is_named(tmp_path):
    path = tmp_path / "a.nc"
    for how in ({"abs": 0.01}, {"rel": 1e-3}):
        with pytest.warns(RuntimeWarning, match="codec deflate has no loss, so bound .* does not"):
            sea().tailrace.to_netcdf(path, codec="deflate", **how)
    xr.Dataset({"t": (("z", "y", "x"), smooth((20, 64, 64)))}).to_netcdf(tmp_path / "o.nc")
    done = program("repack", tmp_path / "o.nc", "-o", tmp_path / "b.nc", "--codec", "deflate",
                   "--bound", "rel=1e-3")
    assert "codec deflate has no loss, so bound rel=0.001 does nothing" in done.stderr
    assert "all values equal" not in done.stdout + done.stderr


def test_chunks_stored_without_compression_are_named(tmp_path):
    pytest.importorskip("hdf5plugin")
    with pytest.warns(RuntimeWarning, match="\"/t\": 1 of 1 chunk stored without compression, bec"
                                            "ause codec sz3 could not keep"):
        sea().tailrace.to_netcdf(tmp_path / "a.nc", codec="sz3", abs=0.01)
    need = tailrace.open(tmp_path / "a.nc").attrs["tailrace_readers_need"]
    assert "engine=\"h5netcdf\"" in need and "HDF5_PLUGIN_PATH=$(python -c 'import hdf5" in need


@pytest.mark.parametrize("codec, hint", [("gzip", "did you mean \"deflate\""),
                                         ("ZLIB", "did you mean \"deflate\""),
                                         ("szip", "without loss: \"deflate\", \"zstd\""),
                                         ("tzr", "did you mean \"trz\"")])
def test_no_lossy_codec_is_suggested_for_a_lossless_name(codec, hint, tmp_path):
    with pytest.raises(tailrace.TailraceError, match=hint):
        sea().tailrace.to_netcdf(tmp_path / "a.nc", codec=codec)


def test_an_unknown_option_suggests_the_nearest(tmp_path):
    done = program("repack", "a.h5", "-o", "b.h5", "--bounds", "abs=1", code=2)
    assert "--bounds; did you mean \"--bound\"" in done.stderr


def test_axes_have_names():
    field = sea().t
    by_name = field.tailrace.suggest_bound(abs=0.1, axes=("lat", "lon"))
    assert list(by_name) == list(field.tailrace.suggest_bound(abs=0.1, axes=(1, 2)))
    with pytest.raises(ValueError, match="axis is 'time', must be 0 to 2, or one of depth, lat"):
        tailrace.suggest_bound(field, abs=0.1, axes=["lat", "time"])
    for how in ({"rel": 1}, {"pw_rel": 2.0}):
        with pytest.raises(ValueError, match="must be < 1"):
            tailrace.suggest_bound(field, **how)


def test_an_equal_bound_may_be_repeated(tmp_path):
    path = tmp_path / "a.nc"
    ours = {"encoding": {"t": {"abs": 0.1}}}
    sea().tailrace.to_netcdf(path, unlimited_dims=["depth"], **ours)
    for how in (ours, {"encoding": {"t": {"bound": "abs=0.10"}}}):
        sea().assign_coords(depth=sea().depth + 500).tailrace.to_netcdf(
            path, mode="a", append_dim="depth", **how)
    for other in ({"abs": 0.2}, {"abs": 0.1, "codec": "trz"}, {"rel": 0.1}):
        with pytest.raises(tailrace.TailraceError, match="cannot change"):
            sea().tailrace.to_netcdf(path, mode="a", append_dim="depth", encoding={"t": other})


def test_a_report_names_slices_and_codecs(tmp_path):
    sea().tailrace.to_netcdf(tmp_path / "a.nc", abs=0.01)
    made = sea().tailrace.report(tmp_path / "a.nc", tmp_path / "r.html")
    assert made["t"].drawn.slice_text == "at depth = 200 m"
    assert made["lat"].codec == tailrace.open(tmp_path / "a.nc")["lat"].codec != ""
    found = tailrace.info(tmp_path / "a.nc")
    assert found["t"]["ratio"] > 1 and found["t"] == found["/t"] == found["fields"][0]
    with pytest.raises(KeyError):
        found["none"]


def test_spectra_of_equal_files_are_equal(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.linspace(-89.5, 89.5, 180)
    document = tmp_path / "r.json"
    program("verify", tmp_path / "a.h5", tmp_path / "a.h5", "--report", document)
    spectrum = json.loads(document.read_text())["fields"][0]["fidelity"]["spectrum"]
    assert spectrum["decoded"] == spectrum["original"]


def test_refusals_name_the_object_and_what_to_do(tmp_path):
    with pytest.raises(FileNotFoundError, match="cannot create .*folder .*nothing\" does not ex"):
        tailrace.open(tmp_path / "nothing" / "a.nc", "w")
    path = tmp_path / "a.nc"
    with tailrace.open(path, "w") as file:
        file.create_variable("u", ("x",), data=np.arange(4.0))
        with pytest.raises(ValueError, match="\"/u\": this name exists already in its group"):
            file.create_variable("u", ("x",), data=np.arange(4.0))
    with pytest.raises(FileExistsError, match="mode \"w\" replaces it"):
        tailrace.open(path, "x")
    with pytest.raises(ValueError, match="rel=2.*must be < 1"):
        tailrace.open(tmp_path / "b.nc", "w", rel=2.0)
    with pytest.raises(ValueError, match="rel must be < 1"):
        tailrace.encode(FIELD, rel=2.0)


def test_all_fields_with_undeclared_fill_values_are_named(tmp_path):
    values = FIELD.copy()
    values[:, :4] = -1e10
    file = tailrace.open(tmp_path / "a.nc", "w")
    for name in ("u", "v", "w"):
        file.create_variable(name, ("z", "y", "x"), data=values, rel=1e-3)
    with pytest.raises(ValueError, match="\"/u\": bound.*Likewise field \"/v\" .*, field \"/w\" "
                                         ".*the incomplete file stays as .*a.nc"):
        file.close()
    assert (tmp_path / "a.nc").exists()


def test_a_file_that_is_not_closed_is_named_on_stderr(tmp_path):
    source = (f"import tailrace\nfile = tailrace.open({str(tmp_path / 'a.nc')!r}, 'w')\n"
              "file.create_variable('u', ('x',), data=[1.0, 2.0])\n")
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True,
                          env=python_package.package_environment(), timeout=60)
    assert done.returncode == 0 and "did not close" in done.stderr and "a.nc" in done.stderr
