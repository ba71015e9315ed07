"""Many programs: starts judges, finds the program that caused a crash, shrinks failing programs."""

import contextlib
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field

from .doors import DOORS
from .generate import generate
from .language import Program
from .shrink import shrink
from .verdict import Verdict

_TESTS = pathlib.Path(__file__).resolve().parents[1]
#: Seconds for one program; exceeded only by hangs.
_TIME_LIMIT_S = 180


def environment():
    """Set the environment of judges and performers: the package, its engine, and filters for stock
    readers."""
    sys.path.insert(0, str(_TESTS / "python"))
    import hdf5plugin  # noqa: PLC0415
    import python_package  # noqa: PLC0415
    found = python_package.package_environment()
    plugins = pathlib.Path(found["TAILRACE_H5TRZ"]).parent
    built = plugins.parents[2]
    return {
        **found, "PYTHONPATH": os.pathsep.join([str(_TESTS), found["PYTHONPATH"]]),
        "HDF5_PLUGIN_PATH": os.pathsep.join([hdf5plugin.PLUGINS_PATH, str(plugins)]),
        "TAILRACE": str(built / "bin" / "tailrace"), "TAILRACE_WORKLOAD_BUILD": str(built),
        "OPENBLAS_NUM_THREADS": "1", "PYTHONFAULTHANDLER": "1",
    }


class JudgeProcess:
    """A judge in a separate process, restarted after a program has crashed it."""

    def __init__(self):
        self._environment = environment()
        self._process = None
        self._folder = ""

    def judge(self, program):
        if self._process is None:
            self._folder = tempfile.mkdtemp(prefix="workload_judge_")
            self._process = subprocess.Popen(
                [sys.executable, "-m", "workload.judge"], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
                env={**self._environment, "TMPDIR": self._folder})
            os.set_blocking(self._process.stderr.fileno(), False)
        try:
            self._process.stdin.write(program.to_json().encode() + b"\n")
            self._process.stdin.flush()
            ready = select.select([self._process.stdout], [], [], _TIME_LIMIT_S)[0]
            line = self._process.stdout.readline() if ready else b""
        except BrokenPipeError:
            ready, line = True, b""
        said = (self._process.stderr.read() or b"").decode(errors="replace")
        if line:
            return Verdict(**json.loads(line))
        if not ready:
            self.end(at_once=True)
            return Verdict("crash", "judge hangs", said[-3000:])
        code = self._process.wait()
        self.end(at_once=True)
        name = signal.Signals(-code).name if code < 0 else f"exit {code}"
        return Verdict("crash", f"judge {name}", said[-3000:])

    def end(self, at_once=False):
        if self._process is None:
            return
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.close()
        if at_once:
            with contextlib.suppress(ProcessLookupError):  # It may have ended.
                os.killpg(self._process.pid, signal.SIGKILL)
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._process = None
        shutil.rmtree(self._folder, ignore_errors=True)


@dataclass
class Failure:
    program: Program
    verdict: Verdict

    def __str__(self):
        return (f"{self.verdict.kind} by {self.verdict.reader or 'the door'} at operation "
                f"{self.verdict.at}: {self.verdict.text}\n"
                f"replay it: scripts/workload --replay FILE, where FILE holds\n{self.program}\n")


@dataclass
class Counts:
    """Counts of a campaign."""

    programs: int = 0
    operations: int = 0
    faults: dict = field(default_factory=dict)  # Faults that occurred, by door and kind.
    by_door: dict = field(default_factory=dict)
    failures: list = field(default_factory=list)

    def __str__(self):
        doors, faults = (", ".join(f"{name} {n}" for name, n in counted.items())
                         for counted in (self.by_door, self.faults))
        return (f"{self.programs} programs ({doors}), {self.operations} operations, "
                f"faults: {faults or 'none'}; {len(self.failures)} failures")


def seeds(seed, first=0):
    """The seeds of programs, one after another."""
    at = first
    while True:
        yield f"{seed}:{at}"
        at += 1


def campaign(doors, seed, *, seconds=None, programs=None, least=0, failures_max=10, shrink_s=60,
             first=0, report=lambda _: None):
    """Run programs on each door in turn, until time or number is reached. @returns Counts. least:
    number of programs to run even if time has run out."""
    counts, judge = Counts(), JudgeProcess()
    end = time.monotonic() + seconds if seconds is not None else float("inf")
    try:
        for one in seeds(seed, first):
            for door in doors:
                if (time.monotonic() > end and counts.programs >= least) or (
                        counts.programs == programs or len(counts.failures) >= failures_max):
                    return counts
                program = generate(one, door, DOORS[door].TRAITS)
                verdict = judge.judge(program)
                counts.programs += 1
                counts.operations += len(program.ops)
                if verdict.fault:
                    name = f"{door} {verdict.fault}"
                    counts.faults[name] = counts.faults.get(name, 0) + 1
                counts.by_door[door] = counts.by_door.get(door, 0) + 1
                if verdict.kind == "invalid":
                    verdict = Verdict("wrong", "generator", verdict.text, verdict.at)
                if verdict.failed:
                    small, why = shrink(program, verdict, judge.judge, shrink_s,
                                        DOORS[door].TRAITS.ranks)
                    counts.failures.append(Failure(small, why))
                    report(counts.failures[-1])
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    finally:
        judge.end()
    return counts


def replay(text):
    """Run one program given in JSON. @returns its verdict."""
    judge = JudgeProcess()
    try:
        return judge.judge(Program.from_json(text))
    finally:
        judge.end()
