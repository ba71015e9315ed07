"""Runs a program through its door and on the model, and audits the file after each commit.

    python -m workload.judge        programs in JSON, one per line; verdicts in the same form

A judge is a separate process, because readers may crash as well; harness.py starts it.
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
from .doors import DOORS, Died, fault_words
from .language import COMMITS, Program
from .model import Invalid, Model
from .verdict import Verdict


def decoded(array):
    """The values of an answer, decoded from base64."""
    import base64  # noqa: PLC0415
    raw = base64.b64decode(array["data"])
    return np.frombuffer(raw, array["dtype"]).reshape(array["shape"])


class Judge:
    """Doors that stay open for any number of programs."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="workload_")
        self.doors = {}
        self.program = os.environ.get("TAILRACE", "tailrace")

    def end(self):
        for door in self.doors.values():
            door.end()
        shutil.rmtree(self.folder, ignore_errors=True)

    def door_for(self, name, ranks):
        if (name, ranks) not in self.doors:
            self.doors[name, ranks] = DOORS[name](name, ranks, self.folder)
        return self.doors[name, ranks]

    def judge(self, program):
        folder = tempfile.mkdtemp(dir=self.folder)
        run = Run(self, program, folder)
        try:
            return run.perform()
        finally:
            with contextlib.suppress(Died):
                if run.door.is_running:
                    run.door.do({"op": "reset"})
            shutil.rmtree(folder, ignore_errors=True)


class Run:
    """One program on its door and on the model."""

    def __init__(self, judge, program, folder):
        self.judge, self.program = judge, program
        self.path = os.path.join(folder, "file.nc")
        self.door = judge.door_for(program.door, program.ranks)
        self.model = Model(program.ranks, self.door.TRAITS)
        self.auditor = Auditor(folder, judge.program)
        faults = [op for op in program.ops if op["op"] == "fault"]
        self.fault = faults[0] if faults else None
        self.refusal_due = False

    def perform(self):
        died = self._begin(self.fault)
        if died is not None:
            return died
        for at, op in enumerate(self.program.ops):
            if op["op"] == "fault":
                continue
            verdict = self._step(at, op)
            if verdict is not None:
                return verdict
        return self._end()

    def _known(self):
        """Definitions of the dimensions and variables of the file on disk."""
        on_disk = self.model.on_disk
        return [] if on_disk is None else [
            *({"op": "dim", "name": name, "size": None if unlimited else n, "length": n}
              for name, (n, unlimited) in on_disk.dims.items()),
            *(variable.op for variable in on_disk.variables.values())]

    def _begin(self, fault):
        try:
            self.door.do({"op": "begin", "path": self.path, "ops": self.program.ops,
                          "fault": fault, "fault_words": fault and fault_words(fault),
                          "known": self._known()})
        except Died as death:
            return Verdict("crash", death.what, str(death), 0)
        return None

    def _step(self, at, op):
        """Perform one operation. @returns a verdict if the program ends with it."""
        model, before = self.model, self.model.left_by_crash
        try:
            expected = model.apply(op)
        except Invalid as why:
            return Verdict("invalid", "", str(why), at)
        if op["op"] == "ranks":
            with contextlib.suppress(Died):
                self.door.do({"op": "reset"})
            self.door = self.judge.door_for(self.program.door, op["n"])
            return self._begin(None)
        known = {id(state) for state in before}
        states = before + [state for state in model.left_by_crash if id(state) not in known]
        try:
            appends = op["op"] == "open" and op["mode"] == "a"
            answer = self.door.do({**op, "known": self._known()} if appends else op)
        except Died as death:
            if self.fault and self.fault["kind"] == "kill" and death.was_killed:
                return self._after_fault("kill", states, at)
            return Verdict("crash", death.what, str(death), at)
        if op["op"] == "badput":
            self.refusal_due = self.door.TRAITS.steps  # The next step fails on all ranks.
            accepted = "error" not in answer and not self.refusal_due
            return Verdict("wrong", "bad put", "is accepted", at) if accepted else None
        if op["op"] == "abort":
            self.refusal_due = False
        if "error" in answer:
            if answer["error"] != "RanksDiffer" and self.refusal_due:
                return self._after_error("badput", before, at)
            if answer["error"] != "RanksDiffer" and self._fault_has_come():
                return self._after_error(self.fault["kind"], states, at)
            text = f"{answer['error']}: {answer['text']}"
            return Verdict("error", answer["error"], f"{text}\n{answer.get('where', '')}", at)
        if not self.door.TRAITS.crash_safe and self._fault_has_come():
            return Verdict(at=at, fault=self.fault["kind"])  # HDF5 itself may lose buffered data.
        if self.refusal_due and op["op"] in (*COMMITS, "step"):
            return Verdict("wrong", "bad put", "is accepted", at)
        try:
            self._compare(op, answer, expected, last=at + 1 == len(self.program.ops))
        except Mismatch as found:
            return Verdict("wrong", found.reader, str(found), at)
        return None

    def _compare(self, op, answer, expected, last):
        if op["op"] == "get":
            variable = self.model.now.variables[op["name"]]
            compare("get", variable, np.asarray(expected[0]), decoded(answer["array"]),
                    np.asarray(expected[1]))
        elif op["op"] == "read":
            variable = self.model.on_disk.variables[op["name"]]
            for values, (wanted, tolerance) in zip(answer["slabs"], expected):
                raw = np.frombuffer(bytes.fromhex(values), wanted.dtype)
                if raw.size != wanted.size:
                    raise Mismatch("Reader", f"{variable.name}: {raw.size} of {wanted.size}")
                compare("Reader", variable, wanted, raw.reshape(wanted.shape), tolerance)
        elif op["op"] in COMMITS:
            self.auditor.audit(self.path, self.model.on_disk, complete=op["op"] == "close",
                               last=last)
        elif op["op"] == "abort":
            self._after_abort(self.auditor, self.path, self.model)

    # --- faults -----------------------------------------------------------------------------------

    def _fault_has_come(self):
        return self.fault is not None and self.fault["kind"] not in ("kill", "stop") and (
            self.door.fault_happened())

    def _end(self):
        if self.fault is None or not self.door.fault_happened():
            return Verdict()
        if self.fault["kind"] == "sync":
            return Verdict("wrong", "fsync", "an fsync has failed, and no call has said so",
                           len(self.program.ops) - 1, self.fault["kind"])
        return Verdict(fault=self.fault["kind"])

    def _after_error(self, kind, states, at):
        """Handle a call that failed as expected: the program abandons the file."""
        try:
            self.door.do({"op": "reset"})
        except Died as death:
            return Verdict("crash", death.what, f"after an error: {death}", at, kind)
        return self._after_fault(kind, states, at)

    def _after_fault(self, kind, states, at):
        """Check that committed data exist. A commit that was in progress is either present or
        absent."""
        verdict = Verdict(at=at, fault=kind)
        if not self.door.TRAITS.crash_safe:
            return verdict
        # Variables that wait for values appear with a later commit.
        states = [state and dataclasses.replace(state, closed=False) for state in states]
        if not os.path.exists(self.path) and states[0] is None:
            return verdict
        try:
            if not os.path.exists(self.path):
                raise Mismatch("fault", "the file does not exist, and a commit had returned")
            self.auditor.repair(self.path)
            there = [state for state in states if state is not None]
            if not there:
                raise Mismatch("fault", "there is a file, and no commit was under way")
            if self.door.TRAITS.steps:
                self.auditor.audit_parts(self.path, there, states[0] is not None)
            else:
                self._audit_one_of(there)
        except Mismatch as found:
            return Verdict("wrong", f"{kind}: {found.reader}", str(found), at, kind)
        return verdict

    def _audit_one_of(self, states):
        found = []
        for state in reversed(states):
            other = next((one for one in states if one is not state), None)
            try:
                self.auditor.audit(self.path, state, other)
                return
            except Mismatch as mismatch:
                found.append(mismatch)
        raise Mismatch(found[0].reader, "; nor the state before: ".join(map(str, found)))

    @staticmethod
    def _after_abort(auditor, path, model):
        if model.on_disk is None:
            if os.path.exists(path):
                raise Mismatch("abort", "leaves a file that was never flushed")
            return
        auditor.audit(path, model.on_disk, complete=True)


def main():
    # Lines that libraries print on stdout must not mix with the verdicts.
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
