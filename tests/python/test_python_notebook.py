"""Displays in notebooks: sizes of files, groups and variables, without reading a value."""

import html.parser

import h5py
import numpy as np
import pytest

import python_package
from cli_tools import smooth

tailrace = python_package.load()
FIELD = smooth((12, 16, 24))


class Cells(html.parser.HTMLParser):
    """Parser that collects the rows of tables, and checks that all tags are closed."""

    def __init__(self):
        super().__init__()
        self.rows, self.open, self.text, self.tags = [], [], "", set()

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        self.tags.add(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text += data
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1].append(data)


def shown(thing):
    cells = Cells()
    cells.feed(thing._repr_html_())
    cells.close()
    assert cells.open == [] and cells.tags <= {"div", "b", "table", "thead", "tbody", "tr", "th",
                                               "td", "details", "summary", "ul", "li"}
    return cells


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "a<b>.nc"
    with tailrace.open(path, "w") as file:
        file.attrs["title"] = "<script>alert(1)</script>"
        file.create_dimension("time")
        file.create_variable("u", ("time", "y", "x"), data=FIELD, rel=1e-3, codec="trz",
                             chunks=(4, 16, 24), attrs={"units": "<i>m"})
        file.create_variable("count", ("y",), data=np.arange(16, dtype="u2"))
        file.create_variable("y", ("x",), data=np.arange(24.0))  # Named like another dimension.
        file.create_variable("name", ("y",), data=np.array(["a"] * 16, object))
        file.create_variable("crs", (), data=np.int32(7))
        file.create_variable("g/w", ("y", "x"), data=FIELD[0], abs=0.5, codec="trz")
    return path


def test_a_variable_tells_its_sizes(path):
    with h5py.File(path) as file:
        stored = file["u"].id.get_storage_size()
    with tailrace.open(path) as file:
        u = file["u"]
        assert u.bound == "rel=0.001" and u.stored_bytes == stored
        assert u.ratio == FIELD.nbytes / stored
        assert file["count"].bound == "" and file["count"].ratio == 1  # Small, so contiguous.
        assert file["name"].stored_bytes is None and file["name"].ratio is None
        assert file["y"].stored_bytes > 0
        page = shown(u)
        assert page.rows[1] == ["time: 12, y: 16, x: 24", "float32", "4x16x24", "trz", "rel=0.001",
                                f"{stored / 1000:.1f} kB", f"{FIELD.nbytes / stored:.4g}"]
        assert "<i>m" in page.text and "a<b>.nc" in page.text
    assert "closed" in shown(u).text


def test_a_file_shows_its_variables_and_groups(path):
    with tailrace.open(path) as file:
        page = shown(file)
        rows = {row[0]: row[1:] for row in page.rows[1:7] if row}
        assert rows["u"][3:5] == ["trz", "rel=0.001"] and rows["crs"][0] == "scalar"
        assert rows["name"][1] == "text" and rows["name"][-2:] == ["–", "–"]
        assert "group /g: 1 variables" in page.text and "time: 12 (unlimited)" in page.text
        assert "<script>alert(1)</script>" in page.text
        assert shown(file["g"]).rows[1][0] == "w"
    assert "closed" in shown(file).text


def test_no_value_is_read_and_the_index_once(path, monkeypatch):
    calls = []
    engine = tailrace._file.engine()

    class Counted:
        def __getattr__(self, name):
            calls.append(name)
            return getattr(engine, name)

    monkeypatch.setattr(tailrace._file, "engine", Counted)
    with tailrace.open(path) as file:
        for thing in (file, file["u"], file["g"], file["g/w"]):
            shown(thing)
        assert file.report["n_chunks"] == 0 and calls == ["open", "info"]
        file["u"][...]
        assert file.report["n_chunks"] == 3


def test_files_that_are_written(tmp_path):
    path = tmp_path / "u.nc"
    with tailrace.open(path, "w") as file:
        u = file.create_variable("u", ("z", "y", "x"), data=FIELD, rel=1e-3, codec="trz")
        assert u.stored_bytes is None and shown(u).rows[1][-2:] == ["–", "–"]
        assert shown(file).rows[1][0] == "u"
    with tailrace.open(path, "w") as file:
        # The file at this path is the older one, which will be replaced.
        u = file.create_variable("u", ("z", "y", "x"), data=FIELD)
        assert u.stored_bytes is None and u.ratio is None
    with tailrace.open(path, "a") as file:
        before = file["u"].stored_bytes
        assert before > 0
        w = file.create_variable("w", ("z", "y", "x"), data=FIELD, abs=0.1, codec="trz")
        assert w.stored_bytes is None
        file.flush()
        assert w.stored_bytes > 0 and file["u"].stored_bytes == before


def test_many_variables_are_counted(tmp_path):
    with h5py.File(tmp_path / "many.h5", "w") as file:
        for at in range(205):
            file[f"v{at}"] = np.zeros(2)
    with tailrace.open(tmp_path / "many.h5") as file:
        page = shown(file)
        assert len(page.rows) == 201 and "and 5 more variables" in page.text


def test_files_of_others(tmp_path):
    with h5py.File(tmp_path / "h.h5", "w") as file:
        file["<b>&"] = FIELD
        file["<b>&"].attrs["tailrace_bound_mode"] = "<b>"
        file.create_group("<i>")
        file.create_dataset("z", data=FIELD, compression="gzip")
    with tailrace.open(tmp_path / "h.h5") as file:
        page = shown(file)
        assert "b" not in [tag for tag in page.tags if tag == "i"]
        assert ["<b>&", "z"] == sorted(row[0] for row in page.rows[1:3])
        assert file["z"].codec == "deflate" and file["z"].bound == ""
        assert "group /<i>" in page.text
