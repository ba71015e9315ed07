"""Programs on the PnetCDF API: with our library preloaded, under the real library's name, relinked.

They print the same as with the real library, and stock readers read their files. The programs are
tests/pnetcdf/*.c, built twice (tests/CMakeLists.txt), and PnetCDF's own utilities.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess

import h5py
import netCDF4
import numpy as np
import pytest
import python_package
from cli_tools import (ENVIRONMENT, launcher, launcher_on_this_node, let_clients_forget, numbers,
                       program, tailrace)

tailrace_package = python_package.load()

PROGRAMS = ["access_errors", "access_forms", "agreement", "definitions", "filetypes", "records"]


def built(*parts):
    path = pathlib.Path(program()).parents[1].joinpath(*parts)
    if not path.exists():
        pytest.skip(f"{path} is not built")
    return path


def run(words, ranks=1, code=0, mode="relinked", on_one_node=False, **more):
    """Run a program with our library preloaded, found by name, linked, or without it ("real")."""
    environment = {**ENVIRONMENT, **more}
    # On FUSE file systems, the real library's MPI-IO hangs or fails between nodes.
    start = launcher_on_this_node() if mode == "real" or on_one_node else launcher()
    words = [start, "-n", str(ranks), *map(str, words)]
    library = str(built("lib", "libtailrace_pnetcdf.so"))
    if mode == "preloaded":
        words[3:3] = ["env", f"LD_PRELOAD={library}"]
    elif mode == "by name":
        words[3:3] = ["env", f"LD_LIBRARY_PATH={built('lib', 'pnetcdf')}"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=600, env=environment)
    if code is not None:
        assert done.returncode == code, f"exit {done.returncode}\n{done.stdout}{done.stderr}"
    return done


def test_every_function_of_the_header_is_there():
    """Each function is served or refused by our library, so that none reaches the real one."""
    library = built("lib", "libtailrace_pnetcdf.so")
    cache = (program_folder() / "CMakeCache.txt").read_text()
    folder = re.search(r"TAILRACE_PNETCDF_INCLUDE_DIR:PATH=(.*)", cache)[1]
    header = (pathlib.Path(folder) / "pnetcdf.h").read_text()
    declared = set(re.findall(r"\b(ncmpi_\w+)\s*\(", header))
    listed = subprocess.run(["nm", "-D", "--defined-only", library], capture_output=True, text=True,
                            check=True).stdout
    defined = {line.split()[-1] for line in listed.splitlines()}
    assert len(declared) > 800
    assert declared - defined == set()
    own = {"ncmpi_comp_reg", "tailrace_pnetcdf_error", "tailrace_pnetcdf_loaded"}
    assert defined - declared == own  # symbols of the engine are hidden


def program_folder():
    return pathlib.Path(program()).parents[1]


@pytest.mark.parametrize("ranks", [1, 2, 3, 4])
@pytest.mark.parametrize("name", PROGRAMS)
def test_answers_as_the_real_library(name, ranks, tmp_path):
    relinked = run([built("bin", "pnetcdf", f"{name}_relinked"), tmp_path / "ours.nc"], ranks)
    real_program = built("bin", "pnetcdf", name)
    real = run([real_program, tmp_path / "real.nc"], ranks, mode="real")
    assert relinked.stdout == real.stdout
    assert (tmp_path / "ours.nc").read_bytes()[:4] == b"\x89HDF"
    assert (tmp_path / "real.nc").read_bytes()[:3] == b"CDF"


def test_errors_have_their_names_without_the_real_library(tmp_path):
    """The texts common to all netCDF libraries are included; test_answers_as_the_real_library
    compares the rest."""
    real = run([built("bin", "pnetcdf", "access_errors"), tmp_path / "real.nc"], mode="real")
    alone = run([built("bin", "pnetcdf", "access_errors_relinked"), tmp_path / "ours.nc"],
                TAILRACE_PNETCDF_LIBRARY="/does/not/exist.so")
    told, ours = ([line.split(" ", 2) for line in done.stdout.splitlines()
                   if re.match(r"-\d+ ", line)] for done in (real, alone))
    assert len(told) > 300
    assert [line[:2] for line in ours] == [line[:2] for line in told]
    common = [line for line in told if line[2].startswith("NetCDF: ") and int(line[0]) > -64]
    assert len(common) > 25
    assert [line for line in common if line not in ours] == []


@pytest.mark.parametrize("mode", ["preloaded", "by name"])
def test_unmodified_programs(mode, tmp_path):
    real = built("bin", "pnetcdf", "records")
    plain = run([real, tmp_path / "real.nc"], 2, mode="real")
    ours = run([real, tmp_path / "ours.nc"], 2, mode=mode)
    assert ours.stdout == plain.stdout
    assert (tmp_path / "ours.nc").read_bytes()[:4] == b"\x89HDF"
    assert_same_values(tmp_path / "ours.nc", tmp_path / "real.nc")


def test_only_the_prefix_of_a_file_system_is_cut_off(tmp_path):
    relinked = built("bin", "pnetcdf", "records_relinked")
    noon, evening = (tmp_path / f"wrfout_d01_2005-08-28_{hour}:00:00" for hour in (12, 18))
    for path in (noon, f"ufs:{evening}"):
        run([relinked, path], 2)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [noon.name, evening.name]


def assert_same_values(ours, real):
    with netCDF4.Dataset(ours) as a, netCDF4.Dataset(real) as b:
        assert list(a.variables) == list(b.variables)
        assert {n: (len(d), d.isunlimited()) for n, d in a.dimensions.items()} == {
            n: (len(d), d.isunlimited()) for n, d in b.dimensions.items()}
        for name, variable in b.variables.items():
            assert a[name].dimensions == variable.dimensions
            own = [key for key in a[name].ncattrs() if not key.startswith("tailrace_")]
            assert own == variable.ncattrs()
            a[name].set_auto_maskandscale(False)
            variable.set_auto_maskandscale(False)
            # The real library leaves random bytes in unwritten elements.
            written = slice(0, {"a": 5, "time": 5, "late": 7}.get(name))
            np.testing.assert_array_equal(a[name][written], variable[written], err_msg=name)


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("how", ["finalize", "some"])
def test_files_that_are_left_open_are_closed_by_mpi_finalize(how, ranks, tmp_path):
    done = run([built("bin", "pnetcdf", "left_open_relinked"), f"{tmp_path}/", how], ranks)
    own = [f"own{rank}" for rank in range(ranks)]
    lines = [line for line in done.stderr.splitlines() if line.startswith("tailrace:")]
    closed = ["second", "defining", *own] + (["first"] if how == "finalize" else [])
    for name in closed:
        assert sum(f"/{name}.nc: closed by MPI_Finalize" in line for line in lines) == 1, lines
    assert len(lines) == len(closed)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == sorted(
        f"{name}.nc" for name in ["first", "second", "defining", *own])
    for name in ["first", "second", *own]:
        with netCDF4.Dataset(tmp_path / f"{name}.nc") as file:
            n = 10 * (1 if name.startswith("own") else ranks)
            assert file["u"][:].tolist() == list(range(n))
    with netCDF4.Dataset(tmp_path / "defining.nc") as file:
        assert file["u"].shape == (10 * ranks,)


@pytest.mark.parametrize("ranks", [1, 2])
def test_files_that_mpi_finalize_cannot_close_are_not_called_closed(ranks, tmp_path):
    """Files that `ulimit -f` keeps from being closed are reported, and SIGXFSZ kills no rank."""
    done = run([built("bin", "pnetcdf", "left_open_relinked"), f"{tmp_path}/", "limited"], ranks)
    assert "closed by MPI_Finalize" not in done.stderr
    for name in ["first", "second", "defining", *(f"own{rank}" for rank in range(ranks))]:
        said = [line for line in done.stderr.splitlines() if f"/{name}.nc" in line]
        assert any("File too large" in line for line in said), done.stderr
        refusals = ["MPI_Finalize could not close the file" in line for line in said]
        assert sum(refusals) == 1, done.stderr


@pytest.mark.parametrize("ranks", [1, 2, 3])
@pytest.mark.parametrize("mode", ["relinked", "preloaded"])
def test_a_limit_on_file_sizes_is_an_error_of_the_sync(mode, ranks, tmp_path):
    """`ulimit -f` within the program: one error on every rank, and synced data stay."""
    name = "limited_size" + ("_relinked" if mode == "relinked" else "")
    file = tmp_path / "run.nc"
    done = run([built("bin", "pnetcdf", name), file], ranks, mode=mode,
               TAILRACE_OPTIONS="codec=none")
    said = [line for line in done.stderr.splitlines() if line.startswith("sync: ")]
    assert len(said) == ranks and len(set(said)) == 1, done.stderr
    told = [line for line in done.stderr.splitlines() if "File too large" in line]
    assert told and all("run.nc" in line for line in told), done.stderr
    with netCDF4.Dataset(file) as dataset:
        assert dataset["u"].shape == (1, 20000 * ranks)
        assert dataset["u"][0].tolist() == list(range(20000 * ranks))
    assert [path.name for path in tmp_path.iterdir()] == ["run.nc"]


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("codec", ["trz", "portable"])
def test_an_undeclared_fill_value_costs_no_values(codec, ranks, tmp_path):
    """The program sees no error. The variable is exact, others within their bound; a remark names
    the variable and what to do."""
    file = tmp_path / "run.nc"
    done = run([built("bin", "pnetcdf", "undeclared_fill_relinked"), file], ranks,
               TAILRACE_OPTIONS=f"codec={codec},bound=rel=1e-3")
    assert done.stdout.count("NC_NOERR") == 2, done.stdout + done.stderr
    told = [line for line in done.stderr.splitlines() if "stored exactly" in line]
    assert len(told) == 1, done.stderr
    for words in ('"/marked"', "-1e+10", "_FillValue", "allow-wide-bound=on"):
        assert words in told[0]
    i = np.arange(40 * 500)
    plain = np.concatenate([(20 + np.float32(0.001) * (i % 977).astype("f4")) + np.float32(rank)
                            for rank in range(ranks)]).reshape(-1, 500)
    marked = np.where(np.tile(i % 50 < 3, ranks).reshape(-1, 500), np.float32(-1e10), plain)
    with tailrace_package.open(file) as data:
        np.testing.assert_array_equal(data["marked"][...], marked)
        for name in ("before", "behind"):
            error = np.abs(data[name][...].astype("f8") - plain)
            assert 0 < error.max() <= 1e-3 * np.ptp(plain)


def test_a_dead_jobs_lock_is_told_of(tmp_path):
    lock = "host elsewhere\nprocess 7\nsince then\nstart 1\n"
    words = [built("bin", "campaign_records"), tmp_path / "run.nc"]
    for n_steps, first in (2, 0), (3, 2):
        (tmp_path / "run.nc.lock").write_text(lock)
        done = run([*words, n_steps, first], 2)
        assert done.stderr.count("another job (process 7 on elsewhere, since then) died") == 1
        let_clients_forget()


def test_a_program_that_ends_without_mpi_finalize_is_told_what_is_lost(tmp_path):
    done = run([built("bin", "pnetcdf", "left_open_relinked"), f"{tmp_path}/", "exit"], code=None)
    for name in ["first", "second", "own0", "defining"]:
        assert f"{name}.nc: the program ended without ncmpi_close and MPI_Finalize" in done.stderr
    with netCDF4.Dataset(tmp_path / "first.nc") as file:
        assert file["u"][:].tolist() == list(range(10))


@pytest.mark.parametrize("ranks", [1, 2])
def test_program_on_netcdf_c(ranks, tmp_path):
    """A program uses PnetCDF through netCDF-C, if a netCDF-C with PnetCDF is installed."""
    through = built("bin", "pnetcdf", "through_netcdf")
    plain = run([through, tmp_path / "real.nc"], ranks, mode="real")
    # netCDF-C detects the kind of a file through its own MPI-IO.
    ours = run([through, tmp_path / "ours.nc"], ranks, mode="preloaded", on_one_node=True)
    assert "3 records" in ours.stdout
    assert ours.stdout == plain.stdout
    assert (tmp_path / "real.nc").read_bytes()[:3] == b"CDF"
    assert (tmp_path / "ours.nc").read_bytes()[:4] == b"\x89HDF"
    assert_same_values(tmp_path / "ours.nc", tmp_path / "real.nc")


def test_stock_readers(tmp_path):
    file = tmp_path / "forms.nc"
    run([built("bin", "pnetcdf", "access_forms_relinked"), file], 2)
    dump = subprocess.run(["ncdump", "-h", file], capture_output=True, text=True, check=True).stdout
    assert "float part_float(row, column)" in dump
    assert "uint64 whole_ulonglong(row, column)" in dump
    with h5py.File(file) as h5, netCDF4.Dataset(file) as nc:
        assert nc.data_model == "NETCDF4"
        for name in h5:
            if h5[name].ndim == 2:
                small = h5[name].size * h5[name].dtype.itemsize < 2616  # Size of a chunk's index.
                assert h5[name].compression == (None if small else "gzip"), name
                assert h5[name].shape == (12, 10)


def test_what_was_never_put_is_no_readers_memory(tmp_path):
    """Values that were never put are fill values, also without fill mode, the default."""
    file = tmp_path / "never.nc"
    run([built("bin", "pnetcdf", "definitions_relinked"), file], 2)
    n_never = 0
    with h5py.File(file) as h5:
        for dataset in filter(lambda one: one.size and one.shape, h5.values()):
            seen = [np.full(dataset.shape, memory).astype(dataset.dtype) for memory in (7, 1)]
            for values in seen:
                dataset.read_direct(values)
            assert seen[0].tobytes() == seen[1].tobytes(), dataset.name
            n_never += dataset.id.get_storage_size() == 0
    assert n_never > 0


@pytest.mark.full
def test_settings(tmp_path):
    """Options by glob, from a file: a bound for some variables, and one codec for the rest."""
    settings = tmp_path / "settings"
    settings.write_text("# of the test\ncodec=deflate,level=6\npart_*: codec=trz,bound=abs=0.5\n")
    exact, lossy = tmp_path / "exact.nc", tmp_path / "lossy.nc"
    forms = built("bin", "pnetcdf", "access_forms_relinked")
    run([forms, exact], 2)
    run([forms, lossy], 2, TAILRACE_OPTIONS=f"@{settings}")
    with h5py.File(lossy) as h5:
        filters = {name: [h5[name].id.get_create_plist().get_filter(i)[0] for i in
                          range(h5[name].id.get_create_plist().get_nfilters())] for name in
                   ("part_double", "whole_double")}
        assert filters["part_double"] == [481]
        assert filters["whole_double"] == [2, 1]
    # Options that suit no variable fail in ncmpi_create, before a file exists.
    for wrong, said in [("codec=nonsense", "nonsense"), ("part_*: codec=trz,preset=best", "best"),
                        ("none_*: codec=nonsense", "nonsense"), ("*: codec=deflate,level=12", "12"),
                        ("part_*: codec=trz,bound=abs=-1", "abs=-1"),
                        ("codec=trz,bound=near=1", "near")]:
        done = run([forms, tmp_path / "none.nc"], 2, code=None, TAILRACE_OPTIONS=wrong)
        assert done.returncode != 0 and said in done.stderr, wrong
        assert "access_forms.c" in done.stderr and "ncmpi_create" in done.stderr, wrong
        assert not list(tmp_path.glob("none.nc*")), wrong
    run([forms, tmp_path / "zfp.nc"], 1, TAILRACE_OPTIONS="none_*: codec=zfp,rate=8")
    # The combination of entries is valid, even if a single entry is not.
    done = run([forms, tmp_path / "idle.nc"], 2, TAILRACE_OPTIONS="codec=sz3; *: codec=trz; "
               "part_*: preset=ratio; *: bound=abs=0.5; idle_*: level=3")
    assert done.stderr.count('these options match nothing in the file: "idle_*"\n') == 1
    for options in ("@/does/not/exist", "profile=/does/not/exist"):
        done = run([forms, tmp_path / "none.nc"], 2, code=None, TAILRACE_OPTIONS=options)
        assert done.returncode != 0 and "NC_EINVAL" in done.stderr
        assert 'cannot read "/does/not/exist"' in done.stderr


@pytest.mark.parametrize("attributes", [
    None, *(pytest.param(name, marks=pytest.mark.full) for name in ("off", "one", "all"))])
def test_attributes_that_say_how_values_are_stored(attributes, tmp_path):
    """The file has an attribute for all exact variables, or each has its own; programs see none."""
    exact, lossy = tmp_path / "exact.nc", tmp_path / "lossy.nc"
    forms = built("bin", "pnetcdf", "access_forms_relinked")
    options = "part_*: codec=trz,bound=abs=0.5"
    run([forms, exact], 2)
    run([forms, lossy], 2, TAILRACE_OPTIONS=(
        f"attributes={attributes}\n{options}" if attributes else options))

    def count(path):
        with h5py.File(path) as file:
            note = file.attrs.get("tailrace_file")
            owners = [name for name in file if "tailrace_codec" in file[name].attrs]
            chunked = [name for name in file if file[name].chunks]
            return note, owners, chunked

    note, owners, chunked = count(lossy)
    bounded = [name for name in chunked if name in ("part_double", "part_float")]
    assert len(bounded) == 2 < len(chunked)
    expected = {"off": [], "all": chunked}.get(attributes, bounded)
    assert sorted(owners) == sorted(expected)
    assert (note is not None) == (attributes in ("one", None))
    fields = {field["path"].strip("/"): field for field in numbers("info", lossy)["fields"]}
    for name in set(chunked) & set(fields):
        told = attributes != "off"
        assert fields[name]["by_tailrace"] == told, name
        assert fields[name]["bound_mode"] == ("abs" if told and name in bounded else "none")
        assert fields[name]["tailrace_version"] == (json.loads(note)["version"] if note else
                                                    fields[name]["tailrace_version"])
    # verify compares exactly, or within the recorded bound.
    done = tailrace("verify", exact, lossy, code=1 if attributes == "off" else 0)
    assert ("records no error bound" in done.stdout) == (attributes == "off")
    tailrace("verify", exact, lossy, "--field", "/part_*:bound=abs=0.5")
    inputs = [tmp_path / "a.nc", tmp_path / "b.nc"]
    for path in inputs:
        shutil.copy(lossy, path)
    refused = tailrace("concat", "-o", tmp_path / "all.h5", *inputs, ranks=2, code=2)
    assert "no dataset has an unlimited dimension" in refused.stderr
    done = run([built("bin", "pnetcdf", "open_any_relinked"), lossy, "extend"], 2)
    assert done.stdout.startswith("1 attributes\n"), "the program's own alone"
    again, more, _ = count(lossy)
    assert again == note or note is None, "the file's note outlasts definitions"
    assert more == owners, "of exact variables there is none"
    with netCDF4.Dataset(lossy) as file:
        assert file["added"][:].tolist() == [1, 2, 3, 4, 5] and file.words == "added"


def test_switched_off(tmp_path):
    run([built("bin", "pnetcdf", "records"), tmp_path / "off.nc"], 2, mode="preloaded",
        on_one_node=True, TAILRACE_PNETCDF="off")
    assert (tmp_path / "off.nc").read_bytes()[:3] == b"CDF"


@pytest.mark.parametrize("ranks", [1, 3])
def test_functions_of_the_program(ranks, tmp_path):
    file = tmp_path / "user.nc"
    done = run([built("bin", "pnetcdf", "user_functions_relinked"), file], ranks)
    assert "worst(-(memcmp(values, back, sizeof(values)) != 0)) = 0" in done.stdout
    assert "worst(-(without == NC_NOERR)) = 0" in done.stdout
    assert "488" in done.stderr  # the number of the missing filter
    with h5py.File(file) as h5:
        assert h5["runs"].id.get_create_plist().get_filter(0)[0] == 488
        assert h5["runs"].id.get_storage_size() < h5["runs"].size * 4 / 20


@pytest.mark.parametrize("mode", ["preloaded", "by name"])
def test_classic_files_go_through(mode, tmp_path):
    classic = tmp_path / "classic.nc"
    with netCDF4.Dataset(classic, "w", format="NETCDF3_64BIT_OFFSET") as file:
        file.createDimension("x", 3)
        file.createVariable("v", "i4", ("x",))[:] = [4, 5, 6]
    reader = built("bin", "pnetcdf", "open_any")
    done = run([reader, classic], 2, mode=mode)
    assert done.stdout == run([reader, classic], 2, mode="real").stdout
    assert "sum of v: 15" in done.stdout
    missing = run([reader, tmp_path / "missing.nc"], 2, mode=mode)
    assert "NC_ENOENT" in missing.stdout
    other = tmp_path / "other"
    other.write_text("neither of both, but long enough to look at")
    assert "NC_ENOTNC" in run([reader, other], 2, mode=mode).stdout


def test_classic_file_without_the_real_library(tmp_path):
    classic = tmp_path / "classic.nc"
    netCDF4.Dataset(classic, "w", format="NETCDF3_CLASSIC").close()
    done = run([built("bin", "pnetcdf", "open_any"), classic], 2, mode="by name",
               TAILRACE_PNETCDF_LIBRARY="/does/not/exist.so")
    assert "NC_ENOTBUILT" in done.stdout
    assert "needs libpnetcdf" in done.stderr


def test_what_is_not_served_says_so(tmp_path):
    """stderr names the function once, and an error code is returned; the real one is not called."""
    done = run([built("bin", "pnetcdf", "open_any_relinked"), tmp_path / "new.nc", "new"], 1)
    assert done.stdout.count("NC_ENOTSUPPORT") == 2
    assert done.stderr.count("ncmpi_inq_varoffset is not supported") == 1
    assert "NC_EEDGE" in done.stdout
    assert 'vard: the filetype exceeds variable "v"' in done.stderr


def test_file_of_netcdf4_python(tmp_path):
    """Files with groups, strings and filters: programs see the root group, and text as text."""
    path = tmp_path / "python.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("x", 3)
        file.createVariable("v", "f8", ("x",), compression="zlib")[:] = [1, 2, 4]
        file.setncattr_string("words", ["one", "two"])
        file.createGroup("g").createDimension("y", 2)
    done = run([built("bin", "pnetcdf", "open_any_relinked"), path], 2)
    assert "sum of v: 7" in done.stdout
    assert "1 dimensions, 1 variables, 1 attributes" in done.stdout
    assert "words = one\ntwo" in done.stdout
