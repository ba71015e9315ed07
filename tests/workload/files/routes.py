"""The routes of a random file through Tailrace, and what each must preserve.

A route makes its input, runs commands, and returns findings: texts that describe errors. An input
that HDF5 itself refuses raises Invalid. If Tailrace may refuse an input, the route ends with
Tailrace's message.
"""

import contextlib
import copy
import os
import re
import shutil
import signal
import subprocess
import tempfile
import warnings

import numpy as np

from ..doors import SerialHdf5Door, mpi_environment, processes_of_session
from . import describe, make, netcdf
from .inventory import Inventory, Numbers, differences
from .make import Invalid
from .rules import Asked, Said, aliases_of, excuse, is_storage

_TIME_LIMIT_S = 120

#: Correct refusals, by features of the file.
_REFUSALS = re.compile(
    r"needs HDF5 [12]\.\d+ or newer|needs HDF5 2|filter (33333|32000)|"
    r"plug-in|unlimited dimension to append along|rows are appended along the first dimension only|"
    r"in the file itself|a growing field cannot be contiguous|"
    r"is lossy: encoding its decoded values|"
    r"its values are already lossy|it has no unlimited dimension, and its values differ|"
    r"it takes chunks of 1 to 4 dimensions|"  # By SZ3 and ZFP.
    r"contains references, which are not valid in another file|"
    r"references cannot be copied from a file with addresses of less than 8 bytes")


#: Rank counts of a route's commands, and their probabilities.
_RANKS, _SHARES = [1, 2, 3], [0.5, 0.25, 0.25]
#: mpiexec reports a rank killed by a signal as this number plus the signal's number.
_SIGNAL_CODES = 128


def ranks_of(seed):
    """The number of ranks for the commands of a route, chosen by the seed."""
    rng = np.random.default_rng([ord(letter) for letter in f"{seed} ranks"])
    return int(rng.choice(_RANKS, p=_SHARES)) if shutil.which("mpiexec") else 1


def run(*arguments, ranks=1, timeout=_TIME_LIMIT_S):
    """Run the command line. @returns its exit code, stdout and stderr; None for a hang."""
    launcher = ["mpiexec", "-n", str(ranks)] if ranks > 1 else []
    process = subprocess.Popen(
        [*launcher, os.environ["TAILRACE"], *map(str, arguments)], stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, errors="replace", text=True,
        start_new_session=True,
        env={**os.environ, **mpi_environment(tempfile.gettempdir()),
             "HDF5_PLUGIN_PATH": os.environ["TAILRACE_PLUGINS"]})
    try:
        out, said = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        # mpiexec creates a process group for each rank.
        for pid in [*processes_of_session(process.pid), process.pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.communicate()
        return None, "", ""
    return process.returncode, out, said


def wrong_end(code, said):
    """A finding if a command crashed or hung."""
    if code is None:
        return "hang"
    if code < 0:
        return f"signal {-code}"
    if code >= _SIGNAL_CODES:
        return f"signal {code - _SIGNAL_CODES} of a rank"
    if "Traceback" in said:
        return "traceback " + said[-300:]
    return ""


def taken_in(description, path):
    """Make the file and its inventory. @raises Invalid"""
    make.make_any(description, path)
    if description.get("form", "").startswith("NETCDF3"):
        return None
    try:
        return Inventory(path).facts
    except Exception as why:
        raise Invalid(f"HDF5 cannot read it: {why}") from why


class Route:
    """Outcome of one file: findings, and how the route ended (kept, refused, invalid)."""

    def __init__(self, folder, description, rng, ranks=1):
        self.folder = folder
        self.description = description
        self.rng = rng
        self.ranks = ranks
        self.findings = []
        self.end = "kept"

    def find(self, kind, text=""):
        self.findings.append(f"{kind}: {text}"[:1500])

    def command(self, *arguments):
        """Run a command that must succeed. @returns its output, or None on failure."""
        code, out, said = run(*arguments, ranks=self.ranks)
        wrong = wrong_end(code, said)
        words = f"on {self.ranks} ranks: {' '.join(map(str, arguments))} "
        if wrong:
            self.find(wrong, words + said[-500:])
        elif code != 0:
            if code not in (2, 3) or not _REFUSALS.search(said):
                self.find(f"refused by {arguments[0]}", f"{code} {words}{said[:600]}")
            self.end = "refused"
        else:
            heard = Said(said)
            heard.command = f"{' '.join(map(str, arguments[4:]))} on {self.ranks} ranks"
            return heard
        return None

    def audit(self, before, output, asked, said):
        """Compare the output with the input. @returns the differences without a remark."""
        try:
            after = Inventory(output).facts
        except Exception as why:  # noqa: BLE001  h5py raises many types for a damaged file.
            self.find("unreadable output", str(why))
            return None
        said.aliases = aliases_of(before)
        silent = remarked = 0
        for difference in differences(before, after):
            why = excuse(difference, before, after, asked, said)
            path, aspect, a, b = difference
            if not why:
                silent += 1
                self.find(f"silent {aspect if path != '/' else 'of the file: ' + aspect}",
                          f"{path}: {a!r:.300} -> {b!r:.300}; {said.command}; "
                          f"said {said.text[:300]}")
            elif why == "remark" and not is_storage(*difference):
                remarked += 1
        return silent, remarked

    def verify(self, original, copy, equal, *arguments):
        """equal: True, False, or None if verify may report either."""
        code, out, said = run("verify", original, copy, *arguments, ranks=self.ranks)
        wrong = wrong_end(code, said)
        if wrong:
            self.find(f"verify {wrong}", said[-500:])
        elif code != 0 and _REFUSALS.search(said + out):
            pass
        elif equal and code != 0:
            self.find("verify refuses",
                      f"on {self.ranks} ranks: exit {code} {said[-600:]} {out[-600:]}")
        elif equal is False and code == 0:
            self.find("verify overlooks", f"{self.description.get('mutation')}")

    def repack(self, asked, *arguments):
        source, target = self.folder / "in.h5", self.folder / "out.h5"
        before = taken_in(self.description, source)
        said = self.command("repack", source, "-o", target, *arguments)
        if said is None:
            return
        if before is None:
            self.verify(source, target, True)
            return
        audited = self.audit(before, target, asked, said)
        if audited is not None:
            silent, remarked = audited
            follows = "--follow-external" in arguments
            self.verify(source, target, None if silent or remarked or follows else True)


def _codec(rng, lossy=False):
    names = ["deflate", "none", "zstd", "trz", "portable", "xor", "deflate,checksum=on"]
    return str(rng.choice(names if not lossy else ["trz", "portable", "sz3", "auto"]))


def lossless(route):
    rng, arguments, asked = route.rng, [], Asked()
    layout = str(rng.choice(["", "", "", "", "front", "dense", "claimed", "contiguous", "arena"]))
    asked.contiguous = layout == "contiguous"
    if asked.contiguous:
        arguments += ["--codec", "none"]
    elif rng.integers(2):
        arguments += ["--codec", _codec(rng)]
    if layout:
        arguments += ["--layout", layout]
    if rng.integers(4) == 0 and not asked.contiguous:
        arguments += ["--chunk", str(rng.choice(["4KiB", "64KiB", "1MiB"]))]
        asked.chunks = True
    route.repack(asked, *arguments)


def bounded(route):
    mode = str(route.rng.choice(["abs", "rel"]))
    number = float(route.rng.choice([1e-1, 1e-3, 1e-6]))
    arguments = ["--bound", f"{mode}={number}", "--allow-wide-bound"]
    if route.rng.integers(3):
        arguments += ["--codec", _codec(route.rng, lossy=True)]
    if route.rng.integers(3) == 0:
        arguments += ["--roles", "off"]
    route.repack(Asked(bound=(mode, number)), *arguments)


def as_stored(route):
    route.repack(Asked(as_stored=True), "--publish=as-stored")


def cloud(route):
    route.repack(Asked(chunks=True), "--publish=cloud")


def cmip7(route):
    route.repack(Asked(chunks=True), "--publish=cmip7")


def pairs(route):
    """Verify two files that differ at one place or nowhere."""
    original, other = route.folder / "in.h5", route.folder / "other.h5"
    before = taken_in(route.description, original)
    changed = describe.mutated(route.description, route.rng)
    route.description["mutation"] = changed.get("mutation")
    after = taken_in(changed, other)
    found = [each for each in differences(before, after) if not is_storage(*each)]
    route.description["mutation"].append(str(found)[:600])
    lies_elsewhere = any(each.get("layout") in ("external", "virtual")
                         for each in route.description["objects"])
    route.verify(original, other, not found if found or not lies_elsewhere else None)


def _several(description, rng):
    """Descriptions of files with one schema, but other values and numbers of rows."""
    made = [description]
    for k in range(1, int(rng.integers(1, 4))):
        other = copy.deepcopy(description)
        for each in other["objects"]:
            if each["op"] == "dataset":
                each["fill_seed"] = each["seed"] + 1
                each["seed"] += 1000 * k
                grows = each.get("limits", [0])[:1] == [-1]
                if grows and len(each["written"]) and rng.integers(2):
                    rows = int(rng.integers(0, 2 * each["space"][0] + 2))
                    whole = each["written"][0] == each["space"][0]
                    each["space"][0] = rows
                    each["written"][0] = rows if whole else min(each["written"][0], rows)
                    each.pop("masked", None)
        made.append(other)
    return made


def _joined(files):
    """The expected facts of a concatenation of the files."""
    expected = copy.deepcopy(files[0])
    for path, facts in expected.items():
        shape = facts.get("shape")
        if facts.get("kind") != "dataset" or not isinstance(shape, tuple) or not shape:
            continue
        parts = [each[path] for each in files]
        rows = sum(each["shape"][0] for each in parts)
        facts["shape"] = (rows, *shape[1:])
        if facts["limits"][0] != 2**64 - 1:
            facts["limits"] = (max(rows, facts["limits"][0]), *facts["limits"][1:])
        values = [each["values"] for each in parts]
        if all(isinstance(each, Numbers) for each in values if each != ()):
            arrays = [each.array for each in values if each != ()]
            facts["values"] = Numbers(np.concatenate(arrays)) if arrays else ()
        elif all(isinstance(each, (tuple, bytes)) for each in values):
            facts["values"] = tuple(each for part in values for each in part)
        for key in {"stored chunks", "stored"} & facts.keys():
            facts[key] = max(each.get(key, 0) for each in parts)
    return expected


def concat(route):
    """Join one to three files of one schema."""
    if route.description["kind"] == "netcdf":
        raise Invalid("its own rules")
    inputs, facts = [], []
    for i, each in enumerate(_several(route.description, route.rng)):
        inputs.append(route.folder / f"in{i}.h5")
        facts.append(taken_in(each, inputs[-1]))
    target = route.folder / "out.h5"
    more = ["--on-different", "keep-first"] if route.rng.integers(2) else []
    said = route.command("concat", *inputs, "-o", target, *more)
    if said is None:
        return
    scales = any(each["op"] == "scale" for each in route.description["objects"])
    asked = Asked(chunks=True, rows=True)
    if not scales:
        audited = route.audit(_joined(facts), target, asked, said)
        if audited is None:
            return
    code, out, words = run("verify", "--concat", target, *inputs, *more, ranks=route.ranks)
    wrong = wrong_end(code, words)
    named = re.search(r"cannot (be copied|be resolved|write several)", said.text)
    if wrong or code != 0 and not named and not _REFUSALS.search(words + out):
        route.find(f"verify --concat {wrong or code}", words[-600:] + out[-600:])


def export(route):
    """Write plain HDF5, and one dataset as .npy."""
    source, target = route.folder / "in.h5", route.folder / "out.h5"
    before = taken_in(route.description, source)
    said = route.command("export", source, "-o", target)
    if said is None or before is None:
        return
    _export_part(route, before, source)
    audited = route.audit(before, target, Asked(contiguous=True, chunks=True), said)
    if audited is not None:
        route.verify(source, target, None if any(audited) else True)
    for path, facts in before.items():
        values = facts.get("values")
        if not isinstance(values, Numbers) or values.array.size == 0 or "external" in facts or (
                values.array.dtype == "f2" or facts["layout"] == "virtual"):
            continue
        name = "".join("\\" + letter if letter in "*?[]:\\" else letter for letter in path)
        array = route.folder / "out.npy"
        # An object has the name under which the file's own order reaches it first.
        first = facts["link"] == "hard" and not any("same as" in each.get("link", "")
                                                    for each in before.values())
        if first and route.command("export", source, "-o", array, "--only", name) is not None:
            found = np.load(array)
            if found.dtype != values.array.dtype or found.tobytes() != values.array.tobytes():
                route.find("wrong .npy", f"{path}: {found.ravel()[:4]} {values}")
        return


def _export_part(route, before, source):
    """Check that a part without the input's user block comes with a remark."""
    part = route.folder / "part.nc"
    arguments = ["export", source, "-o", part, "--slab", "0:1"]
    code, _, said = run(*arguments, ranks=route.ranks)
    wrong = wrong_end(code, said)
    if wrong:
        route.find(wrong, " ".join(map(str, arguments)) + said[-500:])
    elif code == 0 and before["/"]["user block"] and "user block" not in said:
        route.find("a part without the user block", said)


def readers(route):
    """Compare tailrace.open, and xarray with the engine tailrace, with h5py and netCDF4."""
    source = route.folder / "in.nc"
    if route.description["kind"] == "netcdf":
        if route.description["form"].startswith("NETCDF3"):
            raise Invalid("netCDF classic is read by repack alone")
        make.make_any(route.description, source)
        _compare_xarray(route, source)
    before = taken_in(route.description, source)
    import tailrace  # noqa: PLC0415
    try:
        with tailrace.open(source) as file:
            for path, facts in before.items():
                values = facts.get("values")
                lengths = "but not a netCDF variable" in str(facts.get("attribute NAME"))
                if isinstance(values, Numbers) and values.array.dtype != "f2" and not lengths and (
                        facts["layout"] != "virtual" and "external" not in facts):
                    _compare_array(route, path, file, facts, values)
    except Exception as why:  # noqa: BLE001
        if not _REFUSALS.search(str(why)):
            route.find("tailrace.open", f"{type(why).__name__}: {why}")
        route.end = "refused"


def _compare_array(route, path, file, facts, values):
    try:
        found = np.asarray(file[path][...])
    except Exception as why:  # noqa: BLE001
        if not _REFUSALS.search(str(why)):
            route.find("tailrace.open cannot read", f"{path}: {type(why).__name__}: {why}")
        return
    if found.shape != (facts["shape"] if facts["shape"] != "scalar" else ()):
        if route.description["kind"] == "netcdf":
            return
        route.find("tailrace.open: shape", f"{path}: {found.shape} {facts['shape']}")
    elif found.astype(found.dtype.newbyteorder("=")).tobytes() != values.array.tobytes():
        route.find("tailrace.open: values", f"{path}: {found.ravel()[:4]} {values}")


def _compare_xarray(route, source):
    import xarray  # noqa: PLC0415
    groups = ["/"] + [each["path"] for each in route.description["objects"]
                      if each["op"] == "group"]
    for group in groups:
        keys = {"group": group, "decode_times": False}
        if route.rng.integers(2):
            keys["mask_and_scale"] = False
        try:
            with xarray.open_dataset(source, engine="netcdf4", **keys) as expected:
                expected.load()
        except Exception as why:  # noqa: BLE001
            raise Invalid(f"xarray: {why}") from why
        try:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always")
                with xarray.open_dataset(source, engine="tailrace", **keys) as found:
                    found.load()
        except Exception as why:  # noqa: BLE001
            route.find("xarray engine", f"{keys}: {type(why).__name__}: {why}")
            continue
        for name in sorted(set(expected.variables) | set(found.variables)):
            if any(name in str(each.message) for each in said):
                continue
            if name not in found.variables or name not in expected.variables:
                route.find("xarray: variables", f"{group} {name} is in one only")
                continue
            a, b = expected.variables[name], found.variables[name]
            if a.dims != b.dims or a.dtype != b.dtype or not _same(a.values, b.values):
                route.find("xarray: values", f"{keys} {name}: {a.dims} {a.dtype} "
                           f"{a.values!r:.300} -> {b.dims} {b.dtype} {b.values!r:.300}")
                continue
            # Engines disagree on whether this is an attribute.
            b.attrs.pop("least_significant_digit", None)
            if set(a.attrs) != set(b.attrs) or any(
                    not _same(a.attrs[key], b.attrs[key]) for key in a.attrs):
                route.find("xarray: attributes", f"{group} {name}: {a.attrs} -> {b.attrs}")
        if set(expected.attrs) != set(found.attrs):
            route.find("xarray: attributes", f"{group}: {expected.attrs} -> {found.attrs}")


def _same(a, b):
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        return False
    if a.dtype.kind in "fc":
        return np.array_equal(a, b, equal_nan=True)
    return all(np.array_equal(x, y) for x, y in zip(a.ravel(), b.ravel()))


def serial(route):
    """h5py on serial HDF5, with libtailrace_hdf5_serial.so preloaded and without it."""
    if SerialHdf5Door.missing():
        raise Invalid(SerialHdf5Door.missing())
    source = route.folder / "in.h5"
    taken_in(route.description, source)
    door = SerialHdf5Door("serial")
    try:
        plain = door.environment()
        preloaded = {**plain, "LD_PRELOAD": ":".join(map(str, door.preloaded()))}
    finally:
        door.end()
    words = ["/usr/bin/python3", "-m", "workload.files.reading", str(source)]
    said = []
    for each in (plain, preloaded):
        done = subprocess.run(words, capture_output=True, text=True, env=each, check=False,
                              timeout=_TIME_LIMIT_S, errors="replace")
        said.append((done.returncode, done.stdout))
        if done.returncode < 0:
            if each is plain:
                raise Invalid("h5py crashes without us")
            route.find(f"preload signal {-done.returncode}", done.stderr[-300:])
            return
    if said[0] != said[1]:
        lines = [line.splitlines() for _, line in said]
        differ = [pair for pair in zip(*lines) if pair[0] != pair[1]]
        route.find("preload", f"{differ[:3]} {[code for code, _ in said]}")


ROUTES = {"lossless": lossless, "bounded": bounded, "as-stored": as_stored, "cloud": cloud,
          "cmip7": cmip7, "pairs": pairs, "concat": concat, "export": export, "readers": readers,
          "serial": serial}


def describe_any(seed, route):
    """The description of a file for a route: netCDF in one of four, or if the route reads
    netCDF."""
    rng = np.random.default_rng([ord(letter) for letter in seed + route])
    share = {"readers": 0.7, "cmip7": 0.5, "concat": 0, "pairs": 0, "serial": 0.2}.get(route, 0.25)
    return (netcdf if rng.random() < share else describe).describe(seed)


def judge(description, route, seed, folder):
    """Send one file on one route. @returns its outcome and its findings."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    one = Route(folder, description, np.random.default_rng([ord(letter) for letter in seed]),
                ranks_of(seed))
    try:
        ROUTES[route](one)
    except Invalid as why:
        return "invalid", [], str(why)
    return one.end, one.findings, ""
