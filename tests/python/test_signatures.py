"""Signatures of the public functions: explicit, typed, and equal to the engine's table of options.

docs/options.md is generated from that table, docs/read.md lists the options for reading."""

import inspect
import pathlib
import re

import numpy as np
import pytest
import xarray as xr

import python_package

tailrace = python_package.load()
ROOT = pathlib.Path(__file__).resolve().parents[2]
OPTIONS = (ROOT / "docs" / "options.md").read_text()
PUBLIC = [getattr(tailrace, name) for name in tailrace.__all__]
#: Names in Python of options whose names are not Python's, or mean something else there.
RENAMED = {"chunk": "chunks", "for": "for_", "fill": "fill_value"}


def names_in(text, column):
    return {RENAMED.get(name, name).replace("-", "_") for line in text.splitlines()
            if line.startswith("| `") for name in re.findall(r"`([a-z_-]+)=",
                                                            line.split("|")[column])}


def served():
    """Return the options that the Python interface serves."""
    rows = [line.split("|")[1:-1] for line in
            OPTIONS.partition("## Which interface serves which option")[2].splitlines()
            if line.startswith("| `")]
    return {RENAMED.get(name, name).replace("-", "_") for row in rows if row[2].strip() == "yes"
            for name in re.findall(r"^`([a-z-]+)=`$", row[0].strip())}


OF_FILE = names_in(OPTIONS.partition("## Of a file")[2].partition("## Of a field")[0], 1)
OF_FIELD = names_in(OPTIONS.partition("## Of a field")[2].partition("## Of a codec")[0], 1)
OF_CODECS = names_in(OPTIONS.partition("## Of a codec")[2].partition("## Which")[0], 2)
#: book_loss belongs to a book of a field's steps, which this interface does not write.
CODECS = OF_CODECS - {"book_loss"}
BOUNDS = {"abs", "rel", "pw_rel", "psnr"}
READING = {name.replace("-", "_") for name in re.findall(
    r"^\| `([a-z-]+)=", (ROOT / "docs" / "read.md").read_text(), re.MULTILINE)}


def parameters(function):
    return inspect.signature(function).parameters


def functions():
    for one in PUBLIC:
        if inspect.isfunction(one):
            yield one
        elif inspect.isclass(one):
            yield from (method for name, method in vars(one).items()
                        if inspect.isfunction(method) and (name[0] != "_" or name == "__init__"))


@pytest.mark.parametrize("function", functions(), ids=lambda function: function.__qualname__)
def test_no_public_function_hides_its_keywords(function):
    for name, one in parameters(function).items():
        assert one.kind is not one.VAR_KEYWORD, name
        assert one.annotation is not one.empty or name == "self", name


def test_the_table_is_read():
    assert {"codec", "bound", "guard"} <= OF_FIELD and {"fsync", "threads"} <= OF_FILE
    assert len(CODECS) > 15 and {"gap", "follow_external"} <= READING and "for_" in served()


def test_open_has_all_options():
    ours = set(parameters(tailrace.open)) - {"path", "mode", "comm", "options"}
    assert ours == ((OF_FILE | OF_FIELD) & served()) | CODECS | BOUNDS | READING


def test_create_variable_has_all_options_of_a_field():
    from tailrace._keywords import NETCDF
    ours = set(parameters(tailrace.Group.create_variable)) - {
        "self", "name", "dims", "dtype", "data", "attrs", "options", "again", "fill_value"}
    assert ours == (OF_FIELD & served()) | CODECS | BOUNDS | set(NETCDF)


def test_functions_of_codecs_have_their_settings():
    trz = next(line for line in OPTIONS.splitlines() if line.startswith("| `trz`"))
    trz = names_in(trz, 2) - {"book_loss"}
    import tailrace.numcodecs
    import tailrace.zarr
    for function in (tailrace.cd_values, tailrace.Trz.__init__, tailrace.encode,
                     tailrace.numcodecs.Trz.__init__, tailrace.zarr.Trz.__init__):
        assert trz <= set(parameters(function)), function
    assert trz - {"book"} <= set(parameters(tailrace.train_book))
    assert CODECS | {"guard"} <= set(parameters(tailrace.suggest_bound))


def codec_with(setting):
    """Return the first codec with this setting."""
    return next((re.match(r"\| `(\w+)`", line)[1] for line in
                 OPTIONS.partition("## Of a codec")[2].partition("## Which")[0].splitlines()
                 if f"`{setting}=`" in line), None)


def test_every_keyword_reaches_the_engine(tmp_path):
    """Keywords that a signature names, but the function ignores, would cause no error."""
    of_fields = (OF_FIELD & served() | CODECS) - {"chunks", "plugin_path"}
    for of_file, names in ((True, of_fields | OF_FILE & served()), (False, of_fields)):
        for name in sorted(names - {"plugin_path"}):
            given = {"codec": codec_with(name), name: "%wrong%"}
            with pytest.raises((ValueError, TypeError, OSError, NotImplementedError)):
                with tailrace.open(tmp_path / "a.nc", "w", **(given if of_file else {})) as file:
                    file.create_variable("u", ("x",), data=np.zeros(4000),
                                         **({} if of_file else given))
                pytest.fail(f"{name} is ignored")
    with tailrace.open(tmp_path / "a.nc", "w") as file:
        file.create_variable("u", ("x",), data=np.zeros(4))
    for name in sorted(READING - {"plugin_path"}):
        with pytest.raises(ValueError):
            tailrace.open(tmp_path / "a.nc", **{name: "%wrong%"})


@pytest.mark.parametrize("call, words", [
    (lambda: tailrace.open("a.nc", memroy="1MB"), 'open.. has .*"memroy"; did you mean "mem'),
    (lambda: tailrace.encode(np.zeros(3), prest="max"), 'encode.*"prest"; did you mean "preset"'),
    (lambda: tailrace.cd_values(nothing=3), 'no keyword "nothing"; known keywords: abs, '),
    (lambda: tailrace.suggest_bound(np.zeros(3), chunk=3), 'did you mean "chunks"'),
    (lambda: tailrace.write_dataset(None, "a.nc", encodings={}), 'did you mean "encoding"')])
def test_an_unknown_keyword_is_named(call, words):
    for kind in (TypeError, ValueError):
        with pytest.raises(kind, match=words):
            call()


def test_the_engines_names_are_accepted(tmp_path):
    with tailrace.open(tmp_path / "a.nc", "w", **{"for": "size", "allow-wide-bound": True}) as file:
        file.create_variable("u", ("x",), data=np.zeros(4), **{"earlier-loss": "abs=0.1"})
        assert file._options == "for=size,allow-wide-bound=on"


def test_warnings_name_the_callers_line(tmp_path):
    field = np.concatenate([np.full(9900, 1.0), np.linspace(1e5, 1e6, 5000)])
    for call in (lambda: tailrace.encode(field, rel=1e-3),
                 lambda: tailrace.Trz(rel=1e-3, data=field),
                 lambda: tailrace.write_dataset(xr.Dataset({"u": ("x", field)}), tmp_path / "a.nc",
                                                rel=1e-3)):
        with pytest.warns(RuntimeWarning, match="smaller") as caught:
            call()
        assert {one.filename for one in caught} == {__file__}
