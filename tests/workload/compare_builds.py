"""Run the same inputs through two builds of Tailrace and compare the files: scripts/compare-files.

Inputs are the programs and the files of the workload. A process for each build runs them with that
build's libraries, programs and Python package, and reads the resulting files with its plug-ins.
"""

import argparse
import collections
import contextlib
import dataclasses
import json
import os
import pathlib
import pickle
import re
import shutil
import subprocess
import sys
import tempfile

import numpy as np

from .doors import DOORS, Died
from .generate import generate

_TESTS = pathlib.Path(__file__).resolve().parents[1]
#: Ranks of a job, and ranks of each simulated node; 0: all ranks are on one node.
_ALONE, _RANKS, _NODES = [(1, 0)], [(1, 0), (2, 0), (3, 0)], [(4, 2)]
_PROGRAMS = {"array": _ALONE, "array-mpi": _RANKS, "pnetcdf": _RANKS, "hdf5-mpi": _RANKS,
             "serial": _ALONE, "vol": _RANKS, "steps": _RANKS + _NODES, "fortran": _RANKS}
_FILES = {route: _RANKS + _NODES for route in (
    "lossless", "bounded", "as-stored", "cloud", "cmip7", "concat", "export")}
#: Sizes of every second program: datasets up to 16 times as large as a policy's limits.
_LARGE = {"lengths": (1, 3, 5, 16, 48, 101, 160, 4000), "elements_max": 60000}
#: Options for all datasets of a program that have none of their own; "": none.
_DEFAULTS = ("", "codec=trz,bound=abs=1e-3", "bound=rel=1e-3,allow-wide-bound=on", "codec=zstd",
             "chunk=4KiB")
#: Random files that are tried for an input, since HDF5 or a command refuses some.
_ATTEMPTS = 10
#: Runs of a case until one has no unexpected difference, such as remains of freed chunks.
_RUNS = 3
#: Differences that no commit has to explain. Several ranks or threads finish chunks in any order.
_EXPECTED = "places|trz format"


@dataclasses.dataclass(frozen=True)
class Case:
    """One input on its way through one door, or through one route of files."""

    seed: str
    door: str
    ranks: int
    ranks_per_node: int = 0

    def __str__(self):
        nodes = f" on {self.ranks // self.ranks_per_node} nodes" if self.ranks_per_node else ""
        return f"{self.seed} {self.door} {self.ranks}{nodes}"


def cases(numbers, doors, in_turn):
    """All cases, ordered by processes that must be started. in_turn: an input of a door has one
    number of ranks."""
    ways = {**_PROGRAMS, **_FILES}
    return [Case(str(n), door, *ranks) for door in doors for at, ranks in enumerate(ways[door])
            for n in numbers if not in_turn or n % len(ways[door]) == at]


# --- the process of one build ---------------------------------------------------------------------

class Performer:
    """Runs cases with one build's doors and commands."""

    def __init__(self, folder, inputs, renamed):
        self.folder, self.inputs, self.renamed = folder, inputs, renamed
        self.key, self.door = None, None

    def end(self):
        if self.door is not None:
            self.door.end()

    def perform(self, case, results):
        """Run one case. @returns how each of its steps ended; its files are in the folder."""
        os.environ.pop("TAILRACE_RANKS_PER_NODE", None)
        if case.ranks_per_node:
            os.environ["TAILRACE_RANKS_PER_NODE"] = str(case.ranks_per_node)
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        run = self.run_program if case.door in _PROGRAMS else self.run_command
        return run(case, results)

    def in_own_words(self, text):
        for new, old in self.renamed:
            text = text.replace(new, old)
        return text

    def run_program(self, case, results):
        traits = dataclasses.replace(DOORS[case.door].TRAITS, ranks=(case.ranks,), bad_puts=False,
                                     reads=False)
        options = [each for each in traits.file_options if each != "threads=2"]
        traits = dataclasses.replace(traits, file_options=tuple(options))
        number = int(case.seed)
        program = generate(case.seed, case.door, traits, **(_LARGE if number % 2 else {}))
        default = _DEFAULTS[number % len(_DEFAULTS)]
        for op in program.ops:
            if op["op"] == "open" and default:
                op["options"] = ",".join(filter(None, [op.get("options"), default]))
        ops = json.loads(self.in_own_words(json.dumps(program.ops)))
        key = (case.door, case.ranks, case.ranks_per_node)
        if key != self.key:
            self.end()
            self.key, self.door = key, DOORS[case.door](case.door, case.ranks, str(self.folder))
        door, path, ended = self.door, self.folder / "file.nc", []
        try:
            door.do({"op": "begin", "path": str(path), "ops": ops,
                     "defaults": [default] if default else []})
            for op in ops:
                answer = door.do(op)
                ended.append((op["op"], answer.get("error", ""), answer.get("text", "")))
                if "error" in answer:
                    break
                if op["op"] == "close":
                    shutil.copy(path, results / f"{len(ended)}.h5")
            door.do({"op": "reset"})
        except Died as death:
            ended.append(("died", death.what, str(death)[-500:]))
        return ended

    def run_command(self, case, results):
        from .files import make, routes  # noqa: PLC0415 - serve() loads h5py.
        performer = self

        class Recorded(routes.Route):
            """Stops a route after its first command, whose output is the result."""

            def command(self, *arguments):
                words = [performer.in_own_words(str(each)) for each in arguments]
                code, _, said = routes.run(*words, ranks=case.ranks)
                ended.append((" ".join(words), "" if code == 0 else f"exit {code}", said))

            def repack(self, asked, *arguments):
                source = self.folder / "in.h5"
                routes.taken_in(self.description, source)
                self.command("repack", source, "-o", self.folder / "out.h5", *arguments)

        def take_shared(description, path):
            """Copy the input, which both builds share."""
            kept = self.inputs / f"{description['seed']}.{path.name}"
            if not kept.exists():
                make.make_any(description, path)
                with contextlib.suppress(FileExistsError):
                    os.link(path, kept)
                path.unlink()
            shutil.copy(kept, path)
            return {}

        ended = []
        routes.taken_in = take_shared
        for attempt in range(_ATTEMPTS):
            seed = f"{case.seed}.{case.door}.{attempt}"
            rng = np.random.default_rng([ord(letter) for letter in seed])
            description = routes.describe_any(seed, case.door)
            for each in (description.get("file", {}), *description["objects"]):
                each.pop("times", None)  # Time stamps of two runs differ.
            with contextlib.suppress(make.Invalid):
                routes.ROUTES[case.door](Recorded(self.folder, description, rng, case.ranks))
            if (self.folder / "out.h5").exists():
                shutil.copy(self.folder / "out.h5", results / "1.h5")
                break
        return ended


def serve(work, inputs, renamed, core):
    """Perform cases: one line of JSON in, one out. On one core a rank has one encode thread, so
    that the order of its chunks is determined."""
    os.sched_setaffinity(0, {core})
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    plugins = os.environ.pop("HDF5_PLUGIN_PATH")
    import h5py  # noqa: PLC0415 - without HDF5_PLUGIN_PATH, by which it would load other plug-ins.
    import hdf5plugin  # noqa: F401, PLC0415 - registers its filters with h5py's HDF5.

    from .files import same_file  # noqa: PLC0415
    h5py.h5pl.prepend(str(pathlib.Path(os.environ["TAILRACE_H5TRZ"]).parent).encode())
    os.environ.update(HDF5_PLUGIN_PATH=plugins, TAILRACE_PLUGINS=plugins)
    performer = Performer(work, inputs, renamed)
    for line in sys.stdin:
        asked = json.loads(line)
        results = pathlib.Path(asked["results"])
        ended = performer.perform(Case(**asked["case"]), results)
        for path in sorted(results.glob("*.h5")):
            with open(f"{path}.facts", "wb") as file:
                pickle.dump(same_file.read(path), file)
        answers.write(json.dumps(ended) + "\n")
        answers.flush()
    performer.end()


# --- both builds ----------------------------------------------------------------------------------

class Build:
    """The process of one build. A case that ends it is a result, too."""

    def __init__(self, built, folder, renamed, core):
        self.built, self.folder, self.renamed = pathlib.Path(built).resolve(), folder, renamed
        self.core = core
        self._process = None

    def environment(self):
        """The workload's environment, with the Python package of the build's own source."""
        os.environ["TAILRACE"] = str(self.built / "bin" / "tailrace")
        for name in ("TAILRACE_ENGINE_DIR", "TAILRACE_H5TRZ"):  # They may name another build.
            os.environ.pop(name, None)
        from .harness import environment  # noqa: PLC0415
        cache = (self.built / "CMakeCache.txt").read_text()
        source = re.search(r"^CMAKE_HOME_DIRECTORY:\w+=(.*)$", cache, re.M)[1]
        found = environment()
        found["PYTHONPATH"] = found["PYTHONPATH"].replace(
            str(_TESTS.parent / "python"), str(pathlib.Path(source) / "python"))
        return found

    def lacks(self, door):
        """Reason why the build cannot run a door; empty if it can."""
        os.environ["TAILRACE"] = str(self.built / "bin" / "tailrace")
        return DOORS[door].missing() if door in DOORS else ""

    def begin(self, case, inputs):
        """Start a case."""
        if self._process is None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "workload.compare_builds", "--serve", self.folder / "work",
                 inputs, json.dumps(self.renamed), str(self.core)],
                env=self.environment(), text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=open(self.folder / "log", "a"))  # noqa: SIM115 - the process has it.
        results = self.folder / "results"
        shutil.rmtree(results, ignore_errors=True)
        results.mkdir()
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps({"case": dataclasses.asdict(case),
                                                  "results": str(results)}) + "\n")
            self._process.stdin.flush()

    def finish(self):
        """@returns how the case's steps ended, and its files' Facts by name."""
        results, line = self.folder / "results", self._process.stdout.readline()
        if not line:
            code = self._process.wait()
            self._process = None
            return [("died", f"exit {code}", "")], {}
        files = {path.name: pickle.loads(path.read_bytes())  # noqa: S301 - written by serve().
                 for path in sorted(results.glob("*.facts"))}
        return json.loads(line), files

    def end(self):
        if self._process is not None:
            self._process.stdin.close()
            self._process.wait()


def differences(old, new):
    """The differences of two results of Build.finish(), as pairs of class and text."""
    from .files.same_file import compare  # noqa: PLC0415
    (ended, files), (ended_new, files_new) = old, new
    failed, failed_new = ([each[1:] for each in one if each[1]] for one in (ended, ended_new))
    if [kind for kind, _ in failed] != [kind for kind, _ in failed_new]:
        return [("end", f"{failed or 'ok'} -> {failed_new or 'ok'}")]
    found = []
    for name in sorted(files.keys() | files_new.keys()):
        a, b = files.get(name), files_new.get(name)
        if a is None or b is None or isinstance(a, str) or isinstance(b, str):
            texts = [each if isinstance(each, str) else each and "readable" for each in (a, b)]
            if texts[0] != texts[1]:
                found.append(("file", f"{name}: {texts[0]} -> {texts[1]}"))
        else:
            found += compare(a, b)
    return found


def verdict_of(old, found):
    classes = collections.Counter(each for each, _ in found)
    if classes:
        return ", ".join(sorted(classes))
    (ended, files), failed = old, [kind for _, kind, _ in old[0] if kind]
    if failed and not files:
        return f"both end: {failed[0]}"
    return f"{len(files)} files equal" if ended and files else "no file"


def main(arguments=None):
    parser = argparse.ArgumentParser(prog="scripts/compare-files", description=(
        "Write files with two builds of Tailrace from the same inputs, and compare the files."))
    parser.add_argument("old", type=pathlib.Path, help="build folder, such as build/ci")
    parser.add_argument("new", type=pathlib.Path)
    parser.add_argument("--seeds", default="1-30", help="inputs, such as 1-30 or 7 (default 1-30)")
    parser.add_argument("--door", action="append", choices=[*_PROGRAMS, *_FILES],
                        help="repeatable; default: all")
    parser.add_argument("--in-turn", action="store_true",
                        help="one number of ranks for each input of a door (default: all numbers)")
    parser.add_argument("--renamed", nargs=2, action="append", default=[], metavar=("NEW", "OLD"),
                        help="text of an option, and the old build's text for it; repeatable")
    parser.add_argument("--expect", action="append", default=[], metavar="REGEX",
                        help=f"classes of differences that are intended, beside {_EXPECTED}")
    parser.add_argument("--long", type=int, default=3, help="texts of differences of a case")
    words = parser.parse_args(arguments)
    first, _, last = words.seeds.partition("-")
    expected = re.compile("|".join([_EXPECTED, *words.expect]))
    counts, n_unexpected, sizes = collections.Counter(), 0, [0, 0]
    with tempfile.TemporaryDirectory(prefix="compare_files_") as folder:
        folders = [pathlib.Path(folder, name) for name in ("inputs", "old", "new")]
        for each in folders:
            each.mkdir()
        cores = sorted(os.sched_getaffinity(0))
        builds = [Build(words.old, folders[1], words.renamed, cores[0]),
                  Build(words.new, folders[2], [], cores[-1])]
        doors = []
        for door in words.door or [*_PROGRAMS, *_FILES]:
            lacks = [each.lacks(door) for each in builds]
            if any(lacks):
                print(f"door {door} is left out: {lacks}", file=sys.stderr)
            else:
                doors.append(door)
        chosen = cases(range(int(first), int(last or first) + 1), doors, words.in_turn)
        for case in chosen:
            for _ in range(_RUNS):  # Runs of one build differ, too.
                for build in builds:
                    build.begin(case, folders[0])
                old, new = (build.finish() for build in builds)
                found = differences(old, new)
                others = [each for each in found if not expected.fullmatch(each[0])]
                if not others:
                    break
            for i, (_, files) in enumerate((old, new)):
                sizes[i] += sum(len(stored.data) for file in files.values()
                                if not isinstance(file, str) for stored in file.stored.values())
            verdict = verdict_of(old, found)
            counts[re.sub(r"\d+ files", "files", verdict)] += 1
            n_unexpected += bool(others)
            print(f"{case!s:32} {'DIFFERS: ' * bool(others)}{verdict}", flush=True)
            for which, text in (others or found)[:words.long]:
                print(f"    {which}: {text[:600]}", flush=True)
        for build in builds:
            build.end()
    print(f"\n{len(chosen)} cases; {sizes[0]} -> {sizes[1]} stored bytes")
    print("\n".join(f"{n:6} {verdict}" for verdict, n in counts.most_common()))
    print(f"{n_unexpected} cases differ beyond {expected.pattern}")
    return bool(n_unexpected)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]), json.loads(sys.argv[4]),
              int(sys.argv[5]))
    else:
        sys.exit(main())
