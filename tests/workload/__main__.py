"""Run random programs: scripts/workload."""

import argparse
import pathlib
import random
import sys

from .harness import Failure, campaign, replay
from .doors import DOORS
from .files import many_files as files
from .generate import generate
from .language import Program


def main():
    parser = argparse.ArgumentParser(prog="scripts/workload", description=(
        "Run random programs through Tailrace's doors, and hold the files to a model of them."))
    parser.add_argument("--hours", type=float, help="stop after this time")
    parser.add_argument("--programs", type=int, help="stop after so many programs")
    parser.add_argument("--seed", default=str(random.SystemRandom().randrange(10**9)),
                        help="default: a new one, which is printed")
    parser.add_argument("--first", type=int, default=0, help="begin with this program of the seed")
    parser.add_argument("--door", action="append", choices=DOORS,
                        help="repeatable; default: all in turn")
    parser.add_argument("--failures", type=int, default=10, help="stop after so many (default 10)")
    parser.add_argument("--shrink-seconds", type=float, default=60)
    parser.add_argument("--replay", type=pathlib.Path, help="run the program of this file alone")
    parser.add_argument("--show", help="print the program of a seed, such as 7:12, and stop")
    parser.add_argument("--files", action="store_true",
                        help="random files along the routes of verbs and readers, not programs")
    parser.add_argument("--route", action="append", choices=files.ROUTES,
                        help="with --files; repeatable; default: all in turn")
    words = parser.parse_args()
    if words.files:
        return run_files(words)
    doors = words.door or list(DOORS)
    lacking = {door: DOORS[door].missing() for door in doors}
    for door, what in lacking.items():
        if what:
            print(f"door {door} is left out: {what}", file=sys.stderr)
    doors = [door for door in doors if not lacking[door]]
    if words.show:
        for door in doors:
            print(generate(words.show, door, DOORS[door].TRAITS))
        return 0
    if words.replay:
        text = words.replay.read_text()
        verdict = replay(text)
        print(Failure(Program.from_json(text), verdict) if verdict.failed else verdict.kind)
        return verdict.kind != "ok"
    if words.hours is None and words.programs is None:
        words.hours = 1 / 60
    print(f"seed {words.seed}, doors {', '.join(doors)}", flush=True)
    counts = campaign(doors, words.seed, programs=words.programs, failures_max=words.failures,
                      seconds=words.hours and words.hours * 3600, shrink_s=words.shrink_seconds,
                      first=words.first, report=lambda failure: print(failure, flush=True))
    print(counts)
    return bool(counts.failures)


def run_files(words):
    if words.replay:
        end, findings, why = files.replay(words.replay.read_text())
        print(end, why, *findings, sep="\n")
        return bool(findings)
    if words.hours is None and words.programs is None:
        words.hours = 1 / 60
    print(f"seed {words.seed}", flush=True)
    counts = files.campaign(
        words.seed, files=words.programs, seconds=words.hours and words.hours * 3600,
        routes=words.route, first=words.first, failures_max=words.failures,
        shrink_s=words.shrink_seconds, report=lambda failure: print(failure, flush=True))
    print(counts)
    return bool(counts.failures)


if __name__ == "__main__":
    sys.exit(main())
