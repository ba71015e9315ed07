#!/usr/bin/env python3
"""Disturb jobs on several nodes at random moments, and check the files that another node reads.

  kills.py kills [--runs N] [--seconds S] [--events PATTERN...] [--jobs PATTERN...] [--seed N]
  kills.py repeats [--runs N]

Run at the head of a cluster (tests/nodes/cluster; scripts/nodes-test --kills, --repeats). Each run
of "kills" combines a job of tests/campaign with an event. The event kills a rank, a node, the
client of a node's file system or a brick of the store; or it stops a node's ranks, or unmounts a
file system. The job must end within 30 s of the event. A job whose ranks are stopped permanently
must end within 30 s of its time limit, which the launcher enforces.

A second later the head, which ran no rank, reads the file with h5py. Another node reads it with
stock HDF5 before and after `tailrace recover --apply`. Then the next run must succeed, and the head
reads its result. The ranks themselves report what was committed (tests/campaign/mark.h).

"repeats": `concat -a` many times, and one run of cosmo in_situ with as many steps.

Lines of JSON go to --log, a table to the output, and the files of a broken promise to --kept. The
same seed makes the same choices, but not at the same moments of a job.
"""

import argparse
import collections
import fnmatch
import json
import multiprocessing
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import time

import h5py
import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "campaign"))

import campaign  # noqa: E402
import jobs  # noqa: E402

CLUSTER = os.environ.get("CLUSTER")
N_NODES = int(os.environ.get("CLUSTER_NODES", "2"))
SHARE = pathlib.Path("/mnt/shared")
MARKS = pathlib.Path("/mnt/cluster/marks")    # outside the disturbed file systems
CACHED_S = 1.2      # time for which clients cache a file's attributes (docs/nodes.md)
ENDS_WITHIN_S = 30
LIMIT_S = 6         # time limit of a job whose ranks are stopped permanently


def cluster(*words, check=True):
    return subprocess.run([CLUSTER, *map(str, words)], capture_output=True, text=True, timeout=60,
                          check=check)


def at(node, script, check=False):
    return cluster("on", node, "sh", "-c", script, check=check)


# --- events: each acts immediately, and returns a function that repairs the cluster after the job

def node_of(chance):
    return 1 + chance.randrange(N_NODES)


def pids(process):
    return f"$(pgrep -x {process[:15]})"    # the kernel truncates names to this length


def kill_rank(chance, process):
    at(node_of(chance), f"kill -9 {pids(process)[:-1]} | shuf -n 1)")


def kill_node(chance, process):
    node = node_of(chance)
    cluster("kill", node)
    return lambda: cluster("start", node)


def stop_ranks(chance, process):
    """Stop the ranks for some seconds, like a debugger, a swapping machine or a hanging file
    system."""
    node = node_of(chance)
    at(node, f"kill -STOP {pids(process)}")
    time.sleep(chance.uniform(0.5, 4))
    at(node, f"kill -CONT {pids(process)}")


def stop_ranks_for_good(chance, process):
    at(node_of(chance), f"kill -STOP {pids(process)}")


def unmount(chance, process):
    node = node_of(chance)
    cluster("umount", node)
    return lambda: cluster("mount", node)


def kill_client(chance, process):
    """Kill the client of a node's file system, which closes all of the node's open files."""
    node = node_of(chance)
    at(node, "kill -9 $(pgrep -x 'glusterfs|sshfs|juicefs')")

    def repair():
        cluster("umount", node, check=False)
        cluster("mount", node)
    return repair


def start_bricks():
    at("store", "gluster --mode=script volume start vol force", check=True)


def kill_brick(chance, process):
    brick = chance.choice(["vol.*b1", "vol.*b2", "vol"])    # or both
    at("store", f"kill -9 $(pgrep -f 'glusterfsd.*{brick}')")
    return start_bricks


def restart_brick(chance, process):
    kill_brick(chance, process)
    time.sleep(chance.uniform(0, 3))
    start_bricks()


ANYWHERE = {"a rank is killed": kill_rank, "a node is killed": kill_node,
            "ranks of a node stop for 0.5 to 4 s": stop_ranks,
            "ranks of a node stop for good": stop_ranks_for_good,
            "a node loses the mount": unmount}
CLIENTS = {"a node's client is killed": kill_client}
BRICKS = {"bricks are killed": kill_brick, "bricks are killed and started": restart_brick}
EVENTS = {"bind": ANYWHERE, "sshfs": {**ANYWHERE, **CLIENTS}, "juicefs": {**ANYWHERE, **CLIENTS},
          "gluster": {**ANYWHERE, **CLIENTS, **BRICKS}}


# --- jobs: longer versions of the campaign's jobs, and the commands that follow them

class Inputs:
    """Files for repack and concat, made once for all runs."""

    def prepare(self, programs, folder):
        kept = SHARE / "kept" / self.name.replace(" ", "_")
        if not kept.exists():
            super().prepare(programs, jobs.fresh(kept))
            type(self).expectations = {**getattr(self, "expectations", {}),
                                       self.name: self.expectation}
        self.expectation = self.expectations[self.name]
        shutil.rmtree(folder)
        folder.mkdir()
        (folder / "in").symlink_to(kept / "in")
        shutil.copytree(kept / "out", folder / "out")


class Command(Inputs, jobs.Command):
    def next_run(self, programs, folder, seen):
        """(command words, committed state after the job has ended)"""
        old = self.expectation.old
        if old is not None and seen != old:
            return None, 1    # A completed append is not repeated.
        more = [] if old is not None else ["--force"]
        if self.keeps_partial and (folder / "out" / (self.name_of_file + ".partial")).exists():
            more.append("--resume")
        return [*self.words(programs, folder), *more], 1


class Steps(jobs.Steps):
    MORE = 2

    def prepare(self, programs, folder):
        super().prepare(programs, folder)
        self.expectation = jobs.steps_expected(self.story, self.n_steps + self.MORE)

    def has(self, seen):
        if not isinstance(seen, dict):
            return 0
        if self.story == "growing":
            return self.expectation.levels["/a"].get(seen.get("/a"), 0)
        return sum(set(paths) <= set(seen) for paths in self.expectation.sets)

    def next_run(self, programs, folder, seen):
        there = self.has(seen)
        more = min(there, self.n_steps) + self.MORE
        return self.writer_words(programs, folder, there, more, self.options.strip(",")), more


class Records(jobs.Records):
    MORE = 2

    def prepare(self, programs, folder):
        super().prepare(programs, folder)
        self.expectation = jobs.records_expected(self.n_steps + self.MORE)

    def next_run(self, programs, folder, seen):
        there = self.expectation.levels["/a"].get(seen.get("/a"), 0) \
            if isinstance(seen, dict) else 0
        more = min(there, self.n_steps) + self.MORE
        return [programs.records, folder / "out" / self.name_of_file, more, there], more


class Hdf5Program(jobs.Hdf5Program):
    MORE = 2

    def prepare(self, programs, folder):
        super().prepare(programs, folder)
        self.expectation = jobs.flushes_expected(self.n_steps + self.MORE)

    def words(self, programs, folder):
        return ["env", f"LD_PRELOAD={programs.preloaded_front('')}",
                *super().words(programs, folder)]

    def next_run(self, programs, folder, seen):
        there = self.expectation.levels["/a"].get(seen.get("/a"), 0) \
            if isinstance(seen, dict) else 0
        more = min(there, self.n_steps) + self.MORE
        if not there:    # Act like the user: a file without a step is created again.
            (folder / "out" / self.name_of_file).unlink(missing_ok=True)
        return ["env", f"LD_PRELOAD={programs.preloaded_front('')}",
                *self.program_words(programs, folder, more)], more


def all_jobs():
    n = 30
    growing = {"story": "growing", "n_steps": n}
    groups = {"n_steps": n}
    return [
        Steps("sync", ranks=3, **groups), Steps("sync, growing", ranks=4, **growing),
        Steps("async", options="mode=async", ranks=4, **groups),
        Steps("async, growing", options="mode=async", ranks=6, **growing),
        Steps("in_situ", options="mode=in_situ", ranks=6, **groups),
        Steps("in_situ, growing", options="mode=in_situ", ranks=3, **growing),
        Steps("sync, dense", options="layout=dense", ranks=3, **groups),
        Steps("in_situ, arena", options="mode=in_situ,layout=arena", ranks=4, **groups),
        Steps("async, journal, added to", options="mode=async,journal=on", first=2, ranks=3,
              **growing),
        Records("PnetCDF", ranks=3, n_steps=20), Records("PnetCDF, added to", first=2, ranks=4,
                                                         n_steps=20),
        Hdf5Program("HDF5 program", ranks=3, n_steps=16),
        Command("repack", "repack IN0 -o OUT -q --codec deflate,level=9 --force", scale=500,
                ranks=4),
        Command("concat", "concat -o OUT IN0 IN1 IN2 -q --chunk 16KiB", scale=200, ranks=3),
        Command("concat, many commits", "concat -o OUT IN0 IN1 IN2 -q --commit-every 0 -b 1MiB "
                "--chunk 16KiB", scale=200, ranks=4),
        Command("concat -a", "concat -o OUT -a IN1 IN2 -q", scale=200, ranks=6),
    ]


def program_of(job, words):
    """The process name of a rank."""
    words = [str(word) for word in words]
    while words[0] == "env" or "=" in words[0]:
        words.pop(0)
    return pathlib.Path(words[0]).name


def read_into(pipe, path):
    seen = {}
    try:
        with h5py.File(path, "r") as file:
            def visit(name, item):
                if isinstance(item, h5py.Dataset):
                    try:
                        seen["/" + name] = jobs.entry(item[()])
                    except OSError:
                        seen["/" + name] = None
            file.visititems(visit)
    except OSError:
        seen = "closed" if os.path.exists(path) else "absent"
    pipe.send(seen)


def read_here(path):
    """Read the file with h5py at the head, in a separate process, because a damaged file may crash
    h5py."""
    here, there = multiprocessing.Pipe(duplex=False)
    process = multiprocessing.Process(target=read_into, args=(there, path))
    process.start()
    there.close()
    try:
        seen = here.recv() if here.poll(30) else "closed"
    except EOFError:
        seen = "closed"
    process.kill()
    process.join()
    return seen


class Kills:
    def __init__(self, arguments):
        self.arguments = arguments
        self.fs = arguments.fs
        self.cached_s = 0 if self.fs == "bind" else CACHED_S
        self.programs = jobs.Programs(os.environ["TAILRACE"])
        missing = self.programs.missing()
        if missing:
            sys.exit(f"kills: not built: {', '.join(map(str, missing))}")
        self.chance = random.Random(arguments.seed)
        self.log = open(arguments.log, "a", buffering=1) if arguments.log else None
        self.rows, self.broken = [], []
        self.took = {}    # duration of the undisturbed job, by job
        h5py.h5pl.append(str(self.programs.tailrace.parents[1] / "lib/hdf5/plugin").encode())

    def start(self, job, words, output):
        MARKS.unlink(missing_ok=True)
        more = [f"CAMPAIGN_MARKS={MARKS}"]
        words = ["mpiexec", "-n", str(job.ranks), "env", *more, *map(str, words)]
        with open(output, "w") as file:
            return subprocess.Popen(words, stdout=file, stderr=subprocess.STDOUT,
                                    stdin=subprocess.DEVNULL, start_new_session=True)

    def committed(self, job):
        lines = MARKS.read_text().split() if MARKS.exists() else []
        return max([job.first, *map(int, lines)])

    def live(self, name):
        return any(at(node, f"pgrep -x {name[:15]}").stdout for node in range(1, N_NODES + 1))

    def wait(self, process, name):
        """"": the job has ended; "launcher": all ranks have ended, but mpiexec runs; "hangs"."""
        gone = 0
        for _ in range(ENDS_WITHIN_S // 5):
            try:
                process.wait(5)
                return ""
            except subprocess.TimeoutExpired:
                gone = 0 if self.live(name) else gone + 1
                if gone == 3:
                    return "launcher"
        return "launcher" if gone else "hangs"

    def end(self, process, name):
        """Kill a job that does not end, and its remaining ranks."""
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for node in range(1, N_NODES + 1):    # Remove files that the launcher has left.
                at(node, "kill -9 $(pgrep -x 'orted|hydra_pmi_proxy'); rm -rf /tmp/ompi.*")
        left = 0
        for node in range(1, N_NODES + 1):
            for turn in range(20):
                found = at(node, f"pgrep -x {name[:15]}").stdout.split()
                if not found:
                    break
                if turn == 19:
                    left += len(found)
                    at(node, f"kill -9 {' '.join(found)}")
                time.sleep(0.1)
        return left

    def healthy(self):
        """Wait until every client reaches every brick again."""
        script = f"cd {SHARE} && for i in 1 2 3 4 5 6 7 8; do touch .p$i && rm .p$i || exit 1; done"
        for _ in range(60):
            if all(at(node, script).returncode == 0 for node in ("head", *range(1, N_NODES + 1))):
                return
            time.sleep(0.5)
        raise RuntimeError("the cluster does not come back")

    def undisturbed(self, job):
        folder = SHARE / "undisturbed"
        jobs.fresh(folder)
        job.prepare(self.programs, folder)
        words = job.words(self.programs, folder)
        began = time.monotonic()
        process = self.start(job, words, "/tmp/output")
        process.wait(120)
        self.took[job.name] = time.monotonic() - began
        if process.returncode:
            sys.exit(f"kills: {job.name} itself: {pathlib.Path('/tmp/output').read_text()}")
        print(f"{self.fs}: {job.name}, {job.ranks} ranks: {self.took[job.name]:.1f} s", flush=True)
        shutil.rmtree(folder)

    def one(self, number, job, event):
        began = time.monotonic()
        if job.name not in self.took:
            self.undisturbed(job)
        folder = SHARE / f"run{number}"
        jobs.fresh(folder)
        job.prepare(self.programs, folder)
        words = job.words(self.programs, folder)
        name = program_of(job, words)
        moment = self.chance.uniform(0.2, 1) * self.took[job.name]
        process = self.start(job, words, "/tmp/output")
        try:
            process.wait(moment)
            shutil.rmtree(folder)
            return "too late"
        except subprocess.TimeoutExpired:
            pass
        repair = EVENTS[self.fs][event](self.chance, name) or (lambda: None)
        at_event = time.monotonic()
        row = {"fs": self.fs, "job": job.name, "ranks": job.ranks, "event": event, "number": number,
               "moment": round(moment, 2), "seed": self.arguments.seed}
        problems = []
        if event == "ranks of a node stop for good":
            try:
                process.wait(LIMIT_S)
            except subprocess.TimeoutExpired:
                row["limit"] = True
                process.send_signal(signal.SIGTERM)    # like a batch system
                at_event = time.monotonic()
        outcome = self.wait(process, name)
        if outcome == "hangs":
            problems.append(outcome)
            row["stacks"] = self.stacks(name)
        row["launcher"] = outcome == "launcher"
        row["ended_s"] = round(time.monotonic() - at_event, 2)
        row["left"] = self.end(process, name)
        row["status"] = process.returncode
        row["said"] = pathlib.Path("/tmp/output").read_text(errors="replace")[-3000:]
        row["committed"] = committed = self.committed(job)
        if process.returncode == 0 and not job.marks:
            row["committed"] = committed = 1
        if process.returncode == 0 and job.marks and committed != job.n_steps:
            problems.append(f"status 0 with {committed} steps")
        if process.returncode != 0 and event.startswith("ranks of a node stop for 0"):
            problems.append(f"a job that only waited ends with {process.returncode}")
        repair()
        if event not in ("a rank is killed",) and not event.startswith("ranks"):
            self.healthy()
        problems += self.judge(job, folder, committed, row)
        row["all_s"] = round(time.monotonic() - began, 1)
        row["problems"] = problems
        self.rows.append(row)
        if problems:
            self.broken.append(row)
            print("BROKEN", json.dumps({k: v for k, v in row.items() if k != "said"}), flush=True)
            print(row["said"], flush=True)
            self.keep(number, row)
        else:
            row["said"] = row["said"][:500]
        if self.log:
            self.log.write(json.dumps(row) + "\n")
        shutil.rmtree(folder, ignore_errors=True)
        return "done"

    def keep(self, number, row):
        target = pathlib.Path(self.arguments.kept) / f"{self.fs}_{self.arguments.seed}_{number}"
        target.mkdir(parents=True, exist_ok=True)
        (target / "what").write_text(json.dumps(row, indent=1))
        for stage in SHARE.glob(f"run{number}*"):
            shutil.copytree(stage, target / stage.name, symlinks=True, dirs_exist_ok=True)

    def stacks(self, name):
        found = ""
        for node in range(1, N_NODES + 1):
            found += at(node, f"for p in {pids(name)}; do echo node{node} $p; gdb -p $p -batch "
                        "-ex 'thread apply all bt 14' 2>/dev/null | grep '^[#T]'; done").stdout
        print(found, flush=True)
        return found[-6000:]

    def judge(self, job, folder, committed, row):
        """Return sentences about the promises that are broken after the job's end."""
        problems = []
        out = folder / "out"
        path = out / job.name_of_file
        time.sleep(self.cached_s)
        # Keep a copy of the original state, for inspection.
        shutil.copytree(out, folder.with_name(folder.name + "_left"))
        seen = read_here(path)
        journal = any(p.name.endswith(".journal") for p in out.iterdir())
        wrong = job.expectation.damage(seen, committed)
        if wrong and not journal:
            problems.append(f"the file {wrong} at the head")
        if self.fs == "sshfs":    # sshfs has separate locks on each node
            for lock in out.glob("*.lock"):
                lock.unlink()
        reader = self.chance.randrange(1, N_NODES + 1)
        row["reader"] = reader
        if self.chance.random() < 0.5:
            cluster("umount", reader)
            cluster("mount", reader)
        said = subprocess.run([CLUSTER, "on", str(reader), str(self.programs.judge)], text=True,
                              input=f"{out} {job.name_of_file}\n", capture_output=True, timeout=60)
        judged = campaign.Seen(said.stdout.splitlines())
        row["recover"] = judged.state or judged.error
        broken = campaign.broken_promise(job, "kill", committed, judged)
        if broken:
            problems.append(f"{broken} (recover: {judged.state} {judged.error} {judged.findings})")
        elif judged.error and not judged.error.startswith(f"{campaign.NOT_FOUND} "):
            problems.append(f"recover fails: {judged.error}")
        words, more = job.next_run(self.programs, folder, judged.after)
        for turn in range(12):
            if words is None:
                break
            process = self.start(job, words, "/tmp/next")
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                name = program_of(job, words)
                if turn < 2 and not self.live(name):    # mpiexec has not started a rank
                    row["launcher_next"] = turn + 1
                    self.end(process, name)
                    continue
                problems.append("the next run hangs")
                row["stacks"] = self.stacks(name)
            left = self.end(process, program_of(job, words))
            text = pathlib.Path("/tmp/next").read_text(errors="replace")
            if process.returncode and "another job" in text and turn < 11:
                row["lock_waits"] = turn + 1
                time.sleep(5)
                continue
            if process.returncode or left:
                problems.append(f"the next run ({' '.join(map(str, words))}) ends with "
                                f"{process.returncode}: {text[-1500:]}")
            break
        time.sleep(self.cached_s)
        wrong = job.expectation.damage(read_here(path), more)
        if wrong and not problems:
            problems.append(f"after the next run the file {wrong}")
        left = {p.name for p in out.iterdir()} - {job.name_of_file}
        if left and not problems:
            problems.append(f"the next run leaves {sorted(left)}")
        if not problems:
            shutil.rmtree(folder.with_name(folder.name + "_left"))
        return problems

    def run(self):
        arguments = self.arguments
        ends = time.monotonic() + arguments.seconds
        wanted = [job for job in all_jobs() if job.is_built(self.programs) and
                  any(fnmatch.fnmatch(job.name, p) for p in arguments.jobs)]
        events = [event for event in EVENTS[self.fs] if
                  any(fnmatch.fnmatch(event, p) for p in arguments.events)]
        pairs, tally = [], collections.Counter()
        number = 0
        while tally["done"] < arguments.runs and time.monotonic() < ends:
            if not pairs:    # Each pair of event and job occurs once before any occurs again.
                pairs = [(job, event) for job in wanted for event in events]
                self.chance.shuffle(pairs)
            number += 1
            tally[self.one(number, *pairs.pop())] += 1
        print(f"{self.fs}, {N_NODES} nodes, seed {arguments.seed}: {dict(tally)}")
        return self.broken


def table(rows):
    """Return the table of results for each event, for docs/reliability.md."""
    lines = ["| file system | event | runs | ended with an error / went on | longest, s | hangs / "
             "of mpiexec alone | wrong or lost |", "|---|---|---|---|---|---|---|"]
    for fs, event in sorted({(row["fs"], row["event"]) for row in rows}):
        here = [row for row in rows if (row["fs"], row["event"]) == (fs, event)]
        failed = sum(row["status"] != 0 for row in here)
        hangs = sum("hangs" in row["problems"] for row in here)
        wrong = sum(any(p != "hangs" for p in row["problems"]) for row in here)
        launcher = sum(row.get("launcher", False) for row in here)
        longest = max([row["ended_s"] for row in here if not row.get("launcher")], default=0)
        lines.append(f"| {fs} | {event} | {len(here)} | {failed} / {len(here) - failed} | "
                     f"{longest:.1f} | {hangs} / {launcher} | {wrong} |")
    return "\n".join(lines)


# --- repeats

def mpiexec(ranks, *words, timeout):
    done = subprocess.run(["mpiexec", "-n", str(ranks), *map(str, words)], timeout=timeout,
                          capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if done.returncode:
        sys.exit(f"repeats: {words}: {done.returncode}\n{done.stdout}{done.stderr}")


def repeats(arguments):
    """Check that no command hangs (60 s each), and that every row is in its place."""
    programs = jobs.Programs(os.environ["TAILRACE"])
    h5py.h5pl.append(str(programs.tailrace.parents[1] / "lib/hdf5/plugin").encode())
    folder = jobs.fresh(SHARE / "repeats")
    parts, n_inputs = [], 6
    for f in range(n_inputs):
        rows = np.random.default_rng(f).integers(0, 99, 20_000 + 77 * f)
        with h5py.File(folder / "in" / f"{f}.h5", "w") as file:
            file.create_dataset("a", data=rows, maxshape=(None,), chunks=(512,))
            file.create_dataset("b", data=rows * 0.5, maxshape=(None,), chunks=(4096,))
        parts.append(rows)
    inputs = [folder / "in" / f"{f}.h5" for f in range(n_inputs)]
    longest, began = 0, time.monotonic()
    for turn in range(arguments.runs):
        ranks, output = (6, 4, 5, 3)[turn // 20 % 4], folder / "out" / f"{turn // 20}.h5"
        if turn % 20 == 0:
            mpiexec(ranks, programs.tailrace, "concat", "-q", "-o", output, "-b", "8MiB",
                    *inputs[:3], timeout=60)
            there = parts[:3]
        chosen = [(turn + k) % n_inputs for k in range(3)]
        start = time.monotonic()
        mpiexec(ranks, programs.tailrace, "concat", "-q", "-a", "-o", output, "-b", "8MiB",
                *(inputs[k] for k in chosen), timeout=60)
        longest = max(longest, time.monotonic() - start)
        there = there + [parts[k] for k in chosen]
        if turn % 5 == 4 or turn + 1 == arguments.runs:
            time.sleep(CACHED_S)
            with h5py.File(output) as file:
                rows = np.concatenate(there)
                assert np.array_equal(file["a"][()], rows), turn
                assert np.array_equal(file["b"][()], rows * 0.5), turn
    print(f"{arguments.fs}, {N_NODES} nodes: {arguments.runs} x concat -a on 3 to 6 ranks, all "
          f"rows right, {time.monotonic() - began:.0f} s, longest {longest:.1f} s", flush=True)
    cosmo = programs.tailrace.parents[1] / "examples" / "cosmo"
    for ranks, mode in ((6, "in_situ"), (3, "in_situ")):
        file = folder / "out" / f"cosmo{ranks}.h5"
        began = time.monotonic()
        mpiexec(ranks, cosmo, "--grid", 24, "--steps", arguments.runs, "--output", mode, "--file",
                file, "--json", folder / "report.json", timeout=600)
        took = time.monotonic() - began
        time.sleep(CACHED_S)
        report = json.loads((folder / "report.json").read_text())
        assert all(check["passed"] for check in report["checks"]), report["checks"]
        with h5py.File(file) as written:
            sizes = {name: dataset.shape[0] for name, dataset in written.items()}
            assert all(np.isfinite(dataset[()]).all() for dataset in written.values())
        print(f"{arguments.fs}, {N_NODES} nodes: cosmo {mode}, {ranks} ranks, {arguments.runs} "
              f"steps: {took:.0f} s; steps in the file: {sorted(set(sizes.values()))}", flush=True)
    shutil.rmtree(folder)
    return []


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("kills", "repeats", "table"))
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--jobs", nargs="+", default=["*"], help="patterns of jobs' names")
    parser.add_argument("--events", nargs="+", default=["*"], help="patterns of events")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10 ** 6))
    parser.add_argument("--log", help="lines of JSON are added to it; table reads it")
    parser.add_argument("--kept", default=str(ROOT / "campaign_broken"))
    arguments = parser.parse_args()
    if arguments.what == "table":
        with open(arguments.log) as file:
            print(table([json.loads(line) for line in file]))
        return 0
    if CLUSTER is None:
        sys.exit("kills: only within tests/nodes/cluster")
    arguments.fs = pathlib.Path("/mnt/cluster/fs").read_text().strip()
    if arguments.what == "repeats":
        return len(repeats(arguments))
    kills = Kills(arguments)
    broken = kills.run()
    print(table(kills.rows), flush=True)
    print(f"{len(broken)} broken promises", flush=True)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
