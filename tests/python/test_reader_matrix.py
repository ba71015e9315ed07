"""Reader matrix (tests/readers/matrix): its verdicts, and the rows of its pages.

scripts/ci-full runs the matrix itself, with all readers. Here the tests' h5py is the only real
reader, and small programs simulate failing ones.
"""

import json
import sys
import textwrap

import h5py
import numpy as np
import pytest

from cli_tools import ROOT

MATRIX = ROOT / "tests" / "readers" / "matrix"
sys.path.insert(0, str(MATRIX))

import matrix_files
import matrix_forms
import matrix_readers
import reader_matrix
from matrix_readers import READERS, Reader

H5PY = Reader("h5py, plug-ins", "HDF5", [sys.executable, MATRIX / "read_h5py.py"])


@pytest.fixture(name="files")
def two_files(tmp_path):
    return [matrix_files.write_netcdf(tmp_path / "a.nc"),
            matrix_files.write_hdf5(tmp_path / "b.h5")]


def stand_in(folder, source):
    """Return a reader that runs this source for each path of its command line."""
    program = folder / "stand_in.py"
    program.write_text("import json, os, sys\nfor path in sys.argv[1:]:\n"
                       + textwrap.indent(textwrap.dedent(source), "    "))
    return Reader("a stand-in", "own", [sys.executable, program])


def cells(reader, paths):
    lines = reader_matrix.lines_of(reader, paths)
    return [reader_matrix.judge(reader, path, reader_matrix.contents(path), lines[str(path)])
            for path in paths]


def test_equal_values_texts_and_attributes_are_a_yes(files):
    assert [cell.verdict for cell in cells(H5PY, files)] == ["yes", "yes"]


def test_what_is_compared(files):
    """The matrix compares every dataset, except netCDF dimensions without a variable."""
    netcdf, hdf5 = map(reader_matrix.contents, files)
    assert set(netcdf) == {"/", "time", "y", "x", "tas", "count", "two", "crs", "name",
                           "more/deep/number", "z_texts/words"}
    assert len(hdf5["field"].attributes) == 13 and hdf5["/"].attributes == {"title": "HDF5"}
    assert netcdf["crs"].facts == {"shape": [], "sum": 7.0, "weighted": 7.0}
    assert hdf5["z_texts/words"].facts == {"shape": [3], "text": "a|bc|def"}


def test_a_crash_costs_one_file(files, tmp_path):
    reader = stand_in(tmp_path, """
        if path.endswith(".nc"):
            os._exit(7)
        print(json.dumps({"file": path, "end": True}), flush=True)
    """)
    lines = reader_matrix.lines_of(reader, files)
    assert "ended with 7" in lines[str(files[0])][0]["error"] and lines[str(files[1])] == []
    assert [cell.verdict for cell in cells(reader, files)] == ["no", "no"]


@pytest.mark.parametrize("verdict, change", [
    ("yes", {}),
    ("WRONG", {"weighted": 1.0}),
    ("WRONG", {"shape": [24, 12]}),
    ("no", {"error": "an address is undefined"}),
    ("no", {"error": "filter 481 is unknown"}),
    ("filter", {"error": "filter 32015 is unknown"}),
    ("filter", {"error": "codec zstandard is not there"}),
    ("values", {"attributes": {}}),
    ("values", {"attributes": {"units": "m"}})])
def test_verdicts(verdict, change):
    values = matrix_files.values(12, 24)
    facts = reader_matrix.dataset_lines.checksum(values)
    dataset = reader_matrix.Dataset(facts, {"units": "K"}, {2, 32015}, False)
    line = {"name": "x", **facts, "attributes": {"units": "K"}, **change}
    cell = reader_matrix.judge(H5PY, matrix_files.ROOT / "x.h5", {"x": dataset}, [line])
    assert cell.verdict == verdict
    assert list(cell.problems.values()) == ([] if verdict in ("yes", "filter") else [["x"]])


def test_sums_see_values_that_change_places():
    values = np.arange(6.0)
    one, other = (reader_matrix.dataset_lines.checksum(each) for each in (values, values[::-1]))
    assert one["sum"] == other["sum"] and one["weighted"] != other["weighted"]


def test_promises(tmp_path):
    """The page's promises are parsed, and weaker cells are reported."""
    readers = [H5PY, Reader("other", "own", [])]
    matrix = reader_matrix.Matrix("reader matrix", ["file by", "codec"],
                                  [["a", "b"], ["c", "d"]], [])
    cell = reader_matrix.Cell
    for row, verdicts in enumerate((("yes", "values"), ("filter", "no"))):
        for reader, verdict in zip(readers, verdicts):
            matrix.cells[row, reader.name] = cell(verdict, {"why": ["x"]})
    text = reader_matrix.tables(matrix, readers[:1])
    assert reader_matrix.cells_of(text) == {(("a", "b"), "h5py, plug-ins"): "yes",
                                            (("c", "d"), "h5py, plug-ins"): "filter"}
    start, end = (mark.format("reader matrix") for mark in reader_matrix.MARKS)
    page = reader_matrix.replace(f"# Page\n{start}\n{end}\nmore\n", "reader matrix", text)
    assert page.endswith(f"{end}\nmore\n")
    assert reader_matrix.broken_promises(page, "reader matrix", text) == []
    matrix.cells[0, "h5py, plug-ins"] = cell("values", {"why": ["x"]})
    worse = reader_matrix.tables(matrix, readers[:1])
    assert reader_matrix.broken_promises(page, "reader matrix", worse) == [
        "a b, h5py, plug-ins: values (1), not yes"]
    assert reader_matrix.broken_promises(page, "reader matrix", "") == [
        "a b, h5py, plug-ins: no such cell, not yes"]


def test_a_set_up_without_a_network_goes_on_and_says_so(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(matrix_readers, "FOLDER", tmp_path)
    done = []
    for name in ("debian", "python", "java", "rust"):
        monkeypatch.setattr(matrix_readers, f"set_up_{name}", lambda name=name: done.append(name))
    monkeypatch.setattr(matrix_readers, "set_up_node",
                        lambda: matrix_readers.call("sh", "-c", "echo no network >&2; exit 1"))
    assert matrix_readers.set_up() == 1 and done == ["debian", "python", "java", "rust"]
    assert "npm's packages: not installed: no network" in capsys.readouterr().out


def test_a_reader_that_is_missing_is_not_tried():
    missing = Reader("missing", "own", ["/no/such/program"])
    with pytest.raises(RuntimeError, match="No such file"):
        missing.version()
    with pytest.raises(RuntimeError, match="needs .NET"):
        next(each for each in READERS if each.name == "PureHDF").version()
    matrix = reader_matrix.Matrix("reader matrix", ["file by"], [], [])
    versions = reader_matrix.measure([matrix], [missing], 1)
    assert versions["missing"].startswith("not tried: ")
    assert "| missing | not tried: " in reader_matrix.readers_table([missing], versions)


def test_the_page_has_every_row_and_reader():
    page = reader_matrix.PAGE.read_text()
    files = reader_matrix.cells_of(reader_matrix.stored(page, "reader matrix"))
    forms = reader_matrix.cells_of(reader_matrix.stored(page, "form matrix"))
    assert {row for row, _ in files} == {(row.door, row.codec, row.form)
                                         for row in matrix_files.ROWS}
    assert {row for row, _ in forms} == {(name,) for name in matrix_forms.FORMS}
    names = {reader.name for reader in READERS}
    assert {name for _, name in files} == {name for _, name in forms} == names
    assert len(names) == len(READERS) > 20
    assert len({row.file for row in matrix_files.ROWS}) == len(matrix_files.ROWS) > 40


def test_the_guide_has_the_summary_of_the_page():
    page, guide = reader_matrix.PAGE.read_text(), reader_matrix.GUIDE.read_text()
    expected = reader_matrix.summary_of(page)
    assert reader_matrix.stored(guide, "reader summary") == "\n" + expected
    assert expected.count("\n") == len(READERS) + 2


def test_a_summary_has_the_worst_verdict_of_each_reader():
    cells = {(("`repack`, HDF5", "deflate", "default"), "one"): "yes",
             (("`repack`, HDF5", "portable", "default"), "one"): "values (3)",
             (("C++, one step", "deflate", reader_matrix.matrix_files.NEWER), "one"): "no (12)",
             (("C++, steps over time", "deflate", "default"), "one"): "yes",
             (("`repack`, HDF5", "trz", "default"), "one"): "filter",
             (("`repack`, HDF5", "xor", "default"), "one"): "WRONG (1)"}
    table = reader_matrix.summary(cells, {"one": "1.2"})
    assert table.splitlines()[-1] == "| one | 1.2 | values | no | – | WRONG |"
    assert reader_matrix.versions_of(table) == {"one": "1.2"}


def test_forms_are_what_they_say(tmp_path):
    """HDF5 reports the expected properties of some forms."""
    expected = {"chunks: version 1 B-tree": 0, "chunks of 1.10: version 2 B-tree": 3}
    for name, superblock in expected.items():
        path = tmp_path / "form.h5"
        matrix_forms.FORMS[name](path)
        assert path.read_bytes()[8] == superblock
        path.unlink()
    path = tmp_path / "changed.h5"
    matrix_forms.FORMS["13 attributes in a header by a phase change"](path)
    with h5py.File(path) as file:
        layout = file["x"].id.get_create_plist()
        assert layout.get_attr_phase_change() == (65535, 0) and len(file["x"].attrs) == 13
    path = tmp_path / "masked.h5"
    matrix_forms.FORMS["filter masks, version 1 B-tree"](path)
    with h5py.File(path) as file:
        masks = [file["x"].id.get_chunk_info(i).filter_mask for i in range(4)]
        assert masks == [1, 3, 0, 0]
        np.testing.assert_array_equal(file["x"], matrix_files.values(12, 24))


def test_lines_are_json_of_one_line(files, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["reader", str(files[0])])

    def walk(path):
        yield "good", lambda: np.arange(3), lambda: {"units": "K", "other": 1}
        yield "bad", lambda: np.zeros(1, "V4"), None
        raise OSError("two\nlines")

    reader_matrix.dataset_lines.read_files("1", walk)
    good, bad, opening, end = map(json.loads, capsys.readouterr().out.splitlines())
    assert good == {"file": str(files[0]), "name": "good", "shape": [3], "sum": 3.0,
                    "weighted": 8.0, "attributes": {"units": "K"}}
    assert "type" in bad["error"] and opening["error"] == "OSError: two lines" and end["end"]
