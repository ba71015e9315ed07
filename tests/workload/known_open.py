"""Faults that are known and not mended yet, and what of the language they keep out.

Each row is a letter of the table in which the fault stands. A mended fault's row goes, and the
programs that it kept out are generated. The rules judge one operation before the model performs it.
"""

import os

import numpy as np

from .language import positions

#: Remove a letter to generate the programs that its fault spoils.
KNOWN_OPEN = {
    "A": "one unlimited dimension that is not the variable's first",
    "B": "a chunk is rewritten in part where its filter mask may change",
    "C": "values are overwritten before a rel or psnr bound is resolved",
    "D": "a contiguous variable gets its first values after the first commit, and others later",
    "F": "a variable of a plug-in codec is not put before the next commit, or is constant and has "
         "a bound of its range: the commit fails",
    "Z": "what was flushed of a variable that nobody has put is given up: the file lacks it",
}
#: scripts/workload --include ROW, for this process and those that it starts.
INCLUDE = "TAILRACE_WORKLOAD_INCLUDE"
for _row in filter(None, os.environ.get(INCLUDE, "").split(",")):
    KNOWN_OPEN.pop(_row, None)

_PLUGIN_LOSSY = ("sz3", "zfp", "sperr")


def is_contiguous(variable):
    return not variable.dims or "layout=contiguous" in variable.op.get("options", "")


def _row_a(model, op):
    if op["op"] != "var":
        return False
    unlimited = [model.now.dims[name][1] for name in op["dims"] if name in model.now.dims]
    return sum(unlimited) == 1 and not unlimited[0]


def _row_b(model, op):
    if op["op"] != "put" or op["name"] not in model.now.variables:
        return False
    variable = model.now.variables[op["name"]]
    return variable.put_before and not is_contiguous(variable) and variable.codec != "none" and (
        variable.codec in ("portable", "") or not _large_chunks(variable))


def _large_chunks(variable):
    chunks = variable.op.get("chunks")
    return bool(chunks) and np.prod(chunks) * np.dtype(variable.dtype).itemsize >= 512


def _row_c(model, op):
    if op["op"] != "put" or op["name"] not in model.now.variables:
        return False
    variable = model.now.variables[op["name"]]
    if variable.bound[0] not in ("rel", "psnr") or variable.put_before:
        return False
    shape = variable.written.shape
    at = [positions(part) for part in op["key"]]
    inside = [p[p < n] for p, n in zip(at, shape)]
    return bool(variable.written[np.ix_(*inside)].any() if at else variable.written.any())


def _row_d(model, op):
    if op["op"] != "put" or op["name"] not in model.now.variables:
        return False
    variable = model.now.variables[op["name"]]
    return (is_contiguous(variable) and variable.put_before
            and variable.first_commit > model.n_commits_at_open)


def _row_f(model, op):
    return op["op"] in ("flush", "close") and any(
        variable.codec in _PLUGIN_LOSSY and not variable.put_before and (
            not variable.puts
            or (variable.bound[0] in ("rel", "psnr") and variable.value_range() == 0))
        for variable in model.now.variables.values())


def _row_z(model, op):
    return op["op"] == "abort" and model.on_disk is not None and any(
        not variable.put_before for variable in model.on_disk.variables.values())


_RULES = {"A": _row_a, "B": _row_b, "C": _row_c, "D": _row_d, "F": _row_f, "Z": _row_z}


def keeps_out(model, op):
    """The letter of a known fault that the operation may meet; "" for none."""
    if model.now is None:
        return ""
    return next((row for row in KNOWN_OPEN if _RULES[row](model, op)), "")
