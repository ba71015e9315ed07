"""PnetCDF library with damaged files and misspelt settings: it reports them and loses no more."""

import h5py

from test_pnetcdf import built, run


def test_misspelt_settings(tmp_path):
    records = built("bin", "pnetcdf", "records_relinked")
    for text in ["layuot=dense", "codec=zstd;*: layuot=dense"]:
        done = run([records, tmp_path / "none.nc"], 2, code=None, TAILRACE_OPTIONS=text)
        assert done.returncode != 0
        assert '"layuot"; did you mean "layout"?' in done.stderr, done.stderr


def test_a_damaged_attribute_costs_no_variables(tmp_path):
    path = tmp_path / "damaged.nc"
    run([built("bin", "pnetcdf", "records_relinked"), path], 2)
    show = built("bin", "pnetcdf", "open_any_relinked")
    with h5py.File(path, "a") as file:
        file.attrs["remark"] = ["one", "two"]
    whole = run([show, path], 2)
    path.write_bytes(path.read_bytes().replace(b"GCOL", b"G\0OL"))
    damaged = run([show, path], 2)
    assert damaged.stderr.count('attribute "remark" of "/"') == 1
    assert " 4 variables" in damaged.stdout and " 4 variables" in whole.stdout
