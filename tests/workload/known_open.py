"""Faults that are known and not mended yet, and what of the language they keep out.

Each row is a letter of the table in which the fault stands. A mended fault's row goes, and the
programs that it kept out are generated. The rules judge one operation before the model performs it.
"""

import os

#: Remove a letter to generate the programs that its fault spoils.
KNOWN_OPEN = {
    "F": "a variable of a plug-in codec is not put before the next commit, or is constant and has "
         "a bound of its range: the commit fails",
}
#: scripts/workload --include ROW, for this process and those that it starts.
INCLUDE = "TAILRACE_WORKLOAD_INCLUDE"
for _row in filter(None, os.environ.get(INCLUDE, "").split(",")):
    KNOWN_OPEN.pop(_row, None)

_PLUGIN_LOSSY = ("sz3", "zfp", "sperr")


def _row_f(model, op):
    return op["op"] in ("flush", "close") and any(
        variable.codec in _PLUGIN_LOSSY and not variable.put_before and (
            not variable.puts
            or (variable.bound[0] in ("rel", "psnr") and variable.value_range() == 0))
        for variable in model.now.variables.values())


_RULES = {"F": _row_f}


def keeps_out(model, op):
    """The letter of a known fault that the operation may meet; "" for none."""
    if model.now is None:
        return ""
    return next((row for row in KNOWN_OPEN if _RULES[row](model, op)), "")
