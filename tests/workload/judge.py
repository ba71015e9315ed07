"""Runs a program by its door beside the model, and audits the file after each commit.

    python -m workload.judge        programs in JSON, one a line; verdicts likewise

A judge is a process of its own, since readers may crash as well; harness.py starts it.
"""

import contextlib
import dataclasses
import json
import os
import shutil
import sys
import tempfile

import numpy as np

from .auditor import Auditor, Mismatch, compare
from .doors import DOORS, Died
from .language import COMMITS, Program
from .model import Invalid, Model
from .verdict import Verdict


def decoded(array):
    """The values of an answer; their data are base64."""
    import base64  # noqa: PLC0415
    raw = base64.b64decode(array["data"])
    return np.frombuffer(raw, array["dtype"]).reshape(array["shape"])


class Judge:
    """Doors that stay open, for any number of programs."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="workload_")
        self.doors = {}
        self.program = os.environ.get("TAILRACE", "tailrace")

    def end(self):
        for door in self.doors.values():
            door.end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def door_for(self, program):
        key = (program.door, program.ranks)
        if key not in self.doors:
            self.doors[key] = DOORS[program.door](program.door, program.ranks, self.folder)
        return self.doors[key]

    def judge(self, program):
        folder = tempfile.mkdtemp(dir=self.folder)
        door = self.door_for(program)
        try:
            return self._run(program, door, folder)
        finally:
            with contextlib.suppress(Died):
                if door.is_running:
                    door.do({"op": "reset"})
            shutil.rmtree(folder, ignore_errors=True)

    def _run(self, program, door, folder):
        model, auditor = Model(program.ranks, door.TRAITS), Auditor(folder, self.program)
        path = os.path.join(folder, "file.nc")
        faults = [op for op in program.ops if op["op"] == "fault"]
        door.do({"op": "begin", "path": path, "ops": program.ops,
                 "fault": faults[0] if faults else None})
        for at, op in enumerate(program.ops):
            if op["op"] == "fault":
                continue
            before = model.on_disk
            try:
                expected = model.apply(op)
            except Invalid as why:
                return Verdict("invalid", "", str(why), at)
            try:
                answer = door.do(op)
            except Died as death:
                if faults and death.what == "SIGKILL":
                    after = model.on_disk if op["op"] in COMMITS else None
                    return self._after_kill(auditor, path, before, after, at)
                return Verdict("crash", death.what, str(death), at)
            if "error" in answer:
                text = f"{answer['error']}: {answer['text']}"
                return Verdict("error", answer["error"], f"{text}\n{answer.get('where', '')}", at)
            try:
                if op["op"] == "get":
                    variable = model.now.variables[op["name"]]
                    compare("get", variable, np.asarray(expected[0]), decoded(answer["array"]),
                            np.asarray(expected[1]))
                elif op["op"] in COMMITS:
                    auditor.audit(path, model.on_disk, complete=op["op"] == "close",
                                  last=at + 1 == len(program.ops))
                elif op["op"] == "abort":
                    self._after_abort(auditor, path, model)
            except Mismatch as found:
                return Verdict("wrong", found.reader, str(found), at)
        return Verdict()

    @staticmethod
    def _after_abort(auditor, path, model):
        if model.on_disk is None:
            if os.path.exists(path):
                raise Mismatch("abort", "leaves a file that was never flushed")
            return
        auditor.audit(path, model.on_disk, complete=True)

    @staticmethod
    def _after_kill(auditor, path, before, after, at):
        """What was committed is there; a commit that was under way is there or not."""
        verdict = Verdict(at=at, killed=True)
        if after is not None:
            # Variables that wait for values come with a commit of their own.
            after = dataclasses.replace(after, closed=False)
        if not os.path.exists(path) and before is None:
            return verdict
        try:
            if not os.path.exists(path):
                raise Mismatch("kill", "the file does not exist, and a commit had returned")
            auditor.repair(path)
            found = []
            for state, other in ((after, before), (before, after)):
                if state is None:
                    continue
                try:
                    auditor.audit(path, state, other)
                    return verdict
                except Mismatch as mismatch:
                    found.append(mismatch)
            if not found:
                raise Mismatch("kill", "there is a file, and no commit was under way")
            raise Mismatch(found[0].reader, "; nor the state before: ".join(map(str, found)))
        except Mismatch as found:
            return Verdict("wrong", "killed: " + found.reader, str(found), at, True)


def main():
    # Lines that libraries print on stdout must not come between the verdicts.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    judge = Judge()
    try:
        for line in sys.stdin:
            verdict = judge.judge(Program.from_json(line))
            answers.write(json.dumps(dataclasses.asdict(verdict)) + "\n")
            answers.flush()
    finally:
        judge.end()


if __name__ == "__main__":
    main()
