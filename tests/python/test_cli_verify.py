"""tailrace verify, info and recover: their findings, output and exit codes."""

import shutil

import h5py
import netCDF4
import numpy as np
import pytest

from cli_tools import ENVIRONMENT, data_file, datasets, numbers, own_lines, smooth, tailrace

pytestmark = pytest.mark.sample(3)


@pytest.fixture
def pair(tmp_path):
    """Write an original with two fields, and repack it with plain chunks, which h5py can change."""
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(source, "w") as file:
        file["g/u"] = smooth((30, 40, 50), 1)
        file["g/v"] = smooth((20, 30), 2)
        file["g/n"] = np.arange(5000, dtype="i8") + 2**60
    tailrace("repack", source, "-o", target, "--bound", "abs=0.001", "--chunk", "16x16x16",
             "--codec", "portable", ranks=2)
    return source, target


def change(path, dataset, index, value):
    with h5py.File(path, "r+") as file:
        file[dataset][index] = value


@pytest.mark.parametrize("ranks", [1, 3])
def test_one_broken_value(pair, ranks):
    source, target = pair
    original = datasets(source)["g/u"][17, 3, 42]
    change(target, "g/u", (17, 3, 42), original + 0.5)
    done = tailrace("verify", source, target, ranks=ranks, code=1)
    line = " ".join(done.stdout[done.stdout.index("[17, 3, 42]"):].split())
    assert f"original {original!s}" in line
    assert "= 500" in line and "x bound" in line
    assert "1 of 60000 values beyond the bound 0.001" in done.stdout
    assert "1 of 3 fields failed" in done.stdout and "other difference" not in done.stdout

    report = numbers("verify", source, target, ranks=ranks, code=1)
    fields = {field["path"]: field for field in report["fields"]}
    assert report["n_failed"] == 1
    assert [fields[path]["kept"] for path in ("/g/u", "/g/v", "/g/n")] == [False, True, True]
    assert fields["/g/u"]["n_beyond_bound"] == 1
    assert fields["/g/u"]["worst"]["index"] == [17, 3, 42]
    assert fields["/g/u"]["max_error"] == pytest.approx(0.5, rel=1e-5)


def test_many_broken_values_show_the_first_and_the_worst(pair):
    source, target = pair
    values = datasets(target)["g/u"][:, 7, 7]
    change(target, "g/u", (slice(None), 7, 7), values + np.linspace(0.1, 0.9, 30, dtype="f4"))
    field = numbers("verify", source, target, ranks=2, code=1, )["fields"]
    field = next(f for f in field if f["path"] == "/g/u")
    assert field["n_beyond_bound"] == 30
    assert [o["index"] for o in field["offenders"]] == [[i, 7, 7] for i in range(5)]
    assert field["worst"]["index"] == [29, 7, 7]
    text = tailrace("verify", source, target, code=1).stdout
    assert "[0, 7, 7]" in text and "[29, 7, 7]" in text and "(largest)" in text


def test_integers_must_be_equal(pair):
    source, target = pair
    change(target, "g/n", 4711, 2**60 + 4712)
    done = tailrace("verify", source, target, code=1)
    assert f"[4711]  original {2**60 + 4711}  decoded {2**60 + 4712}  error 1" in done.stdout
    assert "exact values expected" in done.stdout


def test_special_values_must_stay(tmp_path):
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    values = smooth((40, 50))
    values[3, 4], values[5, 6] = np.nan, np.inf
    with h5py.File(source, "w") as file:
        file["u"] = values
    tailrace("repack", source, "-o", target, "--bound", "abs=0.01", "--codec", "portable")
    assert numbers("verify", source, target)["fields"][0]["n_nan"] == 1
    change(target, "u", (3, 4), 0)
    done = tailrace("verify", source, target, code=1)
    assert "1 special value" in done.stdout and "[3, 4]  original nan  decoded 0" in done.stdout


def test_missing_field_and_other_shape(pair):
    source, target = pair
    with h5py.File(target, "r+") as file:
        del file["g/v"]
        del file["g/u"]
        file["g/u"] = np.zeros((30, 40), "f4")
    done = tailrace("verify", source, target, ranks=2, code=1)
    assert 'dataset "/g/v" is missing in the compressed file' in done.stdout
    assert 'dataset "/g/u": shape is 30x40x50 in the original, 30x40' in done.stdout


def test_what_was_carried_over_must_be_there(tmp_path):
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(source, "w") as file:
        file["u"] = smooth((30, 40))
        file["g/names"] = ["first", "a longer second"]
        file["table"] = np.array([(1, 2.5)], [("n", "i4"), ("v", "f8")])
        file["link"] = h5py.SoftLink("/u")
    tailrace("repack", source, "-o", target)
    assert numbers("verify", source, target)["n_failed"] == 0
    with h5py.File(target, "r+") as file:
        del file["g"], file["table"], file["link"]
    report = numbers("verify", source, target, ranks=2, code=1)
    assert report["problems"] == [f'{what} is missing in the compressed file' for what in
                                  ('group "/g"', 'dataset "/g/names"', 'soft link "/link"',
                                   'dataset "/table"')]
    tailrace("verify", source, target, "--only", "/u")  # Omits all other fields.


@pytest.mark.parametrize("ranks", [1, 2])
def test_values_that_were_carried_over_must_stay(tmp_path, ranks):
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    pair_type = np.dtype([("a", "i4"), ("b", "f8")])
    with h5py.File(source, "w") as file:
        file["u"], file["v"] = np.arange(8.0), np.arange(4.0)
        file["words"] = np.array(["one", "two", "three"], dtype=h5py.string_dtype())
        file["names"] = np.array([b"x", b"y"])
        file["pairs"] = np.array([(1, 2.0), (3, np.nan)], pair_type)
        file["single"] = "text"
        file["nothing"] = h5py.Empty("f4")
        file["leads"] = np.array([file["u"].ref, file["v"].ref], h5py.ref_dtype)
    tailrace("repack", source, "-o", target)
    tailrace("verify", source, target, ranks=ranks)
    tailrace("repack", source, "-o", tmp_path / "less.h5", "--exclude", "/v")
    tailrace("verify", source, tmp_path / "less.h5", "--exclude", "/v", ranks=ranks)
    change(target, "words", 1, "TWO")
    change(target, "pairs", 0, (1, 2.5))
    with h5py.File(target, "r+") as file:
        file["single"][()] = "texts"
        file["leads"][0] = file["words"].ref
        del file["names"]
        file["names"] = np.array([b"x", b"y", b"z"])
    found = numbers("verify", source, target, code=1, ranks=ranks)["problems"]
    assert sorted(found) == sorted([
        'dataset "/words": 1 of 3 values differs, first [1]: "TWO", but "two" in the original',
        'dataset "/pairs": 1 of 2 values differs, first [0]: {1, 2.5}, but {1, 2} in the original',
        'dataset "/leads": 1 of 2 values differs, first [0]: -> /words, but -> /u in the original',
        'dataset "/single": its value is "texts", but "text" in the original',
        'dataset "/names": shape is 2 in the original, 3 in the compressed file',
        'dataset "/names": maximum shape is 2 in the original, 3 in the compressed file'])


@pytest.mark.parametrize("ranks", [1, 2])
def test_attributes_that_were_carried_over_must_stay(tmp_path, ranks):
    source, target, less = (tmp_path / name for name in ("in.h5", "out.h5", "less.h5"))
    with h5py.File(source, "w") as file:
        file["u"], file["v"], file["x"] = np.zeros((4, 8)), np.zeros(8), np.arange(8.0)
        file["y"], file["x2"], file["w"] = np.arange(4.0), np.arange(8.0), np.zeros((5, 8))
        for name in ("x", "y", "x2"):
            file[name].make_scale(name)
        for name, dimension, scale in (("u", 0, "y"), ("u", 1, "x"), ("u", 1, "x2"), ("v", 0, "x"),
                                       ("w", 1, "x")):
            file[name].dims[dimension].attach_scale(file[scale])
        file["another_x"] = file["x"]
        file["words"] = ["one", "two"]
        file.create_group("g")
        for path in ("/", "u", "words", "g"):
            file[path].attrs["units"] = np.array([1.5, np.nan])
            file[path].attrs["title"] = "a text"
            file[path].attrs["leads"] = np.array([file["v"].ref], h5py.ref_dtype)
    tailrace("repack", source, "-o", target, "--bound", "abs=0.01", "--codec", "portable")
    tailrace("verify", source, target, ranks=ranks)
    tailrace("verify", target, target)  # Tailrace's own attributes are not a difference.
    tailrace("repack", source, "-o", less, "--netcdf")
    tailrace("verify", source, less)
    for left_out in ("/v", "/x2", "/y"):
        tailrace("repack", source, "-o", less, "--exclude", left_out, "--force")
        tailrace("verify", source, less, "--exclude", left_out, ranks=ranks)
    with h5py.File(target, "r+") as file:
        del file["u"].attrs["units"]  # The maximal extents of an attribute do not matter.
        units = h5py.h5a.create(file["u"].id, b"units", h5py.h5t.IEEE_F64LE,
                                h5py.h5s.create_simple((2,), (h5py.h5s.UNLIMITED,)))
        units.write(np.array([1.5, np.nan]))
    tailrace("verify", source, target, ranks=ranks)
    with h5py.File(target, "r+") as file:
        file.attrs["title"] = "another"
        file["u"].attrs["units"] = np.array([1.5, 2.5])
        file["g"].attrs["leads"] = np.array([file["u"].ref], h5py.ref_dtype)
        del file["words"].attrs["units"]
        file["words"].attrs["title"] = 3
        file["v"].dims[0].detach_scale(file["x"])
        file.attrs["more"] = 1
        file["g"].attrs["units"] = np.array([1.5, 2], "f4")
    found = numbers("verify", source, target, code=1, ranks=ranks)["problems"]
    assert sorted(found) == sorted([
        'group "/": attribute "title" is "another", but "a text" in the original',
        'group "/": attribute "more" exists only in the compressed file',
        'dataset "/u": attribute "units"[1] is 2.5, but nan (0x7ff8000000000000) in the original',
        'group "/g": attribute "leads" is -> /u, but -> /v in the original',
        'group "/g": size of attribute "units" is 8 bytes in the original, 4 bytes in the '
        'compressed file',
        'group "/g": attribute "units"[1] is 2, but nan (0x7ff8000000000000) in the original',
        'dataset "/words": attribute "units" is missing',
        'dataset "/words": class of attribute "title" is text in the original, integer in the '
        'compressed file',
        'dataset "/words": attribute "title" is 3, but "a text" in the original',
        'dataset "/another_x": attribute "REFERENCE_LIST" lacks {-> /v, 0}, which it has in the '
        'original',
        'dataset "/v": attribute "DIMENSION_LIST" is missing'])


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("form", ["NETCDF3_CLASSIC", "NETCDF3_64BIT_DATA"])
def test_what_a_classic_file_says_besides_its_numbers_must_stay(tmp_path, ranks, form):
    """verify compares characters and attributes, in our copy and in a classic copy."""
    source, target = tmp_path / "in.nc", tmp_path / "out.h5"
    with netCDF4.Dataset(source, "w", format=form) as file:
        for name, length in (("record", None), ("width", 6), ("x", 3)):
            file.createDimension(name, length)
        file.title, file.levels = "a title", np.array([1, 2, 3], "i2")
        file.setncattr("nothing", "")
        label = file.createVariable("label", "S1", ("record", "width"))
        label.meaning = "names"
        field = file.createVariable("field", "f4", ("record", "x"), fill_value=-1)
        field.units, field.valid = "K", np.float32(np.nan)
        letter = file.createVariable("letter", "S1", ())
        label[:] = np.array([list("abcdef")] * 4, "S1")
        field[:], letter[...] = np.arange(12).reshape(4, 3), b"q"
    tailrace("repack", source, "-o", target)
    tailrace("verify", source, target, ranks=ranks)
    tailrace("verify", source, source, ranks=ranks)
    with h5py.File(target, "r+") as file:
        file.attrs["more"] = 1  # The copy may have more attributes, and equal ones of other types.
        file.attrs["levels"] = np.array([1, 2, 3], "i8")
    tailrace("verify", source, target, ranks=ranks)
    lines = ['group "/": attribute "title" is "another", but "a title" in the original',
             'group "/": attribute "levels" is {1, 2, 4}, but {1, 2, 3} in the original',
             'dataset "/label": attribute "meaning" is missing in the output',
             'dataset "/label" differs from the original in 2 characters, first at [2, 1]: "B", '
             'but "b" in the original',
             'field "/field": attribute "units" has another type than in the original',
             'dataset "/letter" differs from the original in 1 character, first at []: "Q", but '
             '"q" in the original']
    with h5py.File(target, "r+") as file:
        file.attrs["title"] = "another"
        file.attrs["levels"] = np.array([1, 2, 4], "i2")
        del file["label"].attrs["meaning"]
        file["field"].attrs["units"] = 3
    with netCDF4.Dataset(target, "a") as file:
        file["label"][2:, 1] = b"B"
        file["letter"][...] = b"Q"
    found = numbers("verify", source, target, code=1, ranks=ranks)["problems"]
    assert sorted(found) == sorted(f"{target}: {line}" for line in lines)
    only = numbers("verify", source, target, "--only", "/field", code=1, ranks=ranks)["problems"]
    assert sorted(only) == sorted(f"{target}: {line}" for line in lines if "/field" in line)
    changed = tmp_path / "changed.nc"
    changed.write_bytes(source.read_bytes())
    with netCDF4.Dataset(changed, "a") as file:
        file.title = "another"
        file["label"][2:, 1] = b"B"
    found = numbers("verify", source, changed, code=1, ranks=ranks)["problems"]
    assert sorted(found) == sorted(f"{changed}: {line}" for line in (lines[0], lines[3]))


def test_files_without_number_arrays_are_compared(tmp_path):
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(source, "w") as file:
        file["names"] = ["first", "second"]
    shutil.copy(source, target)
    assert numbers("verify", source, target)["n_failed"] == 0
    change(target, "names", 0, "FIRST")
    assert len(numbers("verify", source, target, code=1)["problems"]) == 1


def test_an_unreadable_dataset_of_texts_is_an_error(tmp_path):
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(source, "w") as file:
        file["u"] = smooth((30, 40))
        file["names"] = ["first", "a longer second"]
    whole = source.read_bytes()
    assert whole.count(b"GCOL") == 1
    source.write_bytes(whole.replace(b"GCOL", b"XCOL"))
    target.write_bytes(b"older")
    for quiet in ([], ["-q"]):
        for ranks in (1, 2):
            done = tailrace("repack", source, "-o", target, "--force", *quiet, ranks=ranks, code=2)
            assert 'reading dataset "/names"' in done.stderr
            assert target.read_bytes() == b"older"


def test_file_of_another_tool(tmp_path):
    values = smooth((40, 50))
    for name, noise in (("a.h5", 0), ("b.h5", 0.01)):
        with h5py.File(tmp_path / name, "w") as file:
            file["u"] = values + np.float32(noise)
    source, target = tmp_path / "a.h5", tmp_path / "b.h5"
    assert "records no error bound" in tailrace("verify", source, target, code=1).stdout
    tailrace("verify", source, target, "--bound", "abs=0.011")
    tailrace("verify", source, target, "--bound", "rel=0.01", ranks=2)
    tailrace("verify", source, target, "--bound", "rel=1e-4", ranks=2, code=1)
    tailrace("verify", source, target, "--bound", "psnr=40")
    done = tailrace("verify", source, target, "--bound", "psnr=80", code=1)
    assert "at least 80 dB expected" in done.stdout
    tailrace("verify", source, target, "--field", "u:bound=abs=0.011")
    tailrace("verify", source, target, "--field", "u:level=3", code=2)
    tailrace("verify", source, source)


def test_info(pair):
    source, target = pair
    report = numbers("info", target, "--chunks", "/g/u")
    field = next(f for f in report["fields"] if f["path"] == "/g/u")
    assert field["n_chunks"] == 2 * 3 * 4 == len(field["chunks"])
    assert field["codec"] == "portable" and field["absolute_bound"] == 0.001
    assert [f["name"] for f in field["filters"]] == ["shuffle", "deflate"]
    with h5py.File(target) as file:
        for chunk in field["chunks"]:
            known = file["g/u"].id.get_chunk_info_by_coord(tuple(chunk["start"]))
            assert (known.byte_offset, known.size) == (chunk["address"], chunk["bytes"])
    assert report["file_bytes"] == target.stat().st_size
    assert report["data_bytes"] + report["other_bytes"] == report["file_bytes"]
    text = tailrace("info", target).stdout
    assert "portable" in text and "abs=0.001" in text
    assert max(map(len, text.splitlines())) <= 100
    # Under mpiexec only one rank prints. A launcher's terminal has no width.
    of_width = ENVIRONMENT | {"COLUMNS": "100"}
    answers = [tailrace("info", target, ranks=ranks, environment=of_width).stdout
               for ranks in (1, 3)]
    assert answers[0] == answers[1]


def test_info_takes_every_format(tmp_path):
    np.save(tmp_path / "u.npy", smooth((10, 20)))
    (tmp_path / "u.bin").write_bytes(bytes(800))
    assert "npy" in tailrace("info", tmp_path / "u.npy").stdout
    assert "raw" in tailrace("info", tmp_path / "u.bin", "--raw", "f32:10x20").stdout
    assert "HDF5" in tailrace("info", data_file("climate.h5", tmp_path)).stdout


def test_recover(pair):
    _, target = pair
    said = " ".join(tailrace("recover", target).stdout.split())
    assert "is complete and undamaged" in said
    assert numbers("recover", target, ranks=2)["state"] == "whole"
    cut = target.with_name("cut.h5")
    shutil.copy(target, cut)
    with open(cut, "r+b") as file:
        file.truncate(target.stat().st_size // 2)
    report = numbers("recover", cut, code=1)
    assert report["state"] == "damaged" and report["findings"]
    done = tailrace("recover", target.with_name("absent.h5"), code=2)
    assert len(own_lines(done.stderr)) == 1


def test_references_are_compared_by_what_they_lead_to(tmp_path):
    """An object with two hard links may have another name in each file."""
    source, target = tmp_path / "in.h5", tmp_path / "out.h5"
    with h5py.File(source, "w") as file:
        file["g/x"] = np.arange(1000.)
        file["b"] = file["g/x"]
        file["refs"] = np.array([file["b"].ref, file["g/x"].ref], dtype=h5py.ref_dtype)
        file["one"] = file["g/x"].ref
        file["b"].attrs["self"] = file["b"].ref
    tailrace("repack", source, "-o", target)
    with h5py.File(target) as file:
        assert file["b"] == file["g/x"] == file[file["refs"][0]] == file[file["one"][()]]
    tailrace("verify", source, target)
    with h5py.File(target, "r+") as file:
        file["one"][()] = h5py.Reference()
    done = tailrace("verify", source, target, code=1)
    assert '"/one": its value is -> null, but -> /b in the original' in done.stdout, done.stdout


def test_what_a_dead_job_has_come_to(tmp_path):
    path = tmp_path / "run.h5"
    with h5py.File(path, "w") as file:
        for name, n in (("a", 12), ("b", 11), ("c", 12)):
            file.create_dataset(name, (n, 4), "f4", maxshape=(None, 4), chunks=(1, 4))
    assert "number" not in tailrace("recover", path).stdout
    (tmp_path / "run.h5.lock").write_text("")
    told = ('Entries of the datasets that grow (3): 11 in "/b", 12 in "/a" and 1 more; the last '
            "entry that is in all of them is number 10, counted from 0.")
    assert told in numbers("info", path)["remarks"]
    assert told in numbers("recover", path)["findings"]
    assert told in numbers("recover", path, "--apply")["findings"]
    assert told not in numbers("info", path)["remarks"]


def test_a_dead_job_that_made_a_group_a_step(tmp_path):
    path = tmp_path / "run.h5"
    with h5py.File(path, "w", track_order=True) as file:
        for step in (8, 9, 10):
            file[f"step_{step}/u"] = np.arange(3)
    (tmp_path / "run.h5.lock").write_text("")
    told = 'The root group\'s last member is "/step_10".'
    assert told in numbers("info", path)["remarks"]
    assert told in numbers("recover", path)["findings"]


def test_recover_names_what_it_has_not_listed(tmp_path):
    """HDF5 would need minutes to list an index with this many entries."""
    path = tmp_path / "sparse.h5"
    with h5py.File(path, "w", libver=("v110", "v110")) as file:
        file.create_dataset("x", (1 << 30,), "f4", chunks=(8,), maxshape=(None,))[5] = 1
        file["y"] = np.arange(8, dtype="f4")
    findings = numbers("recover", path)["findings"]
    assert findings[0].startswith('The chunks of dataset "/x" were not checked: ')
    assert findings[1] == "The file opens; 1 of its datasets and 1 chunk are listed."


@pytest.mark.parametrize("fills", [(-9999.0, np.nan), (np.nan, -9999.0), (-9999.0, 1e20)])
def test_values_masked_by_different_fills_are_equal(fills, tmp_path):
    field = np.linspace(0, 9, 2000).reshape(40, 50).astype("f4")
    for path, fill, shift in zip("ab", fills, (0, 1e-4)):
        with h5py.File(tmp_path / f"{path}.h5", "w") as file:
            values = field + np.float32(shift)
            values[:5] = fill
            file.create_dataset("u", data=values).attrs["_FillValue"] = np.array([fill], "f4")
    words = ("verify", tmp_path / "a.h5", tmp_path / "b.h5", "--bound")
    done = tailrace(*words, "rel=1e-3", code=1)
    assert 'attribute "_FillValue"' in done.stdout
    assert "special" not in done.stdout and "error nan" not in done.stdout
    tailrace(*words, "rel=1e-3", "--values-only")
    found, = numbers(*words, "rel=1e-3", "--values-only", "--report",
                     tmp_path / "r.html")["fields"]
    assert found["kept"] and found["n_beyond_bound"] == found["n_special_changed"] == 0
    assert found["max_error"] == pytest.approx(1e-4, rel=0.02)
    assert found["psnr_db"] == pytest.approx(20 * np.log10(np.ptp(field[5:]) / 1e-4), abs=1)
    assert found["fidelity"]["n_values"] == 35 * 50
    assert found["fidelity"]["mean_bias"] == pytest.approx(1e-4, rel=0.02)


def test_a_fill_value_that_one_file_declares_masks_both(tmp_path):
    field = np.linspace(0, 9, 200).astype("f4")
    field[:3] = -999
    for path, fill in (("a", None), ("b", -999.0)):
        with h5py.File(tmp_path / f"{path}.h5", "w") as file:
            u = file.create_dataset("u", data=field, fillvalue=np.float32(9.96921e36))
            if fill is not None:
                u.attrs["_FillValue"] = np.array([fill], "f4")
    found, = numbers("verify", tmp_path / "a.h5", tmp_path / "b.h5", "--bound", "rel=1e-3",
                     "--values-only")["fields"]
    assert found["kept"] and found["n_fill"] == 3


@pytest.mark.parametrize("masked_in", "ab")
def test_a_value_masked_in_one_file_only_fails_without_an_error_of_nan(masked_in, tmp_path):
    field = np.linspace(0, 9, 200).astype("f4")
    for path, fill in zip("ab", (-9999.0, np.nan)):
        with h5py.File(tmp_path / f"{path}.h5", "w") as file:
            values = field.copy()
            values[:3] = fill
            if path == masked_in:
                values[7] = fill
            file.create_dataset("u", data=values).attrs["_FillValue"] = np.array([fill], "f4")
    words = ("verify", tmp_path / "a.h5", tmp_path / "b.h5", "--bound", "abs=1e-3", "--values-only")
    done = tailrace(*words, code=1)
    assert "[7]  original" in done.stdout and "error nan" not in done.stdout
    assert "[0]" not in done.stdout
    found, = numbers(*words, code=1)["fields"]
    assert found["n_beyond_bound"] + found["n_special_changed"] == 1


def test_a_small_value_that_becomes_the_fill_value_is_lost(tmp_path):
    """Readers see a hole, although the error is within the bound."""
    field = np.linspace(1, 9, 200).astype("f4")
    for path, fill, small in (("a", -9999.0, 4e-4), ("b", 0.0, 0.0)):
        with h5py.File(tmp_path / f"{path}.h5", "w") as file:
            values = field.copy()
            values[:3], values[7] = fill, small
            file.create_dataset("u", data=values).attrs["_FillValue"] = np.array([fill], "f4")
    found, = numbers("verify", tmp_path / "a.h5", tmp_path / "b.h5", "--bound", "abs=1e-3",
                     "--values-only", code=1)["fields"]
    assert found["n_beyond_bound"] + found["n_special_changed"] == 1
