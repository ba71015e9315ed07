"""The accessor of xarray's objects, and bounds for a complete dataset."""

import inspect
import subprocess
import sys

import dask
import numpy as np
import pytest
import xarray as xr

import python_package
from cli_tools import smooth

tailrace = python_package.load()
FIELD = smooth((6, 16, 24))


def dataset():
    return xr.Dataset(
        {"t": (("time", "y", "x"), 280 + FIELD, {"units": "K"}),
         "u": (("time", "y", "x"), FIELD.astype("f8")), "n": ("y", np.arange(16)),
         "mask": (("y", "x"), (FIELD[0] > 0).astype("f4"))},
        {"y": np.linspace(-45, 45, 16), "time": np.arange("2000-01", "2000-07", dtype="M8[M]")
         .astype("M8[ns]")})


@pytest.mark.sample(4)
@pytest.mark.parametrize("text", [
    "import tailrace; assert 'xarray' not in sys.modules; import xarray",
    "import xarray, tailrace", "import tailrace, xarray",
    "from xarray import Dataset; import tailrace",
    "import xarray; xarray.open_dataset(sys.argv[1], engine='tailrace').close()",
    "import xarray, tailrace, importlib; importlib.reload(tailrace)"])
def test_the_accessor_exists_after_imports_in_any_order(text, tmp_path):
    tailrace.write_dataset(dataset(), tmp_path / "a.nc")
    text = f"""
import sys, warnings
warnings.simplefilter("error")
{text}
import xarray
print(type(xarray.Dataset().tailrace).__name__, type(xarray.DataArray(1.0).tailrace).__name__,
      type(xarray.DataTree().tailrace).__name__)
"""
    done = subprocess.run([sys.executable, "-c", text, tmp_path / "a.nc"], capture_output=True,
                          text=True, env=python_package.package_environment(), check=False)
    assert done.stdout.split() == ["DatasetAccessor", "DataArrayAccessor", "DataTreeAccessor"], done


def test_without_xarray_the_package_works(tmp_path):
    (tmp_path / "xarray").mkdir()
    (tmp_path / "xarray" / "__init__.py").write_text("raise ImportError('absent')")
    environment = python_package.package_environment()
    environment["PYTHONPATH"] = f"{tmp_path}:{environment['PYTHONPATH']}"
    done = subprocess.run(
        [sys.executable, "-c", "import tailrace, numpy as np\ntry: import xarray\nexcept "
         "ImportError: print(len(tailrace.encode(np.zeros(9))) > 0)"],
        capture_output=True, text=True, env=environment, check=False)
    assert done.stdout == "True\n" and not done.stderr, done


def stored(path):
    with tailrace.open(path) as file:
        return {name: (variable.bound, variable.codec)
                for name, variable in file.variables.items()}


@pytest.mark.parametrize("how, bound", [
    ({"rel": 1e-3}, "rel=0.001"), ({"abs": 0.01}, "abs=0.01"), ({"pw_rel": 1e-3}, "pw_rel=0.001"),
    ({"psnr": 60}, "psnr=60"), ({"bound": "abs=0.5"}, "abs=0.5")])
def test_one_bound_for_all_variables(how, bound, tmp_path):
    given = dataset()
    given.tailrace.to_netcdf(tmp_path / "a.nc", **how, codec="trz",
                             encoding={"u": {"abs": 0.25, "codec": "portable"}})
    found = stored(tmp_path / "a.nc")
    assert found["t"] == (bound, "trz") and found["u"] == ("abs=0.25", "portable")
    assert {found[name][0] for name in ("n", "y", "time")} == {"none"}
    with xr.open_dataset(tmp_path / "a.nc", engine="tailrace") as back:
        assert (back.n == given.n).all() and (back.time == given.time).all()
        assert (back.y == given.y).all() and (back["mask"] == given["mask"]).all()
        assert 0 < abs(back.u - given.u).max() <= 0.25
        assert abs(back.t - given.t).max() > 0
    tailrace.write_dataset(given, tmp_path / "b.nc", **how, codec="trz",
                           encoding={"u": {"abs": 0.25, "codec": "portable"}})
    assert stored(tmp_path / "b.nc") == found


def test_a_bound_for_more_values_is_that_of_the_file(tmp_path):
    given, target = dataset(), tmp_path / "a.nc"
    later = given.assign_coords(time=given.time + np.timedelta64(366, "D"))
    given.tailrace.to_netcdf(target, append_dim="time", abs=0.01, codec="trz")
    later.tailrace.to_netcdf(target, append_dim="time", abs=0.010)
    before = target.read_bytes()
    for how in ({"abs": 0.02}, {"rel": 0.01}, {"abs": 0.001}, {"bound": "none"}):
        with pytest.raises(ValueError, match="'t' has the bound abs=0.01 in .*cannot change to"):
            later.tailrace.to_netcdf(target, append_dim="time", **how)
        assert target.read_bytes() == before
    later.tailrace.to_netcdf(target, append_dim="time")
    with xr.open_dataset(target, engine="tailrace") as back:
        assert back.sizes["time"] == 18
        assert 0 < abs(back.t[12:].values - later.t.values).max() <= 0.01


def test_a_codec_without_a_bound_is_exact(tmp_path):
    dataset().tailrace.to_netcdf(tmp_path / "a.nc", codec="xor")
    with xr.open_dataset(tmp_path / "a.nc", engine="tailrace") as back:
        assert (back.t == dataset().t).all()
    assert stored(tmp_path / "a.nc")["t"] == ("", "xor")


def test_bounds_of_a_dataset_are_refused_in_words(tmp_path):
    for how, kind, words in (
            ({"abs": 1, "rel": 1}, ValueError, "give one bound, not abs=1.0 and rel=1.0"),
            ({"rel": "small"}, TypeError, "rel is 'small', must be a number"),
            ({"rel": -1.0}, ValueError, "-1"), ({"codec": "trzz"}, ValueError, "did you mean"),
            ({"compute": "no"}, TypeError, "compute is 'no'")):
        with pytest.raises(kind, match=words):
            dataset().tailrace.to_netcdf(tmp_path / "a.nc", **how)
        assert not (tmp_path / "a.nc").exists()


def test_a_bound_on_lossy_values_needs_again(tmp_path):
    dataset().tailrace.to_netcdf(tmp_path / "a.nc", abs=0.01)
    with xr.open_dataset(tmp_path / "a.nc", engine="tailrace") as back:
        with pytest.raises(ValueError, match="already lossy .*again=True"):
            back.tailrace.to_netcdf(tmp_path / "b.nc", abs=0.01)
        back.tailrace.to_netcdf(tmp_path / "b.nc", abs=0.01, again=True)


@pytest.mark.parametrize("lazy", [False, True])
def test_compute_false_writes_later(lazy, tmp_path):
    given = dataset().chunk(time=2) if lazy else dataset()
    later = given.tailrace.to_netcdf(tmp_path / "a.nc", abs=0.01, compute=False)
    other = given.t.tailrace.to_netcdf(tmp_path / "b.nc", codec="none", compute=False)
    assert dask.is_dask_collection(later) and list(tmp_path.iterdir()) == []
    assert dask.compute(later, other) == (None, None)
    for name, bound in (("a", 0.01), ("b", 0)):
        with xr.open_dataset(tmp_path / f"{name}.nc", engine="tailrace") as back:
            assert abs(back.t - given.t).max() <= bound
    more = dataset().assign_coords(time=dataset().time + np.timedelta64(365, "D"))
    grows = tmp_path / "grows.nc"
    dataset().tailrace.to_netcdf(grows, unlimited_dims="time")
    later = more.tailrace.to_netcdf(grows, append_dim="time", compute=False)
    later.compute()
    with xr.open_dataset(grows, engine="tailrace") as back:
        assert back.sizes["time"] == 12


def test_compute_false_finds_errors_now_and_of_the_graph_later(tmp_path):
    given = dataset().chunk(time=2)
    with pytest.raises(ValueError, match="did you mean"):
        given.tailrace.to_netcdf(tmp_path / "a.nc", encoding={"t": {"abbs": 1}}, compute=False)

    def fails(values):
        if values.size:
            raise RuntimeError("no data today")
        return values
    given["t"] = given.t.copy(data=given.t.data.map_blocks(fails, dtype=given.t.dtype))
    later = given.tailrace.to_netcdf(tmp_path / "a.nc", abs=0.01, compute=False)
    with pytest.raises(RuntimeError, match="no data today"):
        later.compute()
    assert list(tmp_path.iterdir()) == []


def test_compute_false_on_workers(tmp_path):
    distributed = pytest.importorskip("distributed")
    dataset().tailrace.to_netcdf(tmp_path / "exact.nc")
    with distributed.Client(n_workers=1, threads_per_worker=2, processes=True,
                            dashboard_address=None), \
            xr.open_dataset(tmp_path / "exact.nc", engine="tailrace", chunks={"time": 2}) as given:
        given.tailrace.to_netcdf(tmp_path / "a.nc", abs=0.01, compute=False).compute()
    with xr.open_dataset(tmp_path / "a.nc", engine="tailrace") as back:
        assert 0 < abs(back.t - dataset().t).max() <= 0.01


def test_a_tree(tmp_path):
    tree = xr.DataTree.from_dict({"/": dataset(), "/inner": dataset()[["u"]]})
    later = tree.tailrace.to_netcdf(tmp_path / "a.nc", rel=1e-3, codec="trz", compute=False,
                                    encoding={"/inner": {"u": {"bound": "none"}}})
    later.compute()
    with xr.open_datatree(tmp_path / "a.nc", engine="tailrace") as back:
        assert 0 < abs(back["t"] - dataset().t).max() <= 1e-3 * np.ptp(dataset().t.values)
        assert (back["inner/u"] == dataset().u).all()


def test_suggestions_are_encodings(tmp_path):
    tables = dataset().tailrace.suggest_bound(rel=[1e-2, 1e-4])
    assert set(tables) == {"t", "u"} and "u: float64" in str(tables)
    assert tables["t"].units == "K" and "<table>" in tables._repr_html_()
    dataset().tailrace.to_netcdf(tmp_path / "a.nc", encoding=tables.encoding(gradient=0.5))
    assert stored(tmp_path / "a.nc")["t"] == (tables["t"].suggest(gradient=0.5).bound, "trz")
    one = dataset().t.tailrace.suggest_bound(rel=[1e-2, 1e-4])
    assert [row.max_error for row in one] == [row.max_error for row in tables["t"]]
    kept = dataset().tailrace.bits()
    assert kept["t"] == dataset().t.tailrace.bits(axis="x") == tailrace.bits(dataset().t.values)
    dataset().tailrace.to_netcdf(tmp_path / "b.nc", encoding={"t": kept["t"].encoding})
    assert stored(tmp_path / "b.nc")["t"][0] == f"pw_rel={kept['t'].pw_rel:g}"


def test_bounds_of_cells_get_no_suggestion():
    given = dataset().assign(y_b=(("y", "two"), np.linspace(0, 1, 32).reshape(16, 2)))
    given.y.attrs["bounds"] = "y_b"
    assert set(given.tailrace.suggest_bound(rel=1e-2)) == set(given.tailrace.bits()) == {
        "t", "u"}


def test_tables_leave_out_what_stays_exact_and_keep_fill_values(tmp_path):
    given = dataset().assign(
        packed=(("y", "x"), np.round(FIELD[0], 2), {}, {"dtype": "i2", "scale_factor": 0.01}),
        unpacked=(("y", "x"), FIELD[1], {"scale_factor": 0.01, "add_offset": 2.0}),
        particle_ids=("x", np.arange(24.0)), longitude=(("y", "x"), FIELD[2]),
        flags=(("y", "x"), FIELD[3], {"flag_values": np.array([0.0, 1.0]), "flag_meanings": "a b"}))
    given.t[0, :2] = np.nan
    given.t.encoding["_FillValue"] = np.float32(-9999)
    tables, bits = given.tailrace.suggest_bound(rel=[1e-2, 1e-5]), given.tailrace.bits()
    assert set(tables) == set(bits) == {"t", "u"}
    for at, encoding in enumerate((tables.encoding(gradient=0.5), bits.encoding())):
        assert set(encoding) == {"t", "u"} and "_FillValue" not in encoding["u"]
        path = tmp_path / f"{at}.nc"
        given.tailrace.to_netcdf(path, encoding=encoding)
        with xr.open_dataset(path, engine="tailrace", mask_and_scale=False) as file:
            assert file.t.attrs["_FillValue"] == -9999 and (file.t[0, :2] == -9999).all()
            assert file.packed.dtype == "i2" and (file.longitude == given.longitude).all()


def test_a_report(tmp_path):
    given = dataset()
    given.tailrace.to_netcdf(tmp_path / "a.nc", abs=0.01, codec="trz")
    made = given.tailrace.report(tmp_path / "a.nc", tmp_path / "r.html").check()
    assert made["t"].bound == "abs=0.01" and 0 < made["t"].max_error <= 0.01
    assert "temporary" not in (tmp_path / "r.html").read_text()
    with xr.open_dataset(tmp_path / "a.nc", engine="tailrace") as back:
        made = given.tailrace.report(back, tmp_path / "r.html", abs=0.02, figures=False).check()
        assert 0 < made["t"].max_error <= 0.01
        made = given.t.tailrace.report(back.t, tmp_path / "r.html", abs=0.02, figures=False).check()


def test_signatures_are_those_of_the_functions():
    """Codec settings are only in tailrace.suggest_bound()."""
    from tailrace import _accessor
    for accessor, method, function in (
            (_accessor.DatasetAccessor, "to_netcdf", tailrace.write_dataset),
            (_accessor.DataArrayAccessor, "to_netcdf", tailrace.write_dataset),
            (_accessor.DataTreeAccessor, "to_netcdf", tailrace.write_datatree),
            (_accessor.DatasetAccessor, "report", tailrace.report),
            (_accessor.DataArrayAccessor, "suggest_bound", tailrace.suggest_bound),
            (_accessor.DataArrayAccessor, "bits", tailrace.bits)):
        ours, theirs = (list(inspect.signature(one).parameters.values())[1:]
                        for one in (getattr(accessor, method), function))
        assert ours == (theirs[:len(ours)] if method == "suggest_bound" else theirs), method
