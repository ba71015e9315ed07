"""A model of the language in NumPy: it predicts what a file must hold.

For each element the model stores the value that was put, whether it was written, and the tolerance
for a reader's value. The model refuses wrong programs and programs with undetermined results
(Invalid). The generator and the shrinker therefore need no rules.
"""

import copy
from dataclasses import dataclass, field
from typing import Any, Optional

import numpy as np

from .language import (CLOSED, COMMITS, DEFAULT_FILL, attribute_value, index_of, key_shape,
                       positions, values_of)

class Invalid(Exception):
    """The door need not support the program; the text gives the reason."""


@dataclass
class Variable:
    """One variable: its definition and its elements."""

    name: str
    dims: list[str]
    dtype: str
    op: dict[str, Any]
    values: Any = None
    written: Any = None  # False: the element has the fill value.
    last_rank: Any = None  # Rank that put the element since the last meeting of ranks, or -1.
    opened: bool = False  # The variable was in the file when it was opened.
    in_step: Any = None  # Doors with steps: True for elements put in the current step.
    entry: int = 0  # Field over time: the index of the current step.
    puts: int = 0  # Number since the last commit.
    first_commit: int = -1  # Number of the commit with its first values.
    absolute_bound: Optional[float] = None  # Bound of rel and psnr, known after the first commit.

    @property
    def fill(self):
        given = self.op.get("fill")
        return np.array(DEFAULT_FILL[self.dtype] if given is None else given, self.dtype)[()]

    @property
    def codec(self):
        return self.op.get("codec")

    @property
    def bound(self):
        return self.op.get("bound") or ["none", 0.0]

    @property
    def put_before(self):
        return self.first_commit >= 0

    @property
    def waits_for_values(self):
        """True if the variable may appear in the file only with its first values, or at close."""
        chosen = self.codec in (None, "auto") and self.bound[0] != "none"
        return not self.put_before and (chosen or self.bound[0] in ("rel", "psnr"))

    @property
    def over_time(self):
        return bool(self.op.get("over_time"))

    @property
    def ordered_by_calls(self):
        """True if a clock does not order puts: large datasets opened in place (docs/hdf5.md)."""
        return self.opened and not self.op.get("chunks") and self.values.nbytes >= 16384

    def keeps_exactly(self):
        """True if no codec may change a value."""
        kind = np.dtype(self.dtype).kind
        exact_codecs = ("none", "gzip", "deflate", "xor", "zstd", "lz4", "bzip2", "blosc", "blosc2",
                        "bitshuffle")
        if self.bound[0] == "none" or self.codec in exact_codecs:
            return True
        return kind in "iu" and (self.codec != "portable" or self.bound[0] == "pw_rel")

    def tolerance(self):
        """Allowed error of each element, in the unit of the values; 0: equal."""
        mode, number = self.bound
        if self.keeps_exactly():
            return np.zeros(self.values.shape, np.longdouble)
        with np.errstate(invalid="ignore"):  # Signalling NaN.
            values = self.values.astype(np.longdouble)
        if mode == "pw_rel":
            allowed = np.longdouble(number) * np.abs(values)
        elif mode == "abs":
            allowed = np.full(self.values.shape, np.longdouble(number))
        else:
            # The engine computes the range in double precision; the model may round differently.
            allowed = np.full(self.values.shape,
                              np.longdouble(self.absolute_bound or 0.0) * (1 + 1e-12))
        exact = ~np.isfinite(values) | ~self.written | (self.values == self.fill)
        return np.where(exact, np.longdouble(0), allowed)

    def value_range(self):
        """Range of the finite values that were put and are not the fill value."""
        used = self.values[self.written & (self.values != self.fill)]
        if np.dtype(self.dtype).kind == "f":
            used = used[np.isfinite(used)]
        return float(used.max()) - float(used.min()) if used.size else 0.0

    def resolve(self):
        """Fix the bound of modes rel and psnr by the values of the first commit."""
        value_range = self.value_range()
        mode, number = self.bound
        if mode == "rel":
            self.absolute_bound = number * value_range
        elif mode == "psnr":
            self.absolute_bound = value_range * 10.0 ** (-number / 20.0)
        elif mode == "abs":
            self.absolute_bound = number
        if self.absolute_bound is not None and not np.isfinite(self.absolute_bound):
            raise Invalid(f"{self.name}: the value range is beyond f8")


@dataclass
class State:
    """The contents of one file."""

    dims: dict[str, list[Any]] = field(default_factory=dict)  # [length, is unlimited]
    variables: dict[str, Variable] = field(default_factory=dict)
    attributes: dict[tuple[str, str], Any] = field(default_factory=dict)
    closed: bool = False  # After close(), which creates variables without puts, too.
    early: bool = False  # After a call that only adds variables with values.
    options: str = ""

    def shape(self, variable):
        return tuple(self.dims[name][0] for name in variable.dims)

    def may_lack(self, variable):
        """True if the variable need not be in the file yet."""
        waits = variable.waits_for_values or (self.early and not variable.put_before)
        return waits and not self.closed

    def grow(self):
        """Extend all variables to the lengths of their dimensions."""
        for variable in self.variables.values():
            shape = self.shape(variable)
            if variable.values is not None and variable.values.shape == shape:
                continue
            grown = {"values": np.full(shape, variable.fill, variable.dtype),
                     "written": np.zeros(shape, bool), "last_rank": np.full(shape, -1)}
            for name, array in grown.items():
                old = getattr(variable, name)
                if old is not None:
                    array[tuple(slice(0, n) for n in old.shape)] = old
                setattr(variable, name, array)


class Model:
    """The file on disk, and the state of the open session."""

    def __init__(self, ranks, traits):
        self.ranks = ranks
        self.traits = traits
        self.on_disk: Optional[State] = None
        self.handed_over: Optional[State] = None  # State that the next committing call commits.
        #: States that a crash may leave: the last one certainly committed, and those handed over
        #: since (docs/reliability.md).
        self.left_by_crash: list[Optional[State]] = [None]
        self.now: Optional[State] = None
        self.mode = ""
        self.in_place = False
        self.n_commits = 0
        self.n_commits_at_open = 0
        #: Lengths that a rank knows without communication: those of the last commit, extended by
        #: its own puts.
        self.known: list[dict[str, int]] = []

    # --- operations -------------------------------------------------------------------------------

    def apply(self, op):
        """Perform an operation. @returns the values that `get` must find, with their tolerance."""
        name = op["op"]
        if name != "fault" and (name in CLOSED) == (self.now is not None):
            raise Invalid(f"{name} while the file is {'open' if self.now else 'closed'}")
        result = getattr(self, f"_{name}")(op)
        self._forget_ranks(op)
        return result

    def _fault(self, op):
        """A fault happens to the process; the model continues."""

    def _open(self, op):
        if op["mode"] == "x" and self.on_disk is not None:
            raise Invalid("mode x and a file that exists")
        appends = op["mode"] == "a" and self.on_disk is not None
        if op["mode"] == "a" and self.traits.steps and not appends:
            raise Invalid("there is no file to open")
        self.now = copy.deepcopy(self.on_disk) if appends else State()
        for variable in self.now.variables.values():
            variable.opened = True
        self.now.closed = False
        self.now.options = op.get("options", "")
        self.mode = op["mode"]
        self.in_place = appends  # Otherwise the file gets its name at the first commit.
        self.n_commits_at_open = self.n_commits
        self._learn_lengths()

    def _dim(self, op):
        if op["name"] in self.now.dims:
            raise Invalid(f"dimension {op['name']} exists")
        self.now.dims[op["name"]] = [op["size"] or 0, op["size"] is None]
        for lengths in self.known:
            lengths[op["name"]] = op["size"] or 0

    def _var(self, op):
        if op["name"] in self.now.variables:
            raise Invalid(f"variable {op['name']} exists")
        if any(name not in self.now.dims for name in op["dims"]):
            raise Invalid(f"{op['name']}: a dimension does not exist")
        if op.get("chunks") and len(op["chunks"]) != len(op["dims"]):
            raise Invalid(f"{op['name']}: chunks and dimensions differ in number")
        if op.get("over_time") and not (op["dims"] and self.now.dims[op["dims"][0]][1]):
            raise Invalid(f"{op['name']}: no unlimited dimension comes first")
        self.now.variables[op["name"]] = Variable(op["name"], list(op["dims"]), op["dtype"],
                                                  dict(op))
        self.now.grow()

    def _target(self, op):
        variable = self.now.variables.get(op["name"])
        if variable is None:
            raise Invalid(f"variable {op['name']} does not exist")
        if len(op["key"]) != len(variable.dims):
            raise Invalid(f"{op['name']}: the key has {len(op['key'])} parts")
        if op.get("rank", 0) >= self.ranks:
            raise Invalid(f"rank {op['rank']} does not exist")
        return variable

    def _check_key(self, variable, key, rank, may_grow):
        """Check that positions lie within the lengths that the rank knows, or grow a dimension by a
        slice."""
        ends = []
        for name, part in zip(variable.dims, key):
            at = positions(part)
            length, unlimited = self.known[rank][name], self.now.dims[name][1]
            end = int(at.max()) + 1 if at.size else 0
            if at.size and at.min() < 0:
                raise Invalid("negative positions")
            forward = part[0] == "i" or (part[0] == "s" and part[3] > 0)
            if end > length and not (may_grow and unlimited and forward):
                raise Invalid(f"{variable.name}: position {end - 1} of {length}")
            ends.append(end)
        if any(positions(part).size == 0 for part in key):
            return None
        return ends

    def _put(self, op):
        variable = self._target(op)
        rank = op.get("rank", 0)
        ends = self._check_key(variable, op["key"], rank, True)
        if ends is None:
            return
        inside = [positions(part)[positions(part) < n]
                  for part, n in zip(op["key"], variable.last_rank.shape)]
        owners = variable.last_rank[np.ix_(*inside)] if inside else variable.last_rank
        if np.any((owners >= 0) & (owners != rank)):
            raise Invalid(f"{variable.name}: two ranks put an element and no call orders them")
        if self.traits.commits_early and op.get("how") == "independent":
            self._commit(early=True)
        if self.traits.steps:
            self._put_in_step(variable, op["key"])
        for name, end in zip(variable.dims, ends):
            self.now.dims[name][0] = max(self.now.dims[name][0], end)
            self.known[rank][name] = max(self.known[rank][name], end)
        self.now.grow()
        at = index_of(op["key"]) if op["key"] else ()
        values = values_of(op["values"], variable.dtype, key_shape(op["key"]), variable.fill)
        full = [len(positions(part)) for part in op["key"]]
        variable.values[at] = values.reshape(full)
        variable.written[at] = True
        variable.last_rank[at] = rank
        variable.puts += 1

    def _put_in_step(self, variable, key):
        """Check that a field is put once per step, in boxes, and over time into a new entry."""
        if variable.put_before and not variable.over_time:
            raise Invalid(f"{variable.name} belongs to an earlier step")
        if any(part[0] == "p" or part[-1] != 1 for part in key if part[0] != "i"):
            raise Invalid(f"{variable.name}: not a box")
        if variable.over_time:
            if key[0] != ["i", variable.entry]:
                raise Invalid(f"{variable.name}: the step's entry is {variable.entry}")
            key = key[1:]
        if variable.in_step is None:
            lengths = [self.now.dims[name][0] for name in variable.dims[variable.over_time:]]
            variable.in_step = np.zeros(lengths, bool)
        at = index_of(key) if key else ()
        if variable.in_step[at].any():
            raise Invalid(f"{variable.name}: an element is put twice in a step")
        variable.in_step[at] = True

    def _check_steps(self):
        for variable in self.now.variables.values():
            wanted = variable.puts or not variable.put_before
            holes = "holes=on" in variable.op.get("options", "")
            if wanted and (variable.in_step is None or not (holes or variable.in_step.all())):
                raise Invalid(f"{variable.name} is not put whole")

    _forgotten = _put

    def _extra(self, op):
        """See language.CRIMES."""

    _crash = _extra

    def _get(self, op):
        variable = self._target(op)
        self._check_key(variable, op["key"], op.get("rank", 0), False)
        anything = all(key_shape(op["key"]))
        if self.traits.commits_early and anything and (variable.puts or self._is_longer()):
            self._commit(early=True)
        if self.ranks > 1 and variable.puts:
            raise Invalid(f"{variable.name}: another rank's values may not be committed")
        at = index_of(op["key"]) if op["key"] else ()
        shape = key_shape(op["key"])
        return variable.values[at].reshape(shape), variable.tolerance()[at].reshape(shape)

    def _is_longer(self):
        """True if a dimension is longer than in the file, or if the file does not exist yet."""
        return not self.in_place or any(
            self.now.dims[name][0] > length for name, (length, _) in self.on_disk.dims.items())

    def _attr(self, op):
        if op["of"] and op["of"] not in self.now.variables:
            raise Invalid(f"variable {op['of']} does not exist")
        self.now.attributes[op["of"], op["name"]] = attribute_value(op["value"])

    def _delattr(self, op):
        if (op["of"], op["name"]) not in self.now.attributes:
            raise Invalid(f"attribute {op['name']} does not exist")
        del self.now.attributes[op["of"], op["name"]]

    def _flush(self, op):
        assert op["op"] in COMMITS
        self._commit()

    def _step(self, op):
        self._commit(waits="mode=" not in self.now.options)

    def _commit(self, waits=True, early=False):
        if self.traits.steps:
            self._check_steps()
        self.now.grow()
        for variable in self.now.variables.values():
            if variable.puts and not variable.put_before:
                variable.first_commit = self.n_commits
                variable.resolve()
            variable.puts, variable.in_step = 0, None
            variable.entry = self.now.dims[variable.dims[0]][0] if variable.over_time else 0
        self.n_commits += 1
        self.in_place = True
        self._learn_lengths()
        self.on_disk, self.handed_over = self.handed_over or self.on_disk, None
        self.now.early = early
        state = copy.deepcopy(self.now)
        if waits:
            self.on_disk = state
            self.left_by_crash = [state]
        else:
            self.handed_over = state
            self.left_by_crash = [*self.left_by_crash, state][-3:]

    def _close(self, op):
        self.now.closed = True
        self._flush(op)
        self.now = None

    def _abort(self, op):
        if self.on_disk is not None:
            for variable in self.on_disk.variables.values():
                if variable.waits_for_values:
                    raise Invalid(f"{variable.name} may be lost or not")
        self.now = self.handed_over = None
        self.left_by_crash = [self.on_disk]

    def _ranks(self, op):
        """Another job continues with the closed file."""
        if self.now is not None or op["n"] not in self.traits.ranks:
            raise Invalid(f"no job of {op['n']} ranks can go on")
        self.ranks = op["n"]

    def _read(self, op):
        """All ranks read their own slabs of a closed file. @returns the values that each must
        find."""
        if self.on_disk is None or op["name"] not in self.on_disk.variables:
            raise Invalid(f"variable {op['name']} does not exist")
        variable, tolerance = self.on_disk.variables[op["name"]], None
        if len(op["keys"]) != self.ranks:
            raise Invalid("each rank reads one slab")
        tolerance, found = variable.tolerance(), []
        for key in op["keys"]:
            if len(key) != len(variable.dims) or any(
                    positions(part).size and positions(part).max() >= n
                    for part, n in zip(key, variable.values.shape)):
                raise Invalid(f"{variable.name}: a slab lies outside")
            at = index_of(key) if key else ()
            found.append((variable.values[at], tolerance[at]))
        return found

    def _badput(self, op):
        """A put that the library must refuse on its rank, and that changes nothing."""
        variable = self.now.variables.get(op["name"])
        if variable is None or op.get("rank", 0) >= self.ranks:
            raise Invalid(f"no variable {op['name']}, or no such rank")
        if not variable.dims or self.now.dims[variable.dims[-1]][1]:
            raise Invalid(f"{variable.name}: a put beyond its last dimension makes it grow")
        if self.traits.steps and variable.put_before and not variable.over_time:
            raise Invalid(f"{variable.name} belongs to an earlier step")

    # --- helpers ----------------------------------------------------------------------------------

    def _learn_lengths(self):
        lengths = {name: length for name, (length, _) in self.now.dims.items()}
        self.known = [dict(lengths) for _ in range(self.ranks)]

    def _forget_ranks(self, op):
        """Record that later puts are ordered after all earlier puts of other ranks."""
        if self.now is None or op["op"] == "badput":
            return
        clock = self.traits.clock
        met = op["op"] in ("flush", "close") or op.get("how") or (
            op["op"] not in ("put", "get", "fault") and not clock)
        for variable in self.now.variables.values():
            if met or (clock and not variable.ordered_by_calls):
                variable.last_rank.fill(-1)
