"""Many random files on all routes: counts, findings, and the smallest file that shows each
finding."""

import collections
import copy
import itertools
import json
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field

from ..harness import environment
from .routes import ROUTES, describe_any

_TIME_LIMIT_S = 300


class Worker:
    """A process that judges files; restarted if a file crashes it."""

    def __init__(self):
        self._environment = environment()
        self._environment["TAILRACE_PLUGINS"] = self._environment.pop("HDF5_PLUGIN_PATH")
        self._process = None
        self._folder = ""

    def judge(self, description, route, seed):
        """Judge one file. @returns its outcome and the findings."""
        if self._process is None:
            self._folder = tempfile.mkdtemp(prefix="workload_files_")
            self._process = subprocess.Popen(
                [sys.executable, "-m", "workload.files.worker"], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=open(f"{self._folder}/said", "wb"),
                env={**self._environment, "TMPDIR": self._folder})
        asked = {"description": description, "route": route, "seed": seed}
        try:
            self._process.stdin.write(json.dumps(asked).encode() + b"\n")
            self._process.stdin.flush()
            ready = select.select([self._process.stdout], [], [], _TIME_LIMIT_S)[0]
            line = self._process.stdout.readline() if ready else b""
        except BrokenPipeError:
            ready, line = True, b""
        if line:
            end, findings, why = json.loads(line)
            return end, findings, why
        self._process.kill()
        code = self._process.wait()
        with open(f"{self._folder}/said", errors="replace") as file:
            said = file.read()[-1000:]
        self.end()
        how = f"signal {signal.Signals(-code).name}" if ready and code < 0 else (
            f"exit {code}" if ready else "hang")
        return "crash", [f"worker {how}: {said}"], ""

    def end(self):
        if self._process is not None:
            self._process.stdin.close()
            self._process.wait()
            shutil.rmtree(self._folder, ignore_errors=True)
            self._process = None


def kind_of(finding):
    """The part of a finding that is the same for all findings of one fault."""
    words = finding.split(": ")
    more = finding.startswith(("silent of the file", "xarray"))
    return ": ".join(words[:2]) if more else words[0]


@dataclass
class Failure:
    seed: str
    route: str
    finding: str
    description: dict

    def __str__(self):
        return (f"{self.route} {self.seed}: {self.finding}\nreplay it: scripts/workload --files "
                f"--replay FILE, where FILE holds\n{json.dumps(self.replayed())}\n")

    def replayed(self):
        return {"route": self.route, "seed": self.seed, "description": self.description}


@dataclass
class Counts:
    by_route: dict = field(default_factory=lambda: collections.defaultdict(collections.Counter))
    kinds: collections.Counter = field(default_factory=collections.Counter)
    failures: list = field(default_factory=list)

    def __str__(self):
        lines = [f"{route}: " + ", ".join(f"{n} {end}" for end, n in sorted(ends.items()))
                 for route, ends in self.by_route.items()]
        lines += [f"{n} times: {kind}" for kind, n in self.kinds.most_common()]
        n_files = sum(sum(ends.values()) for ends in self.by_route.values())
        return "\n".join([*lines, f"{n_files} files, {len(self.kinds)} kinds of findings"])


def _smaller(description):
    """Smaller descriptions: without one object or property, or with smaller shapes."""
    objects = description["objects"]
    for at in range(len(objects) - 1, -1, -1):
        made = copy.deepcopy(description)
        del made["objects"][at]
        yield made
    for key in description.get("file", {}).keys() - {"low", "high"}:
        made = copy.deepcopy(description)
        del made["file"][key]
        yield made
    needed = {"op", "path", "of", "name", "type", "space", "layout", "seed", "style", "chunk",
              "limits", "target", "scale", "dimension", "file", "written", "fill", "fill_time",
              "allocation", "dims", "size", "unlimited", "rows", "what", "utf8"}
    for at, each in enumerate(objects):
        for key in each.keys() - needed:
            made = copy.deepcopy(description)
            del made["objects"][at][key]
            yield made


def shrink(worker, failure, seconds):
    """The failure with the smallest description found that shows the same kind of finding."""
    end = time.monotonic() + seconds
    changed = True
    while changed and time.monotonic() < end:
        changed = False
        for candidate in _smaller(failure.description):
            if time.monotonic() > end:
                break
            _, findings, _ = worker.judge(candidate, failure.route, failure.seed)
            same = [each for each in findings if kind_of(each) == kind_of(failure.finding)]
            if same:
                failure = Failure(failure.seed, failure.route, same[0], candidate)
                changed = True
                break
    return failure


def campaign(seed, *, files=None, seconds=None, routes=None, first=0, failures_max=10,
             shrink_s=20, report=lambda _: None):
    """Send files on the routes in turn until the number or the time is reached."""
    counts, worker = Counts(), Worker()
    end = time.monotonic() + seconds if seconds is not None else float("inf")
    try:
        for n, route in zip(itertools.count(), itertools.cycle(routes or ROUTES)):
            if n == files or time.monotonic() > end or len(counts.failures) >= failures_max:
                break
            one = f"{seed}:{first + n}"
            description = describe_any(one, route)
            how, findings, _ = worker.judge(description, route, one)
            counts.by_route[route][how] += 1
            for kind, finding in {kind_of(each): each for each in findings}.items():
                counts.kinds[kind] += 1
                if counts.kinds[kind] == 1:
                    found = Failure(one, route, finding, description)
                    counts.failures.append(shrink(worker, found, shrink_s))
                    report(counts.failures[-1])
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
    finally:
        worker.end()
    return counts


def replay(text):
    """Judge one file given in JSON. @returns its findings."""
    asked, worker = json.loads(text), Worker()
    try:
        return worker.judge(asked["description"], asked["route"], asked["seed"])
    finally:
        worker.end()
