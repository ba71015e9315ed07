"""Reads a file with stock readers and with Tailrace, and compares it with the model.

h5py and netCDF4 read everything. tailrace.open reads everything, then parts. `tailrace verify`
compares the file with a second file of the values that were put. `tailrace recover` must report an
undamaged file.
"""

import json
import os
import random
import subprocess
import warnings

import h5py
import hdf5plugin  # noqa: F401 - before netCDF4, as tests/python/conftest.py says.
import netCDF4
import numpy as np
import tailrace

from .language import as_slices

#: Attributes of the programs begin with this prefix; the writers add all others.
PREFIX = "p_"


class Mismatch(Exception):
    """A reader's result differs from the model."""

    def __init__(self, reader, text):
        super().__init__(f"{reader}: {text}")
        self.reader = reader


def wrong_elements(variable, values, found, tolerance):
    """True for each element of `found` that differs from `values` by more than the tolerance."""
    found = np.asarray(found)
    if found.dtype != values.dtype:
        return np.ones(values.shape, bool)
    equal = found == values
    if values.dtype.kind != "f":
        with np.errstate(all="ignore"):
            off = np.abs(found.astype(np.longdouble) - values.astype(np.longdouble))
        return ~(equal | (off <= tolerance))
    both_nan = np.isnan(values) & np.isnan(found)
    if variable.keeps_exactly():
        return ~((equal & (np.signbit(values) == np.signbit(found))) | both_nan)
    with np.errstate(all="ignore"):
        off = np.abs(found.astype(np.longdouble) - values.astype(np.longdouble))
        close = np.isfinite(values) & np.isfinite(found) & (off <= tolerance)
        close &= ~breaks_guard(variable, values, found)
    return ~(equal | both_nan | close)


def breaks_guard(variable, values, found):
    """True for each element that violates a guard of the variable (docs/guards.md)."""
    broken = np.zeros(values.shape, bool)
    for guard in (variable.op.get("settings") or {}).get("guard", "").split("+"):
        if guard == "sign":
            broken |= np.sign(values) != np.sign(found)
        elif guard == "zero":
            broken |= (values == 0) & (found != 0)
        elif guard:
            limit = float(guard.partition("=")[2])
            broken |= np.sign(values - limit) != np.sign(found - limit)
    return broken


def compare(reader, variable, values, found, tolerance, allowed=None):
    """Raise Mismatch if the values that a reader found are not the model's.
    allowed: elements that may differ nevertheless."""
    found = np.asarray(found)
    if found.shape != values.shape:
        raise Mismatch(reader, f"{variable.name} has shape {found.shape}, not {values.shape}")
    if found.dtype != values.dtype:
        raise Mismatch(reader, f"{variable.name} has type {found.dtype}, not {values.dtype}")
    wrong = wrong_elements(variable, values, found, tolerance)
    if allowed is not None:
        wrong &= ~allowed
    if not wrong.any():
        return
    at = tuple(int(i) for i in np.argwhere(wrong)[0])
    raise Mismatch(reader, f"{variable.name}{list(at)} is {found[at]!r}, not {values[at]!r} within "
                           f"{float(tolerance[at])!r}; {int(wrong.sum())} of {wrong.size} wrong")


def same_attribute(one, other):
    """True if `one` of the model equals `other`, which a reader returned."""
    if isinstance(other, h5py.Empty):  # netCDF stores an empty text like this.
        other = ""
    if isinstance(one, str) or isinstance(other, (str, bytes)):
        return (other.decode() if isinstance(other, bytes) else other) == one
    one, other = np.atleast_1d(one), np.atleast_1d(other)
    return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=one.dtype.kind == "f")


class _Hdf5Reader:
    name = "h5py"

    def __init__(self, path):
        self.file = h5py.File(path, "r")

    def has(self, name):
        return name in self.file

    def values(self, name):
        return self.file[name][()]

    def attributes(self, name):
        of = self.file[name] if name else self.file
        return {key: of.attrs[key] for key in of.attrs if key.startswith(PREFIX)}

    def close(self):
        self.file.close()


class _NetcdfReader:
    name = "netCDF4"

    def __init__(self, path):
        self.file = netCDF4.Dataset(path)
        self.file.set_auto_maskandscale(False)

    def has(self, name):
        try:
            return self.file[name] is not None
        except (IndexError, KeyError):
            return False

    def values(self, name):
        return self.file[name][...].reshape(self.file[name].shape)

    def attributes(self, name):
        of = self.file[name] if name else self.file
        return {key: of.getncattr(key) for key in of.ncattrs() if key.startswith(PREFIX)}

    def close(self):
        self.file.close()


class _OwnReader(_Hdf5Reader):
    name = "tailrace.open"

    def __init__(self, path):
        self.file = tailrace.open(path)


READERS = (_Hdf5Reader, _NetcdfReader, _OwnReader)


def random_key(shape, rng):
    """A random key of indexes, slices with steps and lists, for a reader."""
    key = []
    for n in shape:
        kind = rng.choice("iss" if n else "s")
        if kind == "i":
            key.append(["i", rng.randrange(n)])
        else:
            step = rng.choice([1, 1, 2, 3, -1])
            count = rng.randint(0, max(0, (n - 1) // abs(step) + 1 if n else 0))
            room = n - 1 - (count - 1) * abs(step) if count else 0
            start = rng.randint(0, max(0, room))
            key.append(["s", start if step > 0 else start + (count - 1) * abs(step) if count else 0,
                        count, step])
    return key


def _by_every_reader(path, look):
    """Read the file with each reader; a file that a reader cannot open or read is a Mismatch."""
    for make in READERS:
        try:
            reader = make(path)
        except Exception as error:
            raise Mismatch(make.name, f"does not open: {error}") from error
        try:
            look(reader)
        except Mismatch:
            raise
        except Exception as error:
            raise Mismatch(reader.name, f"cannot read: {error}") from error
        finally:
            reader.close()


class Auditor:
    """Compares one file with states of the model."""

    def __init__(self, folder, program):
        self.folder = folder
        self.program = program  # The command-line program, `tailrace`.
        self.rng = random.Random(0)

    def audit(self, path, state, other=None, complete=True, last=True):
        """Raise Mismatch unless the file holds `state`.
        other: the state after the commit during which the writer died. Variables that are
        overwritten in place may hold some values of that state.
        complete: the file is closed, and `verify` checks it, too; last: so does `recover`."""
        _by_every_reader(path, lambda reader: self._audit_by(reader, state, other))
        self._bounds(path, state)
        if complete:
            if "attributes=off" not in state.options and other is None:
                self._verify(path, state)
            if last:
                self._recover(path)

    def audit_parts(self, path, states, must_be):
        """Raise Mismatch unless each variable matches one of the states. A crash in the commit of a
        step may leave such a mixture. must_be: the first state was committed."""
        def parts(reader):
            for name in {name: None for state in states for name in state.variables}:
                self._part_of_one(reader, name, states, must_be)
            for name in filter(lambda one: not one or reader.has(one),
                               ["", *states[-1].variables]):
                self._attributes_of_one(reader, name, states)

        _by_every_reader(path, parts)
        self._recover(path)

    @staticmethod
    def _part_of_one(reader, name, states, must_be):
        if not reader.has(name):
            first = states[0]
            if must_be and name in first.variables and not first.may_lack(first.variables[name]):
                raise Mismatch(reader.name, f"{name} does not exist")
            return
        found, mismatches = np.asarray(reader.values(name)), []
        for state in reversed(states):
            if name not in state.variables:
                continue
            variable = state.variables[name]
            try:
                compare(reader.name, variable, variable.values, found, variable.tolerance())
                return
            except Mismatch as mismatch:
                mismatches.append(str(mismatch))
        raise Mismatch(reader.name, "; nor: ".join(mismatches))

    @staticmethod
    def _attributes_of_one(reader, name, states):
        found = reader.attributes(name)
        for key in {key for state in states for of, key in state.attributes if of == name}:
            values = [state.attributes.get((name, key)) for state in states]
            if key not in found:
                if all(value is not None for value in values):
                    raise Mismatch(reader.name, f"attribute {name}/{key} does not exist")
            elif not any(value is not None and same_attribute(value, found[key])
                         for value in values):
                raise Mismatch(reader.name, f"attribute {name}/{key} is {found[key]!r}")

    def _audit_by(self, reader, state, other):
        for name, variable in state.variables.items():
            if not reader.has(name):
                if not state.may_lack(variable):
                    raise Mismatch(reader.name, f"{name} does not exist")
                continue
            tolerance = variable.tolerance()
            found = reader.values(name)
            allowed = None
            if other is not None and overwrites_in_place(variable) and put_in(other, name):
                allowed = elements_of(other.variables[name], np.asarray(found))
            compare(reader.name, variable, variable.values, found, tolerance, allowed)
            if isinstance(reader, _OwnReader) and allowed is None:
                self._parts(reader, variable, tolerance)
        owners = ["", *(name for name in state.variables if reader.has(name))]
        for name in owners:
            wanted = {key: value for (of, key), value in state.attributes.items() if of == name}
            found = reader.attributes(name)
            if wanted.keys() != found.keys():
                raise Mismatch(reader.name, f"attributes of {name or '/'} are {sorted(found)}, not "
                                            f"{sorted(wanted)}")
            for key, value in wanted.items():
                if not same_attribute(value, found[key]):
                    raise Mismatch(reader.name, f"attribute {name}/{key} is {found[key]!r}, not "
                                                f"{value!r}")

    def _parts(self, reader, variable, tolerance):
        for _ in range(2):
            words = as_slices(random_key(variable.values.shape, self.rng))
            found = reader.file[variable.name][words]
            compare(reader.name, variable, np.asarray(variable.values[words]), found,
                    np.asarray(tolerance[words]))

    @staticmethod
    def _bounds(path, state):
        """Check that no bound recorded in the file is wider than the requested bound."""
        with h5py.File(path, "r") as file:
            for name, variable in state.variables.items():
                if name not in file or variable.absolute_bound is None:
                    continue
                recorded = file[name].attrs.get("tailrace_absolute_bound")
                if recorded is not None and recorded > variable.absolute_bound * (1 + 1e-9):
                    raise Mismatch("recorded bound", f"{name} records {recorded!r}, not "
                                                     f"{variable.absolute_bound!r}")

    def _verify(self, path, state):
        original = os.path.join(self.folder, "original.h5")
        with h5py.File(original, "w") as file, h5py.File(path, "r") as there:
            # Variables that wait for values are missing from the file until it is closed.
            names = [name for name in state.variables if state.closed or name in there]
            for name in names:
                file.create_dataset(name, data=state.variables[name].values)
        if not names:
            return  # verify refuses an original without variables.
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                verdict = tailrace.verify(original, path, values_only=True)
        except Exception as error:
            raise Mismatch("verify", str(error)) from error
        if not verdict.ok or len(verdict) != len(names):
            raise Mismatch("verify", repr(verdict))

    def _recover(self, path):
        done = subprocess.run([self.program, "recover", path, "--json", "-"], capture_output=True,
                              text=True, timeout=60, check=False)
        if done.returncode or json.loads(done.stdout)["state"] != "whole":
            raise Mismatch("recover", f"exit {done.returncode}: {done.stdout}{done.stderr}")

    def repair(self, path):
        """Run `tailrace recover --apply` after a fault."""
        done = subprocess.run([self.program, "recover", path, "--apply"], capture_output=True,
                              text=True, timeout=60, check=False)
        if done.returncode:
            raise Mismatch("recover", f"--apply exits {done.returncode}: {done.stdout}"
                                      f"{done.stderr}")


def put_in(state, name):
    """True if the state has committed values of the variable."""
    return name in state.variables and state.variables[name].put_before


def overwrites_in_place(variable):
    """Large variables without a filter are overwritten where they lie (docs/simulation.md)."""
    return variable.values.nbytes > 65536 and (
        variable.codec == "none" or "layout=contiguous" in variable.op.get("options", ""))


def elements_of(variable, found):
    """True for each element of `found` that equals the variable's value; shapes may differ."""
    equal = np.zeros(found.shape, bool)
    common = tuple(slice(0, min(n, m)) for n, m in zip(found.shape, variable.values.shape))
    equal[common] = ~wrong_elements(variable, variable.values[common], found[common],
                                    variable.tolerance()[common])
    return equal
