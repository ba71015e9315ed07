#!/usr/bin/env python3
"""Crash campaign: crashes the output of every writer, and reads the remains by stock HDF5.

  campaign.py crashes [--seconds S] [--jobs PATTERN...] [--limit N] [--every K] [--seed N]
  campaign.py faults  [--seconds S] [--jobs PATTERN...] [--most N] [--seed N]

Each job (jobs.py) runs once under the recorder (recorder.c).

"crashes" rebuilds the states in which a kill or a power loss can leave the job's files (disk.py).
It rebuilds at most N for each moment and class. campaign_judge.cpp reads each state before and
after `tailrace recover --apply`.

"faults" runs the job once for each fault: a call fails, or a rank is killed or stopped before the
call.

Each broken promise (docs/reliability.md) prints a line that says how to repeat it. Its files are
kept, and the exit status is 1. The seed is printed. A run with the same seed, jobs and limit makes
the same choices.
"""

import argparse
import collections
import fnmatch
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile
import threading
import time

import disk
import jobs

ENDS_WITHIN_S = 10


class Seen:
    """The judge's answer about one state."""

    def __init__(self, lines):
        self.before = self.after = "absent"
        self.state = self.error = ""
        self.findings, self.left = [], []
        self.status = int(lines[-1].split()[1])
        at = None
        for line in lines[:-1]:
            kind, _, rest = line.partition(" ")
            if line in ("before", "after"):
                at = line
                setattr(self, at, {})
            elif kind in ("N", "F"):
                setattr(self, at, "absent" if kind == "N" else "closed")
            elif kind in ("D", "B"):
                path, *found = rest.rsplit(" ", 2) if kind == "D" else (rest,)
                getattr(self, at)[path] = tuple(found) or None
            elif kind == "R":
                self.state = rest
            elif kind == "E":
                self.error = rest
            elif kind == "T":
                self.findings.append(rest)
            elif kind == "L":
                self.left.append(rest)


class Judge:
    """A process of campaign_judge, which reads states from a folder of its own."""

    def __init__(self, programs, folder):
        self.folder = folder
        self.process = subprocess.Popen([programs.judge], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, errors="replace")
        self.waiting = collections.deque()
        self.n = 0

    def ask(self, state, name, context, recovers=True):
        """Submit a state; `context` is returned with the answer."""
        self.n += 1
        folder = self.folder / str(self.n)
        folder.mkdir(parents=True)
        for file, content in state.items():
            (folder / file).write_bytes(content)
        self.process.stdin.write(f"{'' if recovers else '- '}{folder} {name}\n")
        self.process.stdin.flush()
        self.waiting.append((folder, context))

    def answer(self):
        lines = []
        while not lines or not lines[-1].startswith("end "):
            lines.append(self.process.stdout.readline().rstrip("\n"))
            assert lines[-1] or self.process.poll() is None, "the judge itself has died"
        folder, context = self.waiting.popleft()
        shutil.rmtree(folder)
        return Seen(lines), context

    def all(self, states):
        """Yield the answers to an iterable of (state, name, context, recovers).

        At most four states are submitted at a time."""
        for state in states:
            self.ask(*state)
            if len(self.waiting) > 3:
                yield self.answer()
        while self.waiting:
            yield self.answer()


def is_promised(job, kind):
    """Return True if the job promises that it loses nothing in states of this kind.

    Without a journal, a power loss may tear a write in place. A kill can cut a write only between
    two pages, and writes in place that cross pages have a journal."""
    return kind in ("kill", "cut") or job.synced and (job.journal or kind != "torn")


def broken_promise(job, kind, committed, seen):
    """Return a sentence that says which promise the state breaks, or ""."""
    expected = job.expectation
    promised = is_promised(job, kind)
    after = expected.damage(seen.after, committed)
    if seen.status and promised:
        return f"the judge ended with {seen.status}"
    if seen.status:
        return ""
    if after and promised:
        return f"after recovery the file {after}"
    if after and job.synced and seen.state in ("whole", "repairable") and not seen.error:
        return f"recovery calls it {seen.state}, and the file {after}"
    if expected.half(seen.after) and job.expectation.even and promised:
        return "after recovery half of the job's one commit is there"
    kept = {job.name_of_file}
    if job.keeps_partial or any("keep the one you want" in text for text in seen.findings):
        kept.add(job.name_of_file + ".partial")
    nothing = seen.error.startswith(f"{NOT_FOUND} ") and set(seen.left) <= {
        job.name_of_file + suffix
        for suffix in (".lock", ".lock.nodes", ".partial.journal", ".journal")}
    left = set(seen.left) - kept
    if left and promised and not nothing:
        return f"recovery leaves {sorted(left)} ({seen.error or seen.findings})"
    if nothing and seen.left:
        return f"nothing but {seen.left} is there, and recovery says \"{seen.error}\""
    return ""


NOT_FOUND = 3    # tailrace::Code::not_found


class Campaign:
    def __init__(self, arguments):
        self.arguments = arguments
        self.programs = jobs.Programs(arguments.tailrace)
        missing = self.programs.missing()
        if missing:
            sys.exit(f"campaign: not built: {', '.join(map(str, missing))}")
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="campaign.", dir=arguments.folder))
        self.judge = Judge(self.programs, self.folder / "judged")
        self.random = random.Random(arguments.seed)
        self.ends_at = time.monotonic() + arguments.seconds
        self.broken = []
        self.rows = []

    def close(self):
        self.judge.process.stdin.close()
        self.judge.process.wait()
        shutil.rmtree(self.folder)

    def late(self):
        return time.monotonic() > self.ends_at

    def breaks(self, what, state):
        """Note a broken promise and keep its files."""
        self.broken.append(what)
        if len(self.broken) <= self.arguments.keep:
            print("BROKEN", what, flush=True)
            kept = pathlib.Path(self.arguments.kept) / f"broken_{len(self.broken)}"
            jobs.fresh(kept)
            for name, content in state.items():
                (kept / "out" / name).write_bytes(content)
            (kept / "what").write_text(what + "\n")

    def chosen(self):
        for job in jobs.all_jobs():
            asked = any(fnmatch.fnmatch(job.name, p) for p in self.arguments.jobs)
            if asked and job.is_built(self.programs):
                yield job

    def record(self, job, folder, fault=""):
        """Run a job in a fresh folder.

        Return (files before the run, calls, completed process, files after the run, seconds)."""
        jobs.fresh(folder)
        job.prepare(self.programs, folder)
        out, log = folder / "out", folder / "log"
        start = {p.name: (p.stat().st_ino, p.read_bytes()) for p in out.iterdir()}
        began = time.monotonic()
        done = job.run(self.programs, folder, log, fault)
        took = time.monotonic() - began
        calls = disk.read_log(log) if log.exists() else []
        left = {p.name: p.read_bytes() for p in out.iterdir()}
        return start, calls, done, left, took

    # --- crashes

    def states(self, job, start, calls):
        arguments = self.arguments
        yield from disk.kill_states(start, calls, self.random)
        yield from disk.power_states(start, calls, self.random, arguments.limit)
        if job.ranks > 1:
            yield from disk.power_states(start, calls, self.random, arguments.limit, True)

    def crash(self, job):
        folder = self.folder / "job"
        start, calls, done, left, _ = self.record(job, folder)
        if done is None or (done.returncode != 0 and not job.may_fail):
            return self.breaks(f"{job.name}: the job itself: {done}", left)
        if not job.marks:
            calls.append(disk.Call(ord("m"), 4, 0, 0, 0, 0, 1, 0, b""))
        missed = disk.final_state(start, calls)
        if missed != left:
            sys.exit(f"campaign: {job.name}: a replay differs from the files: "
                     f"{ {k: len(v) for k, v in missed.items()} } {sorted(left)}")
        tally = collections.defaultdict(collections.Counter)
        began = time.monotonic()

        def asked():
            for number, (kind, committed, state) in enumerate(self.states(job, start, calls)):
                if self.late():
                    return
                if number % self.arguments.every:
                    continue
                context = (number, kind, max(committed, job.first), state)
                yield state, job.name_of_file, context, job.ours

        debris = []
        for seen, (number, kind, committed, state) in self.judge.all(asked()):
            count = tally[kind]
            count["states"] += 1
            after = seen.after if job.ours else seen.before
            for name, found in (("lost_before", seen.before), ("lost", after)):
                wrong = job.expectation.damage(found, committed) or seen.status
                count[name] += bool(wrong and (job.ours or committed))
            count["half"] += bool(job.expectation.half(after))
            if not job.ours:
                continue
            what = broken_promise(job, kind, committed, seen)
            count["broken"] += bool(what)
            if what:
                self.breaks(f"{job.name} (seed {self.arguments.seed}, state {number}, {kind}, "
                            f"{committed} committed): {what}", state)
            elif len(state) > 1 and is_promised(job, kind):
                debris.append((committed, state))
        seconds = time.monotonic() - began
        n_states = sum(count["states"] for count in tally.values())
        for kind, count in tally.items():
            self.rows.append({"job": job.name, "kind": kind, **count})
        print(f"{job.name}: {len(calls)} calls, {n_states} states, "
              f"{n_states / max(seconds, 1e-3):.0f} a second; " +
              "; ".join(f"{kind}: {dict(count)}" for kind, count in tally.items()), flush=True)
        return debris

    def crashes(self):
        print(f"seed {self.arguments.seed}, limit {self.arguments.limit}", flush=True)
        for job in self.chosen():
            if self.late():
                print(f"no time for {job.name}", flush=True)
                continue
            debris = self.crash(job) or []
            # An unfinished concatenation is resumed, with the same inputs. Recovery changes files,
            # so it is crashed, too.
            if isinstance(job, jobs.Command) and job.keeps_partial:
                for committed, state in self.random.sample(debris, min(self.arguments.again,
                                                                       len(debris))):
                    self.resume(job, committed, state)
            for committed, state in self.random.sample(debris, min(self.arguments.again,
                                                                   len(debris))):
                if not self.late():
                    self.crash(jobs.Recover(f"recover: {job.name}", job, committed, state))

    def resume(self, job, committed, state):
        """Check that --resume of an unfinished concatenation writes the file of a whole run."""
        folder = self.folder / "job"
        shutil.rmtree(folder / "out")
        (folder / "out").mkdir()
        for name, content in state.items():
            (folder / "out" / name).write_bytes(content)
        job.command(self.programs, folder, job.verb + " --resume" +
                    (" --force" if job.name_of_file in state else ""))
        wrong = job.expectation.damage(jobs.read(folder / "out" / job.name_of_file), 1)
        left = {p.name for p in (folder / "out").iterdir()} - {job.name_of_file}
        self.rows.append({"job": job.name, "kind": "resume", "states": 1,
                          "broken": int(bool(wrong or left))})
        if wrong or left:
            self.breaks(f"{job.name}: --resume: the file {wrong}; left {left}", state)

    # --- faults

    FAULTS = {"w": ("5", "28s", "122s", "4", "short"), "o": ("24", "5", "12"), "c": ("28", "24"),
              "t": ("28", "5"), "e": ("28s", "5", "4"), "s": ("5",), "d": ("5",), "r": ("5",),
              "l": ("5",), "u": ("5", "13"), "p": ("11", "11s"), "x": ("12",), "a": ("12", "12s")}

    def faults_of(self, job, calls):
        """Yield (class, number of the call on its rank, action, rank, sticky, kind, key).

        Faults of one key are much alike: their calls are in one place of the programs."""
        counts = collections.Counter()
        for call in calls:
            if call.group == "note":
                continue
            counts[call.rank, call.group] += 1
            number = counts[call.rank, call.group]
            ranks = (call.rank, -1) if job.ranks > 1 else (-1,)
            wanted = [(action, rank) for action in self.FAULTS[call.kind] for rank in ranks]
            if call.group == "io":
                wanted.append(("kill", call.rank))
                if self.random.random() < self.arguments.stops:
                    wanted.append(("stop", call.rank))
            for action, rank in wanted:
                who = "each" if rank < 0 else "root" if rank == 0 else "other"
                key = call.site, call.kind, action, who, job.ranks > 1
                sticky = int(action.endswith("s"))
                yield call.group, number, action.rstrip("s"), rank, sticky, call.kind, key

    def continue_stopped(self, log, ended):
        """Continue a rank that stopped itself, after five seconds."""
        while not ended.wait(0.1):
            calls = disk.read_log(log) if log.exists() else []
            stopped = [call.pid for call in calls if call.kind == "z"]
            if stopped:
                ended.wait(5)
                os.kill(stopped[0], 18)
                return

    def fault(self, job, group, number, action, rank, sticky, kind, again=False):
        """Run a job with this fault, and judge its messages and files. Return the outcome."""
        folder = self.folder / "job"
        fault = f"{group}:{number}:{action}:{rank}:{sticky}"
        what = f"{job.name} CAMPAIGN_FAULT={fault} (kind {kind})"
        ended = threading.Event()
        watch = threading.Thread(target=self.continue_stopped, args=(folder / "log", ended))
        if action == "stop":
            shutil.rmtree(folder, ignore_errors=True)
            watch.start()
        start, calls, done, left, took = self.record(job, folder, fault)
        ended.set()
        if action == "stop":
            watch.join()
        committed = max([job.first, *(call.offset for call in calls if call.kind == "m")])
        if done is None or took > ENDS_WITHIN_S + (5 if action == "stop" else 0):
            if again:
                self.breaks(f"{what}: took {took:.0f} s, {done and done.stderr[-500:]}", left)
            return "too long"
        if done.returncode == 0 and not job.marks:
            committed = 1
        problem = ""
        # PnetCDF programs get an error number, HDF5 programs an error stack. The library also
        # prints its reason, and once more if MPI_Finalize closes a file that the program left open.
        own = ["campaign error:"] + ["tailrace"] * (not job.is_program)
        said = [line for line in done.stderr.splitlines() if line.startswith(tuple(own))]
        # The error unwinds the program's File, whose destructor reports more losses, at rank 0.
        ends = [line for line in said if " was left without close(); " in line]
        said = [line for line in said if line not in ends]
        hit = {c.kind for c in calls if str(c.error) == action and c.group == group}
        if action in ("4", "short", "stop") and hit <= {"w"} and done.returncode != 0:
            problem = f"exit {done.returncode}: {done.stderr[-300:]}"
        elif done.returncode != 0 and action != "kill":
            n_said = 1 if isinstance(job, jobs.Command) else job.ranks
            alone = " leaves alone" in done.stderr
            if len(set(said)) != 1 or len(said) != n_said and not alone or len(ends) > 1:
                problem = f"exit {done.returncode}, said {said + ends} in {done.stderr[:600]!r}"
        self.judge.ask(left, job.name_of_file, None)
        seen, _ = self.judge.answer()
        wrong = job.expectation.damage(seen.before, committed)
        if wrong and not any(name.endswith(".journal") for name in left):
            problem = problem or f"the file {wrong}"
        problem = problem or broken_promise(job, "kill", committed, seen)
        if problem:
            self.breaks(f"{what}: {problem}", left)
        return "killed" if action == "kill" else "error" if done.returncode else "went on"

    def faults(self):
        print(f"seed {self.arguments.seed}", flush=True)
        plan = []
        for job in self.chosen():
            if job.ours:
                _, calls, done, left, _ = self.record(job, self.folder / "job", "count:0:0:-1:0")
                if done is None or done.returncode != 0:
                    self.breaks(f"{job.name}: the job itself: {done and done.stderr}", left)
                plan += [(job, *fault) for fault in sorted(self.faults_of(job, calls))]
        self.random.shuffle(plan)
        # First each place in the programs, once with each errno and choice of ranks; then the rest.
        first = {}
        for number, point in enumerate(plan):
            first.setdefault(point[-1], number)
        chosen = set(first.values())
        plan = ([plan[i] for i in first.values()] +
                [point for i, point in enumerate(plan) if i not in chosen])
        tally, covered = collections.Counter(), set()
        for job, *fault, key in plan[:self.arguments.most]:
            if self.late():
                break
            covered.add(key)
            outcome = self.fault(job, *fault)
            if outcome == "too long":    # Try again: the machine may have been busy.
                outcome = self.fault(job, *fault, again=True)
            tally[f"{fault[0]} {fault[2]}: {outcome}"] += 1
        for name, count in sorted(tally.items()):
            self.rows.append({"fault": name, "runs": count})
        print(f"{sum(tally.values())} of {len(plan)} faults, {len(covered)} of {len(first)} kinds "
              f"(a call's place, an errno, whose): {dict(tally)}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("crashes", "faults"))
    parser.add_argument("--seconds", type=float, default=1e9)
    parser.add_argument("--jobs", nargs="+", default=["*"], help="patterns of jobs' names")
    parser.add_argument("--limit", type=int, default=64, help="states of a moment and class")
    parser.add_argument("--every", type=int, default=1, help="judge each K-th state")
    parser.add_argument("--most", type=int, help="faults, of all that can be tried")
    parser.add_argument("--again", type=int, default=2, help="recoveries that are crashed, a job")
    parser.add_argument("--stops", type=float, default=0.02, help="share of calls to stop at")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10 ** 6))
    parser.add_argument("--json", help="numbers of each job")
    parser.add_argument("--folder", default="/dev/shm", help="for jobs and states")
    parser.add_argument("--kept", default="campaign_broken", help="for files of broken promises")
    parser.add_argument("--keep", type=int, default=20, help="so many of them")
    parser.add_argument("--tailrace", default=os.environ.get("TAILRACE"))
    campaign = Campaign(parser.parse_args())
    try:
        getattr(campaign, campaign.arguments.what)()
        if campaign.arguments.json:
            pathlib.Path(campaign.arguments.json).write_text(json.dumps(
                {"seed": campaign.arguments.seed, "rows": campaign.rows,
                 "broken": campaign.broken}, indent=1))
    finally:
        campaign.close()
    print(f"{len(campaign.broken)} broken promises", flush=True)
    return 1 if campaign.broken else 0


if __name__ == "__main__":
    sys.exit(main())
