"""Jobs of the campaign: their programs, promises, and the expected content of their files.

A Job makes its inputs and old files, and runs under the recorder. It knows what a reader must find
for each number of committed steps. Expected values are computed here, never taken from a run.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import textwrap
import zlib

import h5py
import numpy as np

SHAPE = (32, 64)
WIDTH = 256


def mixed(count, step, f):
    i = np.arange(count, dtype=np.uint64)
    key = (i + np.uint64(1000003 * step + 7919 * f)) * np.uint64(2654435761)
    return ((key & np.uint64(0xFFFFFFFF)) >> np.uint64(16)).astype("f4")


def field(step, f):
    return mixed(SHAPE[0] * SHAPE[1], step, f).reshape(SHAPE)


def entry(values):
    """Return the description of a dataset that campaign_judge prints: its shape and checksum."""
    values = np.ascontiguousarray(values)
    shape = "".join(f"{n}x" for n in values.shape) or "-"
    return shape, f"{zlib.crc32(values.tobytes()):08x}"


class Expectation:
    """Expected content of a file when n steps are committed.

    levels[path][entry]: the greatest number of steps with which the dataset may have this entry.
    since[path]: the number of steps from which on the dataset must exist. sets: lists of paths, of
    which all or none exist. old: datasets of the file that had the name before, or None."""

    def __init__(self, levels, since, sets=(), old=None, even=False):
        self.levels, self.since, self.sets, self.old = levels, since, sets, old
        self.even = even    # all datasets must have one level, since the job commits once

    def damage(self, seen, committed):
        """Return a phrase that says what is wrong with the file's state `seen`, or ""."""
        if seen == "absent":
            return "is not there" if committed or self.old is not None else ""
        if seen == "closed":
            return "does not open"
        if seen == self.old:
            return "is the old one" if committed else ""
        for path, found in seen.items():
            if found is None:
                return f"{path} cannot be read"
            levels = self.levels.get(path)
            if levels is not None and levels.get(found, -1) < committed:
                return f"{path} {'is older' if found in levels else 'has wrong values'}: {found}"
        for path, since in self.since.items():
            if since <= committed and path not in seen:
                return f"{path} is missing"
        return ""

    def half(self, seen):
        """Return True if readers see half a step."""
        if not isinstance(seen, dict) or seen == self.old:
            return False
        if self.even:
            found = [self.levels[path].get(seen.get(path)) for path in self.levels]
            return len(set(found)) > 1
        return any(0 < sum(path in seen for path in paths) < len(paths) for paths in self.sets)


def steps_expected(story, n_steps, old=None):
    endless = 1 << 30
    if story == "growing":
        levels = {f"/{name}": {entry(np.stack([field(s, f) for s in range(n)])): n
                               for n in range(1, n_steps + 1)} for f, name in enumerate("ab")}
        return Expectation(levels, {path: 1 for path in levels}, [], old)
    sets = [[f"/step_{s}/{name}" for name in "ab"] for s in range(n_steps)]
    levels = {path: {entry(field(s, f)): endless}
              for s, paths in enumerate(sets) for f, path in enumerate(paths)}
    return Expectation(levels, {path: s + 1 for s, paths in enumerate(sets) for path in paths},
                       sets, old)


def records_expected(n_steps):
    levels = {"/a": {entry(np.stack([mixed(WIDTH, s, 0) for s in range(n)])): n
                     for n in range(1, n_steps + 1)},
              "/b": {entry((np.arange(WIDTH) + s).astype("i4")): s + 1 for s in range(n_steps)}}
    # A record that is being written may have fill values in one of the variables.
    return Expectation(levels, {"/a": 1, "/b": 1})


def flushes_expected(n_steps):
    expected = records_expected(n_steps)
    expected.levels["/few"] = {entry(10.0 * s + np.arange(10)): s + 1 for s in range(n_steps)}
    expected.since["/few"] = 1
    for step in range(n_steps):
        path = f"/step_{step}/c"
        expected.levels[path] = {entry(mixed(WIDTH, step, 0)): 1 << 30}
        expected.since[path] = step + 1
    return expected


class Programs:
    """Paths of the build's programs and libraries that the campaign runs."""

    def __init__(self, tailrace):
        build = pathlib.Path(tailrace).resolve().parents[1]
        self.tailrace = build / "bin" / "tailrace"
        self.writer = build / "bin" / "campaign_writer"
        self.records = build / "bin" / "campaign_records"
        self.judge = build / "bin" / "campaign_judge"
        self.recorder = build / "lib" / "libcampaign_recorder.so"
        self.build = build
        listed = build / "hdf5_programs.txt"  # CMake's list of the HDF5s that test programs use.
        self.hdf5s = listed.read_text().split() if listed.exists() else []

    def flushes(self, end):
        """Return the path of write_flushes for the HDF5 with this suffix."""
        return self.build / "bin" / f"hdf5_programs{end}" / "write_flushes"

    def preloaded_front(self, end):
        return self.build / "lib" / f"libtailrace_hdf5{end}.so"

    def connector(self, end):
        return self.build / "lib" / "hdf5" / f"vol{end}" / f"libtailrace_vol{end}.so"

    def missing(self):
        return [path for path in (self.tailrace, self.writer, self.judge, self.recorder)
                if not path.exists()]


class Job:
    """A run in a folder of its own: FOLDER/out has its output, FOLDER/in its inputs."""

    name_of_file = "run.h5"
    first = 0              # number of steps that are committed before the job begins
    journal = False        # each in-place write has a journal entry
    synced = True          # if False, the job promises nothing about a power loss
    marks = True           # reports its committed steps; if False, its end commits everything
    keeps_partial = False  # an interrupted run leaves a partial file, which can be resumed
    ours = True            # if False, HDF5 itself writes the steps, for comparison
    may_fail = False       # the exit status describes the file, and may be nonzero
    is_program = False     # a program on the API of PnetCDF or HDF5, which prints its own errors

    def __init__(self, name, ranks=1, nodes=0):
        self.name, self.ranks, self.nodes = name, ranks, nodes

    def is_built(self, programs):
        return True

    def preloaded(self, programs):
        return [programs.recorder]

    def prepare(self, programs, folder):
        """Fill the folder; set self.expectation."""

    def words(self, programs, folder):
        raise NotImplementedError

    def run(self, programs, folder, log, fault="", timeout=60):
        """Run under the recorder. Return the completed process, or None after the timeout."""
        more = {"LD_PRELOAD": ":".join(map(str, self.preloaded(programs))),
                "CAMPAIGN_FOLDER": folder / "out", "CAMPAIGN_LOG": log}
        if fault:
            more["CAMPAIGN_FAULT"] = fault
            if fault.startswith("memory") or fault.startswith("count"):
                more["CAMPAIGN_MEMORY"] = "1"
            if fault.startswith("count"):
                more["CAMPAIGN_SITES"] = "1"
        if self.nodes:
            more["TAILRACE_RANKS_PER_NODE"] = self.nodes
        words = ["env", *(f"{key}={value}" for key, value in more.items()),
                 *map(str, self.words(programs, folder))]
        if self.ranks > 1:
            words = ["mpiexec", "-n", str(self.ranks), *words]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   start_new_session=True, env=environment(folder))
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.communicate()
            return None
        return subprocess.CompletedProcess(words, process.returncode, out, err)


def environment(folder):
    sessions = folder / "sessions"
    sessions.mkdir(exist_ok=True)
    # MPI's own files go to tmpfs. The names of Open MPI 4 come first, then those of Open MPI 5.
    return {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_rmaps_base_oversubscribe": "1", "OMPI_MCA_mpi_yield_when_idle": "1",
            "OMPI_MCA_orte_tmpdir_base": str(sessions), "PRTE_MCA_prte_tmpdir_base": str(sessions),
            "OMPI_MCA_btl_vader_single_copy_mechanism": "none",
            "OMPI_MCA_hwloc_base_binding_policy": "none"}


def read(path):
    """Read a file's datasets by stock HDF5; return what campaign_judge prints of them."""
    found = {}
    with h5py.File(path, "r") as file:
        file.visititems(lambda name, item: found.update({"/" + name: entry(item[()])})
                        if isinstance(item, h5py.Dataset) else None)
    return found


class Steps(Job):
    """Steps that the Writer writes, in any mode."""

    def __init__(self, name, story="groups", options="", first=0, n_steps=6, old=False,
                 foreign=False, **more):
        super().__init__(name, **more)
        self.foreign = foreign    # stock HDF5 has written the first steps
        self.story, self.options, self.first, self.n_steps = story, options, first, n_steps
        self.old, self.journal = old, "journal=on" in options
        self.synced = "fsync=off" not in options

    def writer_words(self, programs, folder, first, n_steps, options):
        common = "chunk=16x20,buffer=8192,threads=1,memory=64MiB"
        return [programs.writer, folder / "out" / self.name_of_file, self.story, first, n_steps,
                f"{common},{options}" if options else common]

    def prepare(self, programs, folder):
        path, old = folder / "out" / self.name_of_file, None
        if self.old:
            with h5py.File(path, "w") as file:
                file["precious"] = np.arange(100)
            old = read(path)
        elif self.foreign:
            with h5py.File(path, "w") as file:
                for step in range(self.first):
                    for f, name in enumerate("ab"):
                        file.create_dataset(f"step_{step}/{name}", data=field(step, f),
                                            chunks=(16, 20), compression="gzip")
        elif self.first:
            words = self.writer_words(programs, folder, 0, self.first, "")
            subprocess.run(list(map(str, words)), check=True, env=environment(folder))
        self.expectation = steps_expected(self.story, self.n_steps, old)

    def words(self, programs, folder):
        options = self.options + (",replace=on" if self.old else "")
        return self.writer_words(programs, folder, self.first, self.n_steps, options.strip(","))


class Records(Job):
    """Records that the PnetCDF front end writes, which makes array files."""

    name_of_file = "run.nc"
    is_program = True

    def __init__(self, name, first=0, n_steps=5, **more):
        super().__init__(name, **more)
        self.first, self.n_steps = first, n_steps

    def is_built(self, programs):
        return programs.records.exists()

    def prepare(self, programs, folder):
        if self.first:
            subprocess.run(list(map(str, [programs.records, folder / "out" / self.name_of_file,
                                          self.first, 0])), check=True, env=environment(folder))
        self.expectation = records_expected(self.n_steps)

    def words(self, programs, folder):
        return [programs.records, folder / "out" / self.name_of_file, self.n_steps, self.first]


class Hdf5Program(Job):
    """A program on parallel HDF5. After a crash, its last H5Fflush is in the file (docs/hdf5.md).

    It uses the system's HDF5 with libtailrace_hdf5 preloaded, or an HDF5 of the major version
    `connector_of` with our VOL connector."""

    name_of_file = "flushes.h5"
    is_program = True

    def __init__(self, name, first=0, n_steps=5, options="threads=1", connector_of=0, **more):
        super().__init__(name, **more)
        self.first, self.n_steps, self.options = first, n_steps, options
        self.connector_of = connector_of
        self.journal = "journal=on" in options

    def hdf5(self, programs):
        """Return the suffix of names that belong to the job's HDF5; None if it is not built."""
        if not self.connector_of:
            return ""
        ends = [end for end in programs.hdf5s if end.startswith(f"-{self.connector_of}.")]
        return next((end for end in ends if programs.connector(end).exists()), None)

    def is_built(self, programs):
        end = self.hdf5(programs)
        if end is None or not programs.flushes(end).exists():
            return False
        return self.connector_of > 0 or programs.preloaded_front(end).exists()

    def preloaded(self, programs):
        # The recorder comes first, so that calls of our library pass through it.
        front = [] if self.connector_of else [programs.preloaded_front("")]
        return [programs.recorder, *front]

    def program_words(self, programs, folder, n_steps):
        end = self.hdf5(programs)
        connector = (["HDF5_VOL_CONNECTOR=tailrace",
                      f"HDF5_PLUGIN_PATH={programs.connector(end).parent}"]
                     if self.connector_of else [])
        beside = ["BESIDE=1"] if "mode=async" in self.options else []
        return ["env", f"FLUSHES={n_steps}", f"TAILRACE_OPTIONS={self.options}", *beside,
                *connector, programs.flushes(end), folder / "out", "flushes"]

    def prepare(self, programs, folder):
        if self.first:
            _, *front = self.preloaded(programs)
            words = ["env", f"LD_PRELOAD={':'.join(map(str, front))}",
                     *self.program_words(programs, folder, self.first)]
            subprocess.run(list(map(str, words)), check=True, env=environment(folder))
        self.expectation = flushes_expected(self.n_steps)

    def words(self, programs, folder):
        return self.program_words(programs, folder, self.n_steps)


class Command(Job):
    """A command (repack, concat, export) that writes one file at its end, or none."""

    marks = False

    def __init__(self, name, verb, scale=1, **more):
        super().__init__(name, **more)
        self.verb, self.scale = verb, scale
        self.keeps_partial = verb.startswith("concat") and "-a" not in verb.split()
        self.journal = "--journal" in verb

    def prepare(self, programs, folder):
        values = {}
        for f in range(3):
            with h5py.File(folder / "in" / f"{f}.h5", "w") as file:
                for name, rows in (("g/u", 150 + 40 * f), ("g/v", 37), ("w", 64), ("empty", 0)):
                    rows *= self.scale
                    data = mixed(4 * rows, f, len(name)).reshape(rows, 4)
                    data = data.astype("i4") if name == "w" else data
                    file.create_dataset(name, data=data, maxshape=(None, 4), chunks=(32, 4),
                                        compression="gzip")
                    values.setdefault("/" + name, []).append(data)
        path = folder / "out" / self.name_of_file
        n = 1 if self.verb.split()[0] in ("repack", "export") else 3
        levels = {p: {entry(np.concatenate(parts[:n])): 1} for p, parts in values.items()}
        old = None
        if "-a" in self.verb.split():
            self.command(programs, folder, "concat -o OUT IN0")
            old = read(path)
            levels = {p: {old[p]: 0, **levels[p]} for p in levels}
        self.expectation = Expectation(levels, {p: 1 for p in levels}, [], old, even=True)

    def command(self, programs, folder, text):
        words = [str(programs.tailrace), *self.filled(folder, text)]
        return subprocess.run(words, check=True, capture_output=True, env=environment(folder))

    def filled(self, folder, text):
        names = {"OUT": folder / "out" / self.name_of_file,
                 **{f"IN{f}": folder / "in" / f"{f}.h5" for f in range(3)}}
        return [str(names.get(word, word)) for word in text.split()]

    def words(self, programs, folder):
        return [programs.tailrace, *self.filled(folder, self.verb)]


class Recover(Job):
    """`tailrace recover --apply` on the files that a crash has left."""

    may_fail = True

    def __init__(self, name, job, committed, state):
        super().__init__(name)
        self.name_of_file, self.first, self.state = job.name_of_file, committed, state
        self.journal, self.keeps_partial = job.journal, job.keeps_partial
        self.synced = job.synced
        self.expectation = job.expectation

    def prepare(self, programs, folder):
        for name, content in self.state.items():
            (folder / "out" / name).write_bytes(content)

    def words(self, programs, folder):
        return [programs.tailrace, "recover", "--apply", folder / "out" / self.name_of_file]


class PlainHdf5(Steps):
    """The steps of Steps, written by h5py with a flush and an fsync after each step."""

    ours = False
    text = """
        import ctypes, os, sys
        sys.path.insert(0, sys.argv[5])
        import h5py, jobs
        path, story, first, n_steps = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
        mark = ctypes.CDLL(None).campaign_mark
        mark.argtypes = [ctypes.c_uint64]
        with h5py.File(path, "a") as file:
            for step in range(first, n_steps):
                for f, name in enumerate("ab"):
                    more = dict(chunks=(16, 20), compression="gzip", shuffle=True)
                    if story == "growing":
                        more.update(chunks=(1, 16, 20), maxshape=(None, *jobs.SHAPE))
                        data = file.require_dataset(name, (step, *jobs.SHAPE), "f4", **more) \\
                            if step == first else file[name]
                        data.resize(step + 1, 0)
                        data[step] = jobs.field(step, f)
                    else:
                        file.create_dataset(f"step_{step}/{name}", data=jobs.field(step, f), **more)
                file.flush()
                os.fsync(file.id.get_vfd_handle())
                mark(step + 1)
    """

    def words(self, programs, folder):
        return [sys.executable, "-c", textwrap.dedent(self.text),
                folder / "out" / self.name_of_file, self.story, self.first, self.n_steps,
                pathlib.Path(__file__).parent]


def all_jobs():
    """Return jobs of every writer, in every mode, on 1 to 4 ranks."""
    growing = {"story": "growing"}
    jobs = [
        Steps("sync"), Steps("sync, 2 ranks", ranks=2),
        Steps("sync, 4 ranks on 2 nodes", ranks=4, nodes=2),
        Steps("sync, 16 steps", n_steps=16),
        Steps("added to HDF5's, 2 ranks", first=2, foreign=True, ranks=2),
        Steps("sync, growing", **growing), Steps("sync, growing, 3 ranks", ranks=3, **growing),
        Steps("async, 2 ranks", options="mode=async", ranks=2),
        Steps("async, growing", options="mode=async", **growing),
        Steps("in_situ", options="mode=in_situ"),
        Steps("in_situ, growing, 2 ranks", options="mode=in_situ", ranks=2, **growing),
        Steps("in_situ, 4 ranks", options="mode=in_situ", ranks=4),
        Steps("journal", options="journal=on"),
        Steps("journal, growing, 2 ranks", options="journal=on", ranks=2, **growing),
        Steps("journal, async, growing", options="journal=on,mode=async", **growing),
        Steps("journal, added to", options="journal=on", first=2),
        Steps("no fsync, 2 ranks", options="fsync=off", ranks=2),
        Steps("replace, 2 ranks", old=True, ranks=2),
        Steps("replace, in_situ", old=True, options="mode=in_situ"),
        Steps("added to, 2 ranks", first=2, ranks=2),
        Steps("added to, async, growing", first=2, options="mode=async", **growing),
        Steps("layout arena, 2 ranks", options="layout=arena", ranks=2),
        Steps("layout contiguous", options="layout=contiguous,codec=none"),
        Steps("layout dense, 3 ranks", options="layout=dense", ranks=3),
        Records("records"), Records("records, 2 ranks", ranks=2),
        Records("records, 4 ranks", ranks=4), Records("records, added to", first=2, ranks=2),
        Hdf5Program("HDF5 program"), Hdf5Program("HDF5 program, 2 ranks", ranks=2),
        Hdf5Program("HDF5 program, 3 ranks", ranks=3),
        Hdf5Program("HDF5 program, 4 ranks on 2 nodes", ranks=4, nodes=2),
        Hdf5Program("HDF5 program, added to", first=2, ranks=2),
        Hdf5Program("HDF5 program, journal, 2 ranks", options="threads=1,journal=on", ranks=2),
        Hdf5Program("HDF5 program, async", options="threads=1,mode=async"),
        Hdf5Program("HDF5 program, async, 2 ranks", options="threads=1,mode=async", ranks=2),
        Hdf5Program("HDF5 program, async, added to", options="threads=1,mode=async", first=2,
                    ranks=2),
        *[Hdf5Program(f"HDF5 {major} connector{more}", connector_of=major, **how)
          for major in (1, 2)
          for more, how in (("", {}), (", 2 ranks", {"ranks": 2}),
                            (", 4 ranks on 2 nodes", {"ranks": 4, "nodes": 2}),
                            (", added to", {"first": 2, "ranks": 2}))],
        Command("repack, 2 ranks", "repack IN0 -o OUT -q", ranks=2),
        Command("export", "export IN0 -o OUT -q"),
        Command("concat", "concat -o OUT IN0 IN1 IN2 -q"),
        Command("concat, 2 ranks", "concat -o OUT IN0 IN1 IN2 -q", ranks=2),
        Command("concat, many commits", scale=40, verb="concat -o OUT IN0 IN1 IN2 -q "
                "--commit-every 0 -b 2MiB --chunk 16KiB"),
        Command("concat -a, 2 ranks", "concat -o OUT -a IN1 IN2 -q", ranks=2),
        Command("concat -a, journal", "concat -o OUT -a IN1 IN2 -q --journal"),
        PlainHdf5("HDF5"), PlainHdf5("HDF5, growing", **growing),
        PlainHdf5("HDF5, added to", first=2), PlainHdf5("HDF5, added to, growing", first=2,
                                                        **growing),
    ]
    return jobs


def fresh(folder):
    shutil.rmtree(folder, ignore_errors=True)
    for part in ("out", "in"):
        (folder / part).mkdir(parents=True)
    return folder
