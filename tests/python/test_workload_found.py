"""Programs with which the workload (tests/workload) has revealed faults, one named test each.

Programs are pasted as the workload prints them. Faults with a test elsewhere are not repeated here.
"""

import json
import sys

import pytest

import python_package
from cli_tools import ROOT

python_package.load()
sys.path.insert(0, str(ROOT / "tests"))

from workload import harness  # noqa: E402
from workload.doors import DOORS  # noqa: E402


def judged(program):
    missing = DOORS[program["door"]].missing()
    if missing:
        pytest.skip(missing)
    return harness.replay(json.dumps(program))


def var(name, dims, dtype, **more):
    return {"op": "var", "name": name, "dims": dims, "dtype": dtype, **more}


def put(name, key, kind="ramp"):
    return {"op": "put", "name": name, "key": key, "values": {"kind": kind, "seed": 1}}


FLUSH, CLOSE = {"op": "flush"}, {"op": "close"}


# The number of the relevant call depends on threads.
@pytest.mark.parametrize("call", range(66, 84, 3))
@pytest.mark.sample(3)
def test_a_kill_while_a_header_of_two_blocks_is_rewritten(call):
    """A kill between writes of the root's header and its continuation leaves a readable file."""
    verdict = judged({"door": "array-faults", "ops": [
        {"op": "fault", "kind": "kill", "call": call},
        {"op": "open", "mode": "w", "options": "fsync=off,layout=predictive"},
        {"op": "dim", "name": "d1", "size": 31}, {"op": "dim", "name": "d2", "size": 3},
        var("v3", ["d1"], "f8", fill=-999, chunks=[17]),
        var("g/v4", ["d2"], "i4", codec="zstd", options="layout=sparse"),
        var("v5", ["d1"], "i8", chunks=[1], options="layout=claimed"), FLUSH,
        put("g/v4", [["p", [1]]]), put("v3", [["s", 0, 14, 2]], "noise"),
        put("g/v4", [["p", [1, 2, 0]]], "wide"), FLUSH, CLOSE,
        {"op": "open", "mode": "a", "options": "fsync=off"},
        {"op": "dim", "name": "d6", "size": 31},
        var("v7", ["d2", "d6"], "f8", codec="bzip2", settings={"level": 1}),
        put("v5", [["s", 0, 31, 1]]), put("v7", [["s", 0, 1, 3], ["i", 8]], "smooth"), CLOSE]})
    assert verdict.kind == "ok", verdict.text


@pytest.mark.parametrize("dtype", ["i8", "u8"])
def test_a_fill_value_that_no_double_holds_is_kept(dtype):
    """netCDF's default fill values of 64-bit integers must not be rounded like other values."""
    verdict = judged({"door": "array", "ops": [
        {"op": "open", "mode": "w"}, {"op": "dim", "name": "x", "size": 40},
        var("v", ["x"], dtype, codec="portable", bound=["abs", 100.0]),
        put("v", [["s", 0, 20, 1]], "noise"), CLOSE]})
    assert verdict.kind == "ok", verdict.text


def test_of_puts_into_an_opened_scalar_the_later_stays():
    """Puts of ranks into a scalar take effect in their order, also without a collective call in
    between, because plain parallel HDF5 writes at once."""
    both = [{**put("v", [], "const"), "rank": rank, "values": {"kind": "const", "offset": value}}
            for rank, value in ((2, 1.0), (0, 5.0), (1, 3.0), (0, 7.0))]
    verdict = judged({"door": "hdf5-mpi", "ranks": 3, "ops": [
        {"op": "open", "mode": "w"}, var("v", [], "f4"), CLOSE,
        {"op": "open", "mode": "a"}, *both[:2], FLUSH, *both[2:], FLUSH, *both, CLOSE]})
    assert verdict.kind == "ok", verdict.text


@pytest.mark.parametrize("dims", [[], ["x"]], ids=["scalar", "array"])
def test_a_bound_that_names_no_codec(dims):
    """Settings of PnetCDF programs' default codec must not be checked against the chosen codec."""
    verdict = judged({"door": "pnetcdf", "ranks": 1, "ops": [
        {"op": "open", "mode": "w"}, {"op": "dim", "name": "x", "size": 40},
        var("v", dims, "f4", bound=["abs", 1e-3]), put("v", [["s", 0, 40, 1]][:len(dims)]), CLOSE]})
    assert verdict.kind == "ok", verdict.text


@pytest.mark.parametrize("call", range(14, 29, 2))
@pytest.mark.sample(2)
def test_a_kill_within_a_flush_leaves_no_scalar_of_it(call):
    """Scalars must not be written in place before the commit of the flush's other values."""
    verdict = judged({"door": "array-faults", "ops": [
        {"op": "fault", "kind": "kill", "call": call},
        {"op": "open", "mode": "w", "options": "fsync=off"},
        var("g/v3", [], "f4"), put("g/v3", [], "const"), FLUSH, var("v6", [], "f4"),
        {"op": "put", "name": "g/v3", "key": [], "values": {"kind": "const", "offset": 5.0}},
        put("v6", [], "const"), FLUSH]})
    assert verdict.kind == "ok", verdict.text


def test_a_flush_that_fails_gives_up_the_places_of_its_scalars():
    """Otherwise the next flush would put metadata there, and overwrite them with the scalar."""
    verdict = judged({"door": "pnetcdf-faults", "ranks": 1, "ops": [
        {"op": "fault", "kind": "sync", "call": 1, "rank": 0},
        {"op": "open", "mode": "w", "options": ""}, var("v3", [], "f4"), FLUSH]})
    assert verdict.kind == "ok", verdict.text


def test_an_aborted_file_leaves_the_definitions_of_the_old_one():
    """The performer in C++ knows the fields of the file that it opens, not of the aborted one."""
    dims = [{"op": "dim", "name": "t", "size": None}, {"op": "dim", "name": "x", "size": 8}]
    entry = [{**put("v", [["i", at], ["s", 0, 8, 1]]), "rank": 0, "style": ""} for at in (0, 1)]
    verdict = judged({"door": "steps", "ops": [
        {"op": "open", "mode": "w"}, *dims, var("v", ["t", "x"], "f4", over_time=True), entry[0],
        CLOSE, {"op": "open", "mode": "w"}, {"op": "dim", "name": "x", "size": 3},
        var("v", ["x"], "f8"), {"op": "abort"}, {"op": "open", "mode": "a"}, entry[1], CLOSE]})
    assert verdict.kind == "ok", verdict.text


@pytest.mark.parametrize("call", [4, 5, 6])
def test_a_program_does_not_release_a_file_whose_close_has_failed(call):
    """Serial HDF5 crashes when a file is released whose H5Fclose has failed."""
    verdict = judged({"door": "serial-faults", "ops": [
        {"op": "fault", "kind": "error", "call": call}, {"op": "open", "mode": "w"}, CLOSE]})
    assert (verdict.kind, verdict.fault) == ("ok", "error"), verdict.text
