"""tailrace verify --concat: outputs made by h5py, correct ones and ones with a single error."""

import h5py
import numpy as np
import pytest

from cli_tools import numbers, tailrace

pytestmark = pytest.mark.sample(3)

ROWS = [50, 0, 7, 131]  # Spills of each input.
EMPTY, FEW = "rec/empty", "rec/few"


def text_of(n, seed):
    return [f"row {i} of {seed}" * (i % 3) for i in range(n)]


def make_input(path, seed, n):
    """Write an input; the seed distinguishes its columns."""
    random = np.random.default_rng(seed)
    with h5py.File(path, "w", track_order=False) as file:
        file.attrs["title"] = "hits"
        options = {"maxshape": (None,), "chunks": (16,), "compression": "gzip"}
        spill = file.create_group("spill")
        for name, values in (("run", np.full(n, 7)), ("evt", np.arange(n) + 1000 * seed)):
            spill.create_dataset(name, data=values.astype("u4"), **options)
        group = file.create_group("rec")
        group.attrs["unit"] = np.array([1.5, 2.5])
        many = np.repeat(np.arange(n), random.integers(0, 4, n))
        group.create_dataset("run", data=np.full(len(many), 7, "u4"), **options)
        group.create_dataset("evt", data=(many + 1000 * seed).astype("u4"), **options)
        energy = random.normal(size=len(many)).astype("f4")
        energy[::5] = np.nan
        column = group.create_dataset("energy", data=energy, fillvalue=-1, **options)
        column.attrs["unit"] = "GeV"
        image = random.integers(0, 9, (n, 4, 5)).astype("u1")
        group.create_dataset("image", data=image, maxshape=(None, 4, 5), chunks=(8, 4, 5),
                             compression="gzip", shuffle=True, fletcher32=True)
        group.create_dataset("text", data=text_of(n, seed), maxshape=(None,),
                             dtype=h5py.string_dtype())
        ragged = group.create_dataset("ragged", (n,), maxshape=(None,),
                                      dtype=h5py.vlen_dtype("i4"))
        for i in range(n):
            ragged[i] = np.arange(i % 4) + seed
        pair = np.zeros(n, dtype=[("a", "i2"), ("b", "f8"), ("name", "S5")])
        pair["a"], pair["b"], pair["name"] = np.arange(n), image[:, 0, 0] / 3, b"ab"
        group.create_dataset("pair", data=pair, maxshape=(None,), chunks=(16,))
        group.create_dataset("color", data=(np.arange(n) % 3).astype("i1"), maxshape=(None,),
                             dtype=h5py.enum_dtype({"red": 0, "green": 1, "blue": 2}, "i1"))
        file.create_dataset(EMPTY, (0, 3), maxshape=(None, 3), dtype="f8", chunks=(4, 3))
        file.create_dataset(FEW, data=np.arange(n % 3), maxshape=(None,))
        file["version"] = 12
        file["nothing"] = h5py.Empty("f4")


def columns_of(paths):
    with h5py.File(paths[0]) as first:
        columns = []
        first.visititems(lambda name, item: columns.append(name)
                         if isinstance(item, h5py.Dataset) and item.shape else None)
    return columns


def concatenate(paths, target, keys=False):
    """Concatenate with h5py, column by column, with other chunks and another codec."""
    with h5py.File(paths[0]) as first, h5py.File(target, "w") as out:
        out.attrs.update(first.attrs)
        for group in ("spill", "rec"):
            out.create_group(group).attrs.update(first[group].attrs)
        for name in ("version", "nothing"):
            first.copy(name, out)
        for name in columns_of(paths):
            parts = []
            for path in paths:
                with h5py.File(path) as file:
                    parts.append(file[name][...])
            whole = np.concatenate(parts)
            like = first[name]
            shape = (min(37, max(len(whole), 1)),) + like.shape[1:]
            column = out.create_dataset(name, shape=whole.shape, dtype=like.dtype, chunks=shape,
                                        maxshape=(None,) + like.shape[1:], compression="gzip",
                                        fillvalue=None if like.dtype.kind == "O" or
                                        like.dtype.fields else like.fillvalue)
            if like.dtype.kind == "O":
                for i, value in enumerate(whole):
                    column[i] = value
            elif len(whole):
                column[...] = whole
            column.attrs.update(like.attrs)
        if keys:
            add_keys(out)


def add_keys(out):
    """Add keys, which number events in the order of /spill."""
    numbers_of = {}
    for event in zip(out["spill/run"][...], out["spill/evt"][...]):
        numbers_of.setdefault(event, len(numbers_of))
    for group in ("spill", "rec"):
        rows = zip(out[group]["run"][...], out[group]["evt"][...])
        out[group].create_dataset("evt.seq", maxshape=(None,), chunks=(64,),
                                  data=np.array([numbers_of[event] for event in rows], "i8"))


@pytest.fixture
def inputs(tmp_path):
    paths = [tmp_path / f"in_{i}.h5" for i in range(len(ROWS))]
    for i, path in enumerate(paths):
        make_input(path, i + 1, ROWS[i])
    return paths


@pytest.fixture
def joined(inputs, tmp_path):
    target = tmp_path / "out.h5"
    concatenate(inputs, target)
    return inputs, target


def differences(target, inputs, *more, ranks=1):
    report = numbers("verify", "--concat", target, *more, *inputs, ranks=ranks, code=1)
    assert not report["ok"] and report["n_differences"] >= len(report["differences"]) > 0
    return report["differences"]


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.usefixtures("whole_sentences")
def test_the_right_output_passes(joined, ranks, tmp_path):
    inputs, target = joined
    report = numbers("verify", "--concat", target, *inputs, ranks=ranks)
    assert report["ok"] and report["differences"] == [] and report["n_files"] == len(inputs)
    assert report["n_ranks"] == ranks
    with h5py.File(target) as out:
        columns = columns_of(inputs)
        assert report["n_rows"] == sum(len(out[name]) for name in columns)
        assert report["n_datasets"] == len(columns) + 2
        assert report["n_empty"] == sum(len(out[name]) == 0 for name in columns)
    names = tmp_path / "list.txt"
    names.write_text("# the inputs\n" + "\n".join(map(str, inputs)) + "\n")
    done = tailrace("verify", "--concat", target, "-i", names, ranks=ranks)
    assert f"{target} is the concatenation of 4 inputs" in done.stdout


@pytest.mark.parametrize("memory", ["4KiB", "64KiB"])
def test_little_memory_makes_many_windows(joined, memory):
    inputs, target = joined
    assert numbers("verify", "--concat", target, "--memory", memory, *inputs, ranks=2)["ok"]
    with h5py.File(target, "r+") as out:
        out["rec/image"][187, 3, 4] += 1
        row = out["rec/image"][187]
    found = differences(target, inputs, "--memory", memory, ranks=2)
    assert len(found) == 1
    assert f"in_3.h5: dataset \"/rec/image\" row {187 - 57} (row 187 of the output)" in found[0]
    assert f"element 19 of it, is {row[3, 4] - 1}, but {row[3, 4]} in" in found[0]


def edit(path):
    return h5py.File(path, "r+")


def change_value(out):
    out["rec/energy"][3] = 17.25
    return ["in_0.h5", "/rec/energy", "row 3 ", "but 17.25 in the output"]


def change_nan(out):
    values = out["rec/energy"][...]
    at = int(np.flatnonzero(np.isnan(values))[0])
    values.view("u4")[at] ^= 1
    out["rec/energy"][...] = values
    return ["/rec/energy", f"row {at} ", "nan (0000c07f)", "nan (0100c07f)"]


def change_text(out):
    out["rec/text"][52] = "other"
    return ["in_2.h5", "/rec/text", "row 2 (row 52", '"row 2 of 3row 2 of 3"', '"other"']


def change_ragged(out):
    out["rec/ragged"][60] = np.array([5, 6, 7, 8, 9], "i4")
    return ["in_3.h5", "/rec/ragged", "row 3 ", "{4, 5, 6}", "{5, 6, 7, 8, ...}"]


def change_member(out):
    row = out["rec/pair"][10]
    row["name"] = b"xy"
    out["rec/pair"][10] = row
    return ["/rec/pair", "row 10 ", '"xy"']


def change_enum(out):
    out["rec/color"][1] = 2
    return ["/rec/color", "row 1 ", "green", "blue"]


def swap_rows(out):
    out["spill/evt"][49:51] = out["spill/evt"][49:51][::-1]
    return ["in_0.h5", "/spill/evt", "row 49 ", "in_2.h5"]


def lose_rows(out):
    out["spill/evt"].resize(180, axis=0)
    return ["/spill/evt", "180 rows", "188", "in_3.h5", "following rows are missing"]


def add_rows(out):
    out["spill/evt"].resize(200, axis=0)
    return ["/spill/evt", "200 rows", "188"]


def lose_dataset(out):
    del out["rec/color"]
    return ["/rec/color", "is missing"]


def add_dataset(out):
    out["rec/more"] = 1
    return ["/rec/more", "is not in any input"]


def add_group(out):
    out.create_group("rec/folder")
    return ['group "/rec/folder"', "is not in any input"]


def change_type(out):
    values = out["spill/run"][...]
    del out["spill/run"]
    out["spill/run"] = values.astype("i8")
    return ["/spill/run", "another type"]


def change_shape(out):
    values = out["rec/image"][...]
    del out["rec/image"]
    out["rec/image"] = values.reshape(len(values), 5, 4)
    return ["/rec/image", "188x5x4", "50x4x5"]


def change_attribute(out):
    out["rec"].attrs["unit"] = np.array([1.5, 2.0])
    return ['group "/rec"', '"unit"', "is 2,", "2.5 in the first input"]


def lose_attribute(out):
    del out["rec/energy"].attrs["unit"]
    return ["/rec/energy", '"unit"', "is missing"]


def add_attribute(out):
    out.attrs["history"] = "joined"
    return ['group "/"', '"history"', "not in the first"]


def change_attribute_type(out):
    out.attrs["title"] = 3
    return ['group "/"', '"title"', "another type"]


def change_fill(out):
    column = out["rec/energy"]
    values, attributes = column[...], dict(column.attrs)
    del out["rec/energy"]
    out.create_dataset("rec/energy", data=values, fillvalue=5).attrs.update(attributes)
    return ["/rec/energy", "fill value 5", "-1 in the first"]


def change_scalar(out):
    out["version"][()] = 13
    return ["/version", "is 13, 12 in the first"]


WRONG = [change_value, change_nan, change_text, change_ragged, change_member, change_enum,
         swap_rows, lose_rows, add_rows, lose_dataset, add_dataset, add_group, change_type,
         change_shape, change_attribute, lose_attribute, add_attribute, change_attribute_type,
         change_fill, change_scalar]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda function: function.__name__)
def test_what_is_wrong_is_named(joined, wrong):
    inputs, target = joined
    with edit(target) as out:
        expected = wrong(out)
    found = {ranks: differences(target, inputs, ranks=ranks) for ranks in (1, 3)}
    assert found[1] == found[3]
    text = "\n".join(found[1])
    for part in expected:
        assert part in text


def test_order_of_the_inputs_counts(joined):
    inputs, target = joined
    found = differences(target, [inputs[2], inputs[1], inputs[0], inputs[3]])
    assert any("in_2.h5" in line and '"/spill/evt" row 0 (row 0 ' in line for line in found)
    text = "\n".join(differences(target, [inputs[0], inputs[3], inputs[2]], ranks=2))
    assert "in_3.h5" in text and "in_2.h5" in text
    text = "\n".join(differences(target, inputs[:3]))
    assert "188 rows, the inputs have 57" in text


def test_inputs_that_do_not_fit_are_named(joined):
    inputs, target = joined
    with edit(inputs[2]) as file:
        del file["rec/color"]
        file["rec/odd"] = [1, 2]
    found = "\n".join(differences(target, inputs, ranks=3))
    assert 'in_2.h5: dataset "/rec/color" is missing' in found
    assert 'in_2.h5: dataset "/rec/odd" is not in the output' in found
    done = tailrace("verify", "--concat", target, inputs[0], "nowhere.h5", code=2)
    assert "nowhere.h5: No such file" in done.stderr


def test_a_damaged_chunk_is_a_difference(inputs, tmp_path):
    target = tmp_path / "out.h5"
    concatenate(inputs, target)
    with edit(target) as out:
        values = out["rec/image"][...]
        del out["rec/image"]
        column = out.create_dataset("rec/image", data=values, chunks=(37, 4, 5), fletcher32=True,
                                    maxshape=(None, 4, 5))
        place = column.id.get_chunk_info(2).byte_offset
    with open(target, "r+b") as file:
        file.seek(place + 5)
        file.write(b"\xff\xff")
    found = "\n".join(differences(target, inputs, ranks=2))
    assert "/rec/image" in found and "cannot be read" in found


def test_many_differences_are_counted(joined):
    inputs, target = joined
    with edit(target) as out:
        for name in columns_of(inputs):
            if len(out[name]) and out[name].dtype.kind in "iuf":
                out[name][...] = 5
        for i in range(30):
            out[f"extra_{i:02}"] = i
    report = numbers("verify", "--concat", target, *inputs, ranks=3, code=1)
    assert report["n_differences"] > 30 and len(report["differences"]) == 20
    done = tailrace("verify", "--concat", target, *inputs, ranks=2, code=1)
    assert f"and {report['n_differences'] - 20} more" in done.stdout
    assert f"{report['n_differences']} differences" in done.stdout


@pytest.mark.parametrize("ranks", [1, 3])
def test_keys(inputs, tmp_path, ranks):
    target = tmp_path / "out.h5"
    concatenate(inputs, target, keys=True)
    for more in ((), ("-k", "run,evt")):
        report = numbers("verify", "--concat", target, *more, *inputs, ranks=ranks)
        assert report["keys"] == ["/rec/evt.seq", "/spill/evt.seq"]
    with edit(target) as out:
        right = out["rec/evt.seq"][...]
        out["rec/evt.seq"][2] += 1
        events = out["rec/evt"][2]
    found = "\n".join(differences(target, inputs, "-k", "run,evt", ranks=ranks))
    assert 'in_0.h5: key "/rec/evt.seq" row 2 ' in found and f"(7, {events})" in found
    with edit(target) as out:
        out["rec/evt.seq"][...] = right
        out["rec/evt.seq"][-1] = 1000
        out["spill/evt.seq"][10] = 8
    found = "\n".join(differences(target, inputs, ranks=ranks))
    assert 'in_0.h5: key "/spill/evt.seq" row 10 ' in found
    assert 'in_3.h5: key "/rec/evt.seq"' in found and "is 1000" in found
    with edit(target) as out:
        out["rec/evt.seq"].resize(len(right) - 1, axis=0)
    assert "rows" in "\n".join(differences(target, inputs, ranks=ranks))


def test_keys_that_were_promised(joined):
    inputs, target = joined
    assert "has no key datasets" in differences(target, inputs, "-k", "run,evt")[0]


def test_usage(joined):
    inputs, target = joined
    for arguments, words in (
            ((target, "--concat", target, "--bound", "abs=1"), "cannot be combined with --bound"),
            ((target, target, "-i", "x"), "need --concat"),
            ((target,), "COMPRESSED is required"),
            (("--concat", target), "no inputs"),
            (("--concat", target, "--memory", "lots", inputs[0]), "--memory"),
            (("--concat", target, "-k", "a,,b", inputs[0]), "--key")):
        assert words in tailrace("verify", *arguments, code=2).stderr
