"""Files with parts that cannot be read or stored: these are reported, and nothing else is lost."""

import pathlib
import warnings

import h5py
import numpy as np
import pytest

import python_package

tailrace = python_package.load()


@pytest.fixture
def damaged(tmp_path):
    path = tmp_path / "damaged.h5"
    with h5py.File(path, "w") as file:
        file["u"] = np.arange(6.0)
        file["w"] = np.arange(4)
        file["u"].attrs["remark"] = ["one", "two"]
        file["u"].attrs["scale"] = 2.5
    data = path.read_bytes()
    assert data.count(b"GCOL") == 1  # the heap of variable-length texts
    path.write_bytes(data.replace(b"GCOL", b"G\0OL"))
    return path


@pytest.mark.parametrize("mode", ["r", "a"])
def test_a_damaged_attribute_costs_no_variables(damaged, mode):
    with pytest.warns(RuntimeWarning, match='attribute "remark" of "/u"'):
        file = tailrace.open(damaged, mode)
    with file:
        assert sorted(file.variables) == ["u", "w"]
        assert np.array_equal(file["u"][:], np.arange(6.0))
        assert file["u"].attrs["scale"] == 2.5


def test_a_file_is_not_changed_while_an_index_cannot_be_read(tmp_path):
    """Chunks may share places (concat --dedup), which cannot be determined without the index."""
    path = tmp_path / "damaged.h5"
    with h5py.File(path, "w", libver=("v110", "v110")) as file:
        file.create_dataset("u", data=np.arange(40), chunks=(5,), maxshape=(None,))
        file.create_dataset("w", data=np.arange(4))
    data = path.read_bytes()
    assert data.count(b"EAIB") == 1
    path.write_bytes(data.replace(b"EAIB", b"EA\0B"))
    with tailrace.open(path) as file:
        assert np.array_equal(file["w"][:], np.arange(4))
    with pytest.raises(tailrace.TailraceError, match='"/u"'):
        tailrace.open(path, "a")
    assert path.read_bytes() == data.replace(b"EAIB", b"EA\0B")


def test_misspelt_options_are_named(tmp_path):
    with pytest.raises(ValueError, match='"layuot"; did you mean "layout"'):
        tailrace.open(tmp_path / "a.nc", "w", options="layuot=dense")
    with tailrace.open(tmp_path / "a.nc", "w") as file:
        with pytest.raises(ValueError, match='"memroy"'):
            file.create_variable("u", ("x",), data=np.zeros(4), memroy="1MB")


@pytest.mark.parametrize("keywords, meant", [
    (dict(codec="tzr"), "trz"), (dict(codec="trz", preset="defualt"), "default"),
    (dict(bound="asb=1e-3"), "abs"), (dict(codec="deflate", preset="max"), None),
    (dict(layout="danse"), "dense"), (dict(compatibility="evryone"), "everyone"),
    (dict(layuot="dense"), "layout")])
def test_keywords_and_options_fail_alike(keywords, meant, tmp_path):
    text = ", ".join(f" {key} = {value}" for key, value in keywords.items())
    for arguments in (keywords, dict(options=text)):
        with pytest.raises(ValueError) as refused:
            with tailrace.open(tmp_path / "a.nc", "w", **arguments) as file:
                file.create_variable("u", ("x",), data=np.zeros(4000))
        hint = f'did you mean "{meant}"?' if meant else '"preset" belongs to trz'
        assert hint in str(refused.value)
    with pytest.raises(ValueError, match='did you mean "abs"'):
        with tailrace.open(tmp_path / "b.nc", "w") as file:
            file.create_variable("u", ("x",), data=np.zeros(4), bound="asb=1e-3")


def test_open_takes_options_as_keywords(tmp_path):
    u = np.linspace(0, 1, 4000)
    with tailrace.open(tmp_path / "a.nc", "w", codec="trz", abs=1e-3, fsync=False) as file:
        file.create_variable("u", ("x",), data=u)
    with tailrace.open(tmp_path / "a.nc", memory="8 MiB", prefetch=False) as file:
        assert file["u"].bound and abs(file["u"][...] - u).max() <= 1e-3


def test_a_file_that_is_not_closed_causes_a_warning(tmp_path):
    file = tailrace.open(tmp_path / "a.nc", "w")
    file.create_variable("u", ("x",), data=np.arange(4))
    with pytest.warns(ResourceWarning, match="unclosed file .*a.nc"):
        del file
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with tailrace.open(tmp_path / "a.nc", "a") as file:
            assert file["u"][2] == 2
        del file
        reading = tailrace.open(tmp_path / "a.nc")
        del reading


def test_steps_are_those_of_all_variables(tmp_path):
    with tailrace.open(tmp_path / "a.nc", "w") as file:
        assert (file.steps, file.last_step) == (range(0), None)
        for name, n in (("t", None), ("often", None), ("x", 4)):
            file.create_dimension(name, n)
        file.create_variable("u", ("t", "x"), "f4")
        file.create_variable("v", ("often",), "f8")
        file.create_variable("w", ("x",), "f8")
        file["u"][2] = 1
        file["v"][4] = 1
        assert file.last_step == 2
    with tailrace.open(tmp_path / "a.nc") as file:
        assert [step for step in file.steps] == [0, 1, 2]


def test_a_file_open_many_times_gives_its_texts(tmp_path):
    """HDF5 uses cached pointers to closed handles here, on which netCDF4 crashes, too."""
    path = tmp_path / "texts.nc"
    texts = [f"row {i}" for i in range(16)]
    with tailrace.open(path, "w") as file:
        file.create_variable("name", ("y",), data=np.array(texts, object), fill_value="none")
    python_package.run(f"""
    import random
    import tailrace
    random.seed(1)
    files = []
    for _ in range(2000):
        what = random.randrange(4)
        if what == 0 or not files:
            files.append(tailrace.open({str(path)!r}))
        elif what == 1:
            files.pop(random.randrange(len(files))).close()
        elif what == 2 and random.random() < 0.1:
            tailrace.info({str(path)!r})
        else:
            assert files[random.randrange(len(files))]["name"][3] == "row 3"
    """)


@pytest.mark.parametrize("way", ["close", "write_dataset"])
def test_an_older_file_stays_if_a_variable_cannot_be_stored_at_close(tmp_path, way):
    path = tmp_path / "file.nc"
    older = np.arange(24.0)
    with tailrace.open(path, "w") as file:
        file.create_variable("older", ("x",), data=older)
    swamped = np.linspace(0, 1, 4000).astype("f4")
    swamped[::100] = -1e10  # An undeclared fill value, which widens rel=.
    with pytest.raises(Exception, match=r"is unchanged, and all other variables are in .*partial"):
        if way == "write_dataset":
            import xarray as xr
            dataset = xr.Dataset({"good": ("x", older), "bad": ("y", swamped)})
            tailrace.write_dataset(dataset, path, encoding={"bad": {"codec": "trz", "rel": 1e-3}})
        else:
            file = tailrace.open(path, "w")
            file.create_variable("good", ("x",), data=older)
            file.create_variable("bad", ("y",), data=swamped, codec="trz", rel=1e-3)
            file.close()
    with h5py.File(path) as file:
        assert list(file)[:1] == ["older"] and (file["older"][:] == older).all()
    with h5py.File(f"{path}.partial") as file:
        assert (file["good"][:] == older).all() and "bad" not in file
    with tailrace.open(path, "w") as file:  # The next file replaces both.
        file.create_variable("newer", ("x",), data=older)
    with h5py.File(path) as file:
        assert "newer" in file and "older" not in file
    assert not pathlib.Path(f"{path}.partial").exists()


@pytest.mark.parametrize("begin, words", [
    (b"this is no file of HDF5", 'the file begins with "this is "'),
    (b"\x00\xff", 'the file begins with ".."'), (b"", "the file is empty")])
def test_files_of_other_formats_are_named(begin, words, tmp_path):
    path = tmp_path / "other.txt"
    path.write_bytes(begin)
    with pytest.raises(OSError, match=words) as failure:
        tailrace.open(path)
    assert str(path) in str(failure.value) and "signature" not in str(failure.value)


def test_a_file_behind_a_user_block_is_not_one_of_another_format(tmp_path):
    """Its first bytes are text, and HDF5's error stays."""
    whole, path = tmp_path / "whole.nc", tmp_path / "cut.nc"
    with tailrace.open(whole, "w") as file:
        file.create_variable("u", ("x",), data=np.arange(9000.0))
    data = whole.read_bytes()
    path.write_bytes(b"text".ljust(512) + data[:len(data) // 5])
    with pytest.raises(OSError) as failure:
        tailrace.open(path)
    assert "begins with" not in str(failure.value)


def test_wrong_names_suggest_the_nearest(tmp_path):
    with tailrace.open(tmp_path / "u.nc", "w") as file:
        file.create_variable("sst", ("x",), data=np.arange(9.0))
        file.create_group("ocean").create_variable("salt", ("x",), data=np.arange(9.0))
        for name, nearest in (("sstt", "sst"), ("ocaen", "ocean"), ("ocean/slat", "salt"),
                              ("/ocean/salts", "salt")):
            with pytest.raises(KeyError, match=f'or group /.*; did you mean "{nearest}"'):
                file[name]
            assert name not in file
        for name in ("pressure", "nothing/like/this", "sst/inside"):
            with pytest.raises(KeyError) as failure:
                file[name]
            assert "did you mean" not in str(failure.value) and name not in file
        assert "sst" in file and "ocean/salt" in file
