"""Random programs that a door supports, made from a seed.

Each operation is tried on the model first. It is dropped if the program would be wrong or its
result undetermined.
"""

import random

import numpy as np

from .doors import LOSSY_CODECS
from .language import Program
from .model import Invalid, Model

#: Maximum number of elements of one variable, so that a program takes milliseconds.
_ELEMENTS_MAX = 6000
_LENGTHS = (1, 2, 3, 4, 5, 7, 8, 12, 16, 17, 31, 40)
_KINDS = ("const", "ramp", "smooth", "smooth", "noise", "noise", "wide", "specials", "bits")
#: Kinds with a meaningful range. With a single extreme value, rel and psnr bounds mean nothing.
_KINDS_OF_RANGE = ("const", "ramp", "smooth", "noise")
_SETTINGS = {
    "deflate": ({"level": 1}, {"level": 9}, {"shuffle": False}, {"checksum": True},
                {"engine": "zlib"}, {"level": 0}),
    "portable": ({"level": 1}, {"shuffle": False}, {"checksum": True}),
    "trz": ({"preset": "fast"}, {"preset": "ratio"}, {"preset": "max"}, {"predictor": "none"},
            {"predictor": "lorenzo"}, {"predictor": "interpolation"}, {"dimension": 1},
            {"coarse": 1}, {"coarse": 2}, {"refine": 3}, {"lossless": False},
            {"guard": "sign"}, {"guard": "zero"}, {"guard": "threshold=0.5+zero"}),
    "gzip": ({"compression_opts": 1}, {"shuffle": True}, {"fletcher32": True},
             {"shuffle": True, "compression_opts": 9}),
    "zstd": ({"level": 1}, {"shuffle": False}), "lz4": ({"shuffle": False},),
    "bzip2": ({"level": 1},), "blosc": ({"inner": "zlib"}, {"shuffle": "bit"}),
    "blosc2": ({"inner": "zstd"},), "bitshuffle": ({"inner": "zstd"}, {"inner": "none"}),
    "xor": ({"dimension": 1},),
}


class Generator:
    """Makes one program."""

    def __init__(self, seed, door, traits, lengths, elements_max):
        self.rng = random.Random(seed)
        self.traits = traits
        self.program = Program(door, [], self.rng.choice(traits.ranks), seed)
        self.model = Model(self.program.ranks, traits)
        self.lengths, self.elements_max = lengths, elements_max
        self.n_names = 0
        self.sync_all = False

    def chance(self, share):
        return self.rng.random() < share

    def name(self, letter):
        self.n_names += 1
        return f"{letter}{self.n_names}"

    def layout(self, file_options):
        """A layout that the file's mode supports."""
        return "layout=" + self.rng.choice([name for name in self.traits.layouts
                                            if name != "dense" or "mode=" not in file_options])

    def add(self, op):
        """Add the operation if it is valid at this point. @returns whether it is."""
        if op["op"] == "abort" and "abort" not in self.traits.ops:
            return False
        try:
            self.model.apply(op)
        except Invalid:
            return False
        self.program.ops.append(op)
        return True

    def make(self):
        if self.traits.faults and self.chance(0.95):
            self.fault()
        sessions = self.rng.choice([1, 1, 2, 2, 3])
        for at in range(sessions):
            if at and len(self.traits.ranks) > 1 and self.chance(0.3):
                self.add({"op": "ranks", "n": self.rng.choice(self.traits.ranks)})
            if self.traits.steps:
                self.session_of_steps(at)
            else:
                self.session(at)
            for _ in range(self.rng.randint(0, 2) if self.traits.reads else 0):
                self.read()
        return self.program

    def fault(self):
        kind = self.rng.choice(self.traits.faults + ("kill",))
        logarithms = {"full": 4.0, "sync": 2.5}.get(kind, 5.5)
        self.sync_all = kind == "sync"
        # Rank 0 makes most calls.
        rank = self.rank() if self.chance(0.5) else 0
        call = int(np.exp(self.rng.uniform(0, logarithms - 1.5 * (rank > 0))))
        self.add({"op": "fault", "kind": kind, "call": call, "rank": rank})

    def read(self):
        """All ranks read slabs of a closed file, also after an "abort"."""
        if self.model.on_disk is None:
            return
        variable = self.rng.choice(list(self.model.on_disk.variables.values()))
        if variable.waits_for_values and not self.model.on_disk.closed:
            return
        keys = []
        for _ in range(self.model.ranks):
            parts = [self.part(n, self.chance(0.3), False) for n in variable.values.shape]
            keys.append([["s", part[1], 1, 1] if part[0] == "i" else
                         ["s", part[1], part[2], abs(part[3])] for part in parts])
        self.add({"op": "read", "name": variable.name, "keys": keys})

    # --- a session --------------------------------------------------------------------------------

    def session(self, at):
        mode = "w" if at == 0 or self.chance(0.15) or "append" not in self.traits.ops else "a"
        if self.model.on_disk is None and self.chance(0.2):
            mode = self.rng.choice([mode for mode, op in (("a", "append"), ("x", "exclusive"))
                                    if op in self.traits.ops] or ["w"])
        self.open(mode)
        starts_anew = at == 0 or mode == "w"
        for _ in range(self.rng.randint(1, 3) if starts_anew else self.rng.randint(0, 1)):
            self.define()
        if self.chance(0.25) and not self.time_steps():
            return
        for _ in range(self.rng.randint(1, 4)):
            for _ in range(self.rng.randint(1, 5)):
                self.step()
            if self.chance(0.7) and not self.commit("flush"):
                return
        if not ("abort" in self.traits.ops and self.chance(0.1) and self.add({"op": "abort"})):
            self.commit("close")

    def open(self, mode):
        may_sync = "fsync=on" in self.traits.file_options
        options = ["fsync=off"] if may_sync and not self.sync_all else []
        if self.chance(0.4) and self.traits.file_options:
            options.append(self.rng.choice(self.traits.file_options))
            if options[-1].startswith("fsync"):
                options = options[-1:]
        if self.chance(0.2) and self.traits.layouts:
            options.append(self.layout(",".join(options)))
        if self.traits.file_options:
            # Repeated values next to much smaller ones are not an error in a random program.
            options.append("allow-wide-bound=on")
        self.add({"op": "open", "mode": mode, "options": ",".join(options)})

    def time_steps(self):
        """Write like a simulation: the same variables in every step, sometimes new ones, and a
        flush after each step. @returns False if the file was aborted."""
        for _ in range(self.rng.randint(3, 6)):
            if self.chance(0.25):
                self.define()
            for variable in list(self.model.now.variables.values()):
                if self.chance(0.8):
                    self.put(variable)
            if not self.commit("flush"):
                return False
        return True

    def session_of_steps(self, at):
        """Fields of one step, in groups, and fields over time; the program waits for some steps."""
        self.open("a" if at and self.model.on_disk is not None and self.chance(0.85) else "w")
        for n in range(self.rng.randint(1, 5)):
            for _ in range(self.rng.choice([0, 1, 1, 2]) if n else self.rng.randint(1, 3)):
                self.define_field()
            for variable in list(self.model.now.variables.values()):
                if variable.over_time and not variable.puts and self.chance(0.85):
                    self.put_whole(variable)
            if self.chance(0.3):
                self.attribute(list(self.model.now.variables.values()))
            if self.chance(0.06) and self.add({"op": "abort"}):
                return
            if self.traits.bad_puts and self.chance(0.06):
                self.bad_put(self.rng.choice(list(self.model.now.variables.values())))
            if not self.add({"op": self.rng.choice(["flush", "flush", "step"])}):
                break
        if self.chance(0.15) or not self.add({"op": "close"}):
            self.add({"op": "abort"})

    def define_field(self):
        over_time = self.chance(0.5)
        names, elements = [], 1
        for _ in range(self.rng.choice([0, 1, 1, 2, 2, 3])):
            lengths = [n for n in self.lengths if n * elements <= self.elements_max // 3]
            names.append(self.name("d"))
            self.add({"op": "dim", "name": names[-1], "size": self.rng.choice(lengths)})
            elements *= self.model.now.dims[names[-1]][0]
        dtype = self.rng.choice(self.traits.dtypes if self.chance(0.4) else ("f4", "f8"))
        group = self.rng.choice(["", f"s{self.model.n_commits}/", f"s{self.model.n_commits}/g/"])
        op = {"op": "var", "name": group + self.name("v"), "dims": names, "dtype": dtype,
              "codec": None, "bound": None}
        if self.chance(0.5):
            op["fill"] = self.rng.choice([0, 1, 99])
        self.storage(op, [self.model.now.dims[name] for name in names])
        if over_time:
            op["over_time"] = True
            op["dims"] = [self.name("t"), *names]
            self.add({"op": "dim", "name": op["dims"][0], "size": None})
            if op.get("chunks"):
                op["chunks"] = [1, *op["chunks"]]
            if op.get("options") in ("layout=contiguous", "layout=dense"):
                del op["options"]  # Refused by growing fields; by modes other than sync.
        contiguous = op.get("options") == "layout=contiguous"  # A contiguous field has no holes.
        if op.get("fill") is not None and not contiguous and self.chance(0.3):
            op["options"] = ",".join(filter(None, [op.get("options"), "holes=on"]))
        if self.add(op):
            self.put_whole(self.model.now.variables[op["name"]])

    def put_whole(self, variable):
        """Put a field in the boxes of a random partition; boxes may be missing if holes are
        allowed."""
        boxes = [[(0, self.model.now.dims[name][0])
                  for name in variable.dims[variable.over_time:]]]
        for _ in range(self.rng.choice([0, 1, 2, 4]) if boxes[0] else 0):
            box = boxes.pop(self.rng.randrange(len(boxes)))
            d = self.rng.randrange(len(box))
            first, n = box[d]
            cut = self.rng.randint(1, n - 1) if n > 1 else n
            for part in ((first, cut), (first + cut, n - cut)):
                if part[1]:
                    boxes.append([*box[:d], part, *box[d + 1:]])
        if "holes=on" in variable.op.get("options", ""):
            boxes = [box for at, box in enumerate(boxes) if not at or self.chance(0.6)]
        for box in boxes:
            key = [["i", variable.entry]] if variable.over_time else []
            self.add({"op": "put", "name": variable.name, "rank": self.rank(),
                      "key": key + [["s", first, n, 1] for first, n in box],
                      "values": self.values(variable),
                      "style": self.rng.choice(["", "", "copy", "strided", "fortran"])})

    def commit(self, kind):
        """Commit, and first put variables whose values the commit requires. @returns whether it
        succeeded."""
        for variable in list(self.model.now.variables.values()):
            if self.add({"op": kind}):
                return True
            self.put(variable)
        return self.add({"op": kind}) or not self.add({"op": "abort"})

    def step(self):
        roll = self.rng.random()
        variables = list(self.model.now.variables.values())
        if not variables or roll < 0.08:
            self.define()
        elif roll < 0.2 and "get" in self.traits.ops:
            variable = self.rng.choice(variables)
            self.add({"op": "get", "name": variable.name, "rank": self.rank(),
                      "key": self.key(variable, False), "style": self.rng.choice(["", "whole"])})
        elif roll < 0.3 and "attr" in self.traits.ops:
            self.attribute(variables)
        elif self.traits.bad_puts and roll > 0.97:
            self.bad_put(self.rng.choice(variables))
        else:
            self.put(self.rng.choice(variables))

    def bad_put(self, variable):
        op = {"op": "badput", "name": variable.name, "rank": self.rank()}
        self.add({**op, "how": "collective"} if self.traits.hows else op)

    def rank(self):
        return self.rng.randrange(self.model.ranks)

    def attribute(self, variables):
        of = self.rng.choice(["", *[variable.name for variable in variables]])
        mine = [name for owner, name in self.model.now.attributes if owner == of]
        if mine and "delattr" in self.traits.ops and self.chance(0.3):
            self.add({"op": "delattr", "of": of, "name": self.rng.choice(mine)})
            return
        name = self.rng.choice(mine) if mine and self.chance(0.4) else "p_" + self.name("a")
        values = [
            "text", "", "longer " * 40, "\u00b0C", ["i4", [self.rng.randint(-9, 9)]],
            ["f8", [self.rng.gauss(0, 1) for _ in range(self.rng.randint(1, 30))]], ["u1", [1, 2]],
            ["i8", [2**40]], ["f4", [0.5, -1.0]]]
        value = self.rng.choice([value for value in values if (
            "text" if isinstance(value, str) else value[0]) in self.traits.attribute_types])
        self.add({"op": "attr", "of": of, "name": name, "value": value})

    # --- definitions ------------------------------------------------------------------------------

    def define(self):
        n_dims = self.rng.choice([0, 1, 1, 1, 2, 2, 2, 3, 3, 4])
        names, elements = [], 1
        for _ in range(n_dims):
            known = [name for name, (length, unlimited) in self.model.now.dims.items()
                     if name not in names and max(length, 8) * elements <= self.elements_max
                     and not (unlimited and self.traits.records and names)]
            if known and self.chance(0.5):
                name = self.rng.choice(known)
            else:
                lengths = [n for n in self.lengths if n * elements <= self.elements_max]
                if not lengths:
                    break
                name = self.name("d")
                size = None if self.may_grow(names) and self.chance(0.3) else (
                    self.rng.choice(lengths))
                self.add({"op": "dim", "name": name, "size": size})
            names.append(name)
            elements *= self.model.now.dims[name][0] or 8
        dtype = self.rng.choice(self.traits.dtypes) if self.chance(0.4) else (
            self.rng.choice([name for name in ("f4", "f8") if name in self.traits.dtypes]))
        group = "g/" if self.chance(0.15) and self.traits.groups else ""
        op = {"op": "var", "name": group + self.name("v"), "dims": names, "dtype": dtype,
              "codec": None, "bound": None}
        if self.chance(0.5):
            op["fill"] = self.rng.choice([0, 1, -1, -999]) if dtype[0] != "u" else (
                self.rng.choice([0, 1, 255]))
            if dtype == "i1" and op["fill"] == -999:
                op["fill"] = 99
        self.storage(op, [self.model.now.dims[name] for name in names])
        self.add(op)

    def may_grow(self, names):
        """True if a new dimension after these can be unlimited."""
        if not self.traits.records:
            return self.traits.growing
        return not names and not any(one for _, one in self.model.now.dims.values())

    def storage(self, op, dims):
        """Chunks, codec, bound and options of a new variable."""
        if dims and self.chance(0.6):
            op["chunks"] = [self.rng.choice([n for n in self.lengths if unlimited or n <= length])
                            for length, unlimited in dims]
        if self.traits.lossy_codecs and self.chance(0.6):
            self.lossy(op, len(dims))
        elif self.traits.exact_codecs and self.chance(0.7):
            op["codec"] = self.rng.choice(self.traits.exact_codecs)
        if self.traits.settings and op["codec"] in _SETTINGS and self.chance(0.3):
            op["settings"] = dict(self.rng.choice(_SETTINGS[op["codec"]]))
            if "guard" in op["settings"] and op["bound"] and op["bound"][0] == "pw_rel":
                del op["settings"]  # Codecs refuse guards in combination with it.
        if self.traits.layouts and self.chance(0.15):
            op["options"] = self.layout(self.model.now.options)
        elif op["codec"] == "none" and not any(unlimited for _, unlimited in dims) and (
                "chunks" not in op and self.traits.layouts and self.chance(0.3)):
            op["options"] = "layout=contiguous"

    def lossy(self, op, n_dims):
        codec = self.rng.choice(self.traits.lossy_codecs)
        dtypes, modes, ranks = LOSSY_CODECS[codec]
        if op["dtype"] not in dtypes or n_dims not in ranks:
            return
        modes = [mode for mode in modes if mode in self.traits.bounds]
        if op["dtype"] not in self.traits.lossy_dtypes or not modes:
            return
        least = 4 if codec != "sperr" else 9 if self.traits.steps else 8
        if codec in ("zfp", "sperr", "sz3") and (
                "chunks" not in op or min(op["chunks"]) < least):
            return
        mode = self.rng.choice(modes)
        if op["dtype"][0] in "iu" and mode == "pw_rel":
            return
        op["codec"] = codec or None
        if mode == "none":
            return
        numbers = {"abs": (1e-6, 1e-3, 0.01, 0.5, 3.0), "rel": (1e-6, 1e-3, 0.1),
                   "psnr": (40.0, 80.0, 120.0), "pw_rel": (1e-6, 1e-3, 0.1)}
        op["bound"] = [mode, self.rng.choice(numbers[mode])]

    # --- values -----------------------------------------------------------------------------------

    def put(self, variable):
        op = {"op": "put", "name": variable.name, "key": self.key(variable, True),
              "rank": self.rank(), "values": self.values(variable)}
        style = self.rng.choice(["", "", "", "strided", "fortran", "wider"])
        if style and not (style == "wider" and op["values"]["kind"] == "bits"):
            op["style"] = style
        if self.traits.hows:
            op["how"] = self.rng.choice(self.traits.hows)
        self.add(op)

    def values(self, variable):
        of_range = variable.bound[0] in ("rel", "psnr")
        spec = {"kind": self.rng.choice(_KINDS_OF_RANGE if of_range else _KINDS),
                "seed": self.rng.randrange(1000)}
        spec["scale"] = self.rng.choice([1.0, 1.0, 0.01, 30.0, 1e4])
        spec["offset"] = self.rng.choice([0.0, 0.0, 280.0, -3.0])
        if variable.op.get("fill") is not None and self.chance(0.3):
            spec["with_fill"] = True
        return spec

    def key(self, variable, may_grow):
        """A random key. Dimensions grow by slices and indexes."""
        key = []
        whole = self.chance(0.25)
        elements = 1
        for name in variable.dims:
            length, unlimited = self.model.now.dims[name]
            grows = may_grow and unlimited and self.chance(0.6 if length else 0.95)
            room = length + self.rng.choice([1, 2, 3, 5, 9]) if grows else length
            if elements * room > self.elements_max:
                room = length
            part = self.part(room, whole, room == length)
            key.append(part)
            elements *= max(1, room)
        return key

    def part(self, room, whole, within):
        if room == 0:
            return ["s", 0, 0, 1]
        if whole:
            return ["s", 0, room, 1]
        kind = self.rng.choice("iisssssn" + ("p" if within else "s"))
        if kind == "i":
            return ["i", self.rng.randrange(room)]
        if kind == "p":
            at = [self.rng.randrange(room) for _ in range(self.rng.randint(1, min(room, 6)))]
            return ["p", at if self.chance(0.3) else sorted(set(at))]
        step = self.rng.choice([1, 1, 1, 1, 2, 3])
        count = self.rng.randint(1, (room - 1) // step + 1)
        start = self.rng.randint(0, room - 1 - (count - 1) * step)
        if kind == "n" and within and self.chance(0.5):
            return ["s", start + (count - 1) * step, count, -step]
        return ["s", start, count, step]


def generate(seed, door, traits, lengths=_LENGTHS, elements_max=_ELEMENTS_MAX):
    """The program for a seed. lengths: those of dimensions; 1 must be one of them.

    >>> from workload.doors import DOORS
    >>> one = generate("1", "array", DOORS["array"].TRAITS)
    >>> one == generate("1", "array", DOORS["array"].TRAITS)
    True
    """
    return Generator(seed, door, traits, lengths, elements_max).make()
