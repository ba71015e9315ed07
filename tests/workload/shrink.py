"""Makes a failing program smaller: fewer operations, smaller dimensions, simpler values and
storage.

Each candidate runs. One that fails in the same way replaces the program, until no candidate fails.
Candidates that the model refuses do not run.
"""

import copy
import json
import time

from .doors import DOORS
from .language import Program
from .model import Invalid, Model


def is_valid(program):
    """True if the model accepts the program."""
    model = Model(program.ranks, DOORS[program.door].TRAITS)
    try:
        for op in program.ops:
            model.apply(op)
    except Invalid:
        return False
    return True


def _without(program, drop):
    ops = [op for at, op in enumerate(program.ops) if at not in drop]
    return Program(program.door, ops, program.ranks, program.seed)


def _fewer_ops(program):
    n = len(program.ops)
    size = n // 2
    while size >= 1:
        for first in range(0, n, size):
            yield _without(program, set(range(first, min(n, first + size))))
        size //= 2
    for name in {op["name"] for op in program.ops if op["op"] in ("var", "dim")}:
        yield _without(program, {at for at, op in enumerate(program.ops) if name in (
            op.get("name"), op.get("of")) or name in op.get("dims", ())})


def _with(program, at, **changes):
    ops = list(program.ops)
    ops[at] = {**copy.deepcopy(ops[at]), **changes}
    return Program(program.door, ops, program.ranks, program.seed)


def _plainer_parts(part):
    if part[0] == "i":
        return [["i", at] for at in {0, part[1] // 2, part[1] - 1} if 0 <= at < part[1]]
    if part[0] == "p":
        return [["p", part[1][:-1]], ["p", part[1][1:]], ["i", part[1][0]]] if part[1] else []
    _, start, count, step = part
    found = [["s", start, n, step] for n in (1, count // 2, count - 1) if 0 < n < count]
    found += [["s", start + step, count - 1, step]] if count > 1 else []
    found += [["s", max(0, start), count, 1]] if step != 1 else []
    found += [["s", at, count, step] for at in {0, start // 2, start - 1} if 0 <= at < start]
    return found + ([["i", start]] if count == 1 else [])


def _plainer_ops(program):
    for at, op in enumerate(program.ops):
        for key, plain in (("options", ""), ("settings", None), ("codec", None), ("bound", None),
                           ("chunks", None), ("fill", None), ("style", ""), ("how", ""),
                           ("rank", 0),
                           ("mode", "w"), ("dtype", "f4")):
            if op.get(key, plain) != plain:
                yield _with(program, at, **{key: plain})
        if op["op"] == "dim":
            for size in {1, (op["size"] or 0) // 2, (op["size"] or 0) - 1}:
                if op["size"] and 0 < size < op["size"]:
                    yield _with(program, at, size=size)
        if op.get("chunks"):
            for i, extent in enumerate(op["chunks"]):
                for less in {1, extent // 2, extent - 1}:
                    if 0 < less < extent:
                        yield _with(program, at,
                                    chunks=[*op["chunks"][:i], less, *op["chunks"][i + 1:]])
        for i, part in enumerate(op.get("key", ())):
            for plain in _plainer_parts(part):
                yield _with(program, at, key=[*op["key"][:i], plain, *op["key"][i + 1:]])
        if "values" in op:
            for kind in ("const", "ramp"):
                if op["values"]["kind"] not in ("const", kind):
                    yield _with(program, at, values={"kind": kind, "scale": 1.0, "offset": 5.0})
            for key in ("with_fill", "scale", "offset"):
                if key in op["values"]:
                    yield _with(program, at, values={
                        name: value for name, value in op["values"].items() if name != key})
        if op["op"] == "fault" and op["call"] > 1:
            for call in {op["call"] // 2, op["call"] - 1}:
                yield _with(program, at, call=call)


def _without_dimension(program):
    """The program with one dimension of one variable removed."""
    for at, op in enumerate(program.ops):
        for i in range(len(op["dims"]) if op["op"] == "var" else 0):
            smaller = copy.deepcopy(program)
            for other in smaller.ops:
                if other.get("name") != op["name"]:
                    continue
                for key in ("dims", "key", "chunks"):
                    if other.get(key):
                        del other[key][i]
            yield smaller


def _fewer_ranks(program):
    for ranks in range(1, program.ranks):
        smaller = copy.deepcopy(program)
        smaller.ranks = ranks
        for op in smaller.ops:
            if op.get("rank", 0) >= ranks:
                op["rank"] = 0
        yield smaller


def shrink(program, verdict, run, seconds=60, allow_ranks=()):
    """A small program that fails like `program`.

    run: maps a program to its verdict. @returns the program and its verdict.
    """
    end = time.monotonic() + seconds
    tried = {program.to_json()}
    cut = _without(program, set(range(verdict.at + 1, len(program.ops))))
    best, best_verdict = program, verdict
    steps = (lambda p: iter([cut]), _fewer_ops, _fewer_ranks, _without_dimension, _plainer_ops)
    changed = True
    while changed and time.monotonic() < end:
        changed = False
        for step in steps:
            again = True
            while again and time.monotonic() < end:
                again = False
                for candidate in step(best):
                    text = candidate.to_json()
                    if text in tried or time.monotonic() > end:
                        continue
                    tried.add(text)
                    if candidate.ranks != best.ranks and candidate.ranks not in allow_ranks:
                        continue
                    if len(text) > len(best.to_json()) + 8 or not is_valid(candidate):
                        continue
                    found = run(candidate)
                    if found.failed and found.same_as(verdict):
                        best, best_verdict = candidate, found
                        changed = again = True
                        break
    return Program(best.door, json.loads(json.dumps(best.ops)), best.ranks, best.seed), best_verdict
