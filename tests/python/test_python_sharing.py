"""Attributes about required filters, and files that need no filter."""

import logging
import pathlib

import h5py
import netCDF4
import numpy as np
import pytest

import python_package
from cli_tools import smooth

tailrace = python_package.load()
FIELD = smooth((12, 16, 24))
NEED = "tailrace_readers_need"


def write(path, **keywords):
    """Write a file with everything that make_portable() copies, and its lossless original."""
    for target, how in ((path, keywords), (path.with_name("original.nc"), {})):
        with tailrace.open(target, "w") as file:
            file.attrs["title"] = "Winds"
            file.create_dimension("time")
            u = FIELD.copy()
            u[0, 0] = -999
            file.create_variable("u", ("time", "y", "x"), data=u, fill_value=-999.0,
                                 attrs={"units": "m"}, chunks=(4, 16, 24), **how)
            file.create_variable("g/h/w", ("y", "x"), data=FIELD[3] * 10, **how)
            file.create_variable("count", ("y",), data=np.arange(16, dtype="u2"))
            file.create_variable("name", ("y",), data=np.array(["a", "ö"] * 8, object))
            file.create_variable("crs", (), data=np.int32(7), attrs={"names": ["x", "y"]})


@pytest.mark.parametrize("keywords, words", [
    ({"abs": 1e-3, "codec": "trz"},
     ["pip install ./python/filters", "HDF5_PLUGIN_PATH", "filter trz"]),
    ({"codec": "xor"}, ["pip install ./python/filters", "filter xor"]),
    ({"codec": "zstd"}, ["pip install hdf5plugin", "filter zstd"]),
    ({"abs": 1e-3, "codec": "portable"}, None), ({}, None), ({"zlib": True, "abs": 1e-3}, None)])
def test_a_file_says_what_its_readers_need(keywords, words, tmp_path, caplog):
    if keywords.get("codec") == "zstd":
        pytest.importorskip("hdf5plugin")
    path = tmp_path / "out.nc"
    with caplog.at_level(logging.INFO, "tailrace"):
        write(path, **keywords)
    with netCDF4.Dataset(path) as file:
        assert hasattr(file, NEED) == (words is not None)
        assert file.title == "Winds" and file["u"].shape == (12, 16, 24)
        for word in [] if words is None else [*words, 'codec="portable"']:
            assert word in getattr(file, NEED)
            assert word in caplog.text and str(path) in caplog.text
    assert bool(caplog.text) == (words is not None)


def test_it_is_said_of_chosen_codecs_and_of_additions(tmp_path):
    path = tmp_path / "out.nc"
    with tailrace.open(path, "w", options="codec=trz,bound=abs=1e-3") as file:
        file.create_variable("u", ("z", "y", "x"), data=FIELD)
    with tailrace.open(path) as file:
        assert "filter trz" in file.attrs[NEED]
    with tailrace.open(path, "a") as file:
        file.create_variable("v", ("z", "y", "x"), data=FIELD, codec="xor")
    with tailrace.open(path) as file:
        assert "filters trz, xor" in file.attrs[NEED]
        assert np.array_equal(file["v"][...], FIELD)


@pytest.mark.parametrize("keywords", [{"abs": 1e-3, "codec": "trz"}, {"rel": 1e-4, "codec": "trz"},
                                      {"pw_rel": 1e-3, "codec": "trz"}, {"codec": "xor"},
                                      {"abs": 1e-3, "codec": "portable"}])
@pytest.mark.parametrize("loosen", [0, 0.5, 1])
def test_a_portable_file_keeps_what_it_says(keywords, loosen, tmp_path):
    path, original = tmp_path / "out.nc", tmp_path / "original.nc"
    write(path, **keywords)
    path.chmod(0o640)
    with tailrace.open(path) as file:
        before = {name: file[name][...] for name in ("u", "g/h/w", "count", "name", "crs")}
    made = tailrace.make_portable(path, loosen=loosen)
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(p.name for p in tmp_path.iterdir()) == ["original.nc", "out.nc"]
    with h5py.File(path) as file:
        assert {file[name].compression for name in ("u", "g/h/w", "count")} <= {"gzip", None}
        assert NEED not in file.attrs
    with netCDF4.Dataset(path) as file:
        assert file.title == "Winds" and file["u"].units == "m" and file["u"]._FillValue == -999
        assert file["u"].chunking() == [4, 16, 24] and file.dimensions["time"].isunlimited()
        assert list(file["name"][:]) == list(before["name"]) and file["crs"].names == ["x", "y"]
    assert tailrace.verify(original, path).check()
    with tailrace.open(path) as file, tailrace.open(original) as first:
        for name in before:
            if not loosen or name in ("count", "name", "crs"):
                assert np.array_equal(file[name][...], before[name]), name
            if name in ("count", "name", "crs"):
                continue
            error = np.abs(file[name][...].astype("f8") - first[name][...])
            if "pw_rel" in keywords:
                assert made[name] is None
                bound = made.pointwise[f"/{name}"] * np.abs(first[name][...])
            else:
                bound = made[name]
                assert bound == pytest.approx((1 + loosen) * {
                    "abs": 1e-3, "rel": 1e-4 * np.ptp(FIELD[3] * 10 if name != "u" else np.where(
                        np.arange(12 * 16 * 24).reshape(FIELD.shape) < 24, FIELD[1, 0, 0], FIELD)),
                    "codec": 0}[next(iter(keywords))], rel=1e-5)
            assert (error <= bound).all()
        assert (file["u"][0, 0] == -999).all()
    assert made.bytes_now == path.stat().st_size and f"{path}" in repr(made)
    if not loosen:
        assert tailrace.make_portable(path).bytes_now == made.bytes_now  # No further change.


def test_another_file_may_take_it(tmp_path):
    path = tmp_path / "out.nc"
    write(path, abs=1e-3, codec="trz")
    before = path.read_bytes()
    made = tailrace.make_portable(path, tmp_path / "copy.nc")
    assert path.read_bytes() == before and made.path == str(tmp_path / "copy.nc")
    with h5py.File(made.path) as file, tailrace.open(path) as source:
        assert np.array_equal(file["u"][...], source["u"][...])


def test_what_cannot_be_made_portable_stays(tmp_path, monkeypatch):
    path = tmp_path / "out.nc"
    write(path, abs=1e-3, codec="trz")
    other = tmp_path / "other.h5"
    with h5py.File(other, "w") as file:
        file["pair"] = np.zeros(3, [("a", "i4"), ("b", "f8")])
    with netCDF4.Dataset(tmp_path / "compound.nc", "w") as file:
        file.createDimension("x", 2)
        pair = file.createCompoundType(np.dtype([("a", "i4")]), "pair_t")
        file.createVariable("pair", pair, ("x",))
    names = sorted(p.name for p in tmp_path.iterdir())
    for given, words in ((other, "not a netCDF-4 file; .*repack"),
                         (tmp_path / "compound.nc", "/pair: values of type.*repack")):
        before = given.read_bytes()
        with pytest.raises(NotImplementedError, match=words):
            tailrace.make_portable(given)
        assert given.read_bytes() == before
    before = path.read_bytes()
    for wrong in (-1, "much", float("nan"), True):
        with pytest.raises(ValueError, match="loosen"):
            tailrace.make_portable(path, loosen=wrong)
    with pytest.raises(FileNotFoundError):
        tailrace.make_portable(tmp_path / "none.nc")

    def lose(given, made):
        with tailrace.open(made, "a") as file:
            file["u"][3, 4, 5] = 7.0
        compare(given, made)

    compare = tailrace._sharing._compare
    monkeypatch.setattr(tailrace._sharing, "_compare", lose)
    with pytest.raises(tailrace.BoundError, match="was not changed"):
        tailrace.make_portable(path)
    assert path.read_bytes() == before and sorted(p.name for p in tmp_path.iterdir()) == names


@pytest.mark.parametrize("ranks", [1, 3])
def test_ranks_say_it_once(ranks, tmp_path):
    pytest.importorskip("mpi4py")
    folder = python_package.package_environment()["TAILRACE_ENGINE_DIR"]
    if not list(pathlib.Path(folder).glob("_mpi*.so")):
        pytest.skip("built without MPI")
    path = tmp_path / "out.nc"
    said = python_package.run(f"""
    import logging, sys
    import numpy as np
    from mpi4py import MPI
    import tailrace
    logging.basicConfig(stream=sys.stdout)
    comm = MPI.COMM_WORLD
    for name in "uv":
        with tailrace.open({str(path)!r}, "a", comm=comm) as file:
            if name == "u":
                file.create_dimension("x", 1000 * comm.size)
            v = file.create_variable(name, ("x",), "f8", abs=0.1, codec="trz")
            v[1000 * comm.rank:1000 * (comm.rank + 1)] = np.arange(1000) / 7
    """, ranks=ranks)
    assert said.count("pip install ./python/filters") == 1
    with tailrace.open(path) as file:
        assert "filter trz" in file.attrs[NEED] and file["v"].codec == "trz"
