"""Helpers that the performers of several doors share: values in memory, keys in pieces."""

import base64
import itertools
import os
import signal

import numpy as np

from .language import key_shape, positions, values_of


def encoded(array):
    array = np.asarray(array)
    return {"dtype": array.dtype.str, "shape": list(array.shape),
            "data": base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()}


def put_values(op, dtype, fill):
    """The values of a put, in the memory layout of its style."""
    values = values_of(op["values"], dtype, key_shape(op["key"]), fill)
    style = op.get("style")
    if style == "wider" and values.dtype == np.dtype("f4"):
        return values.astype("f8")
    if style == "strided" and values.ndim:
        loose = np.zeros((*values.shape, 2), values.dtype)
        loose[..., 0] = values
        return loose[..., 0]
    return np.asfortranarray(values) if style == "fortran" and values.ndim else values


def option_words(var):
    """The storage options of a variable's definition, as Tailrace's options."""
    words = [f"codec={var['codec']}"] if var.get("codec") else []
    if var.get("bound"):
        words.append(f"bound={var['bound'][0]}={var['bound'][1]}")
    if var.get("chunks"):
        words.append("chunk=" + "x".join(map(str, var["chunks"])) + "x" * (len(var["chunks"]) == 1))
    if var.get("options"):
        words.append(var["options"])
    for key, value in (var.get("settings") or {}).items():
        words.append(f"{key}={('off', 'on')[value] if isinstance(value, bool) else value}")
    return words


def tailrace_options(variables):
    """Entries of TAILRACE_OPTIONS for the variables that a program will define."""
    words = [(var["name"], option_words(var)) for var in variables]
    return [f"/{name}: {','.join(those)}" for name, those in words if those]


class Door:
    """Base class of the performers below."""

    def prepare(self, op):
        """Make the calls of all ranks before one rank performs its own operation."""

    def forgotten(self, _):
        """See language.CRIMES."""

    def extra(self, op):
        self.put(op)

    def crash(self, _):
        os.kill(os.getpid(), signal.SIGSEGV)


def key_lengths(key):
    return tuple(len(positions(part)) for part in key)


def hdf5_pieces(key):
    """The key as HDF5 selections: boxes with steps, each with its part of the values."""
    choices = []
    for part in key:
        at = positions(part)
        if part[0] == "s" and part[3] > 0:
            choices.append([(slice(part[1], part[1] + (part[2] - 1) * part[3] + 1, part[3]),
                             slice(0, len(at)))])
        else:  # Select positions one by one, in order: if a position occurs twice, the last value
               # counts.
            choices.append([(slice(int(i), int(i) + 1), slice(n, n + 1))
                            for n, i in enumerate(at)])
    for chosen in itertools.product(*choices):
        yield tuple(words for words, _ in chosen), tuple(part for _, part in chosen)
