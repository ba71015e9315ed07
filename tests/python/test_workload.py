"""Short runs of the workload: random programs through every door, compared with a model.

tests/workload has the programs' language and the doors. Seeds are fixed, except for a new one,
which is printed. `scripts/workload --seed S` repeats it.
"""

import random
import sys

import pytest

import python_package
from cli_tools import ROOT

python_package.load()
sys.path.insert(0, str(ROOT / "tests"))

from workload import harness  # noqa: E402
from workload.doors import DOORS  # noqa: E402
from workload.generate import generate  # noqa: E402
from workload.language import Program  # noqa: E402
from workload.shrink import shrink  # noqa: E402
from workload.verdict import Verdict  # noqa: E402

#: Number of programs of the fixed seeds, on all doors in turn; the same on every machine.
PROGRAMS, PROGRAMS_OF_FULL = 80, 800
#: Number of programs with faults, many of which need a restart of the door.
FAULTY, FAULTY_OF_FULL = 25, 280
SOUND = [door for door, its in DOORS.items() if not its.TRAITS.faults]


def run(seed, doors=tuple(DOORS), **until):
    doors = [door for door in doors if not DOORS[door].missing()]
    counts = harness.campaign(doors, seed, shrink_s=60, failures_max=3, **until)
    print(f"scripts/workload --seed {seed}: {counts}")
    assert not counts.failures, "\n".join(map(str, counts.failures))


def test_random_programs_of_a_fixed_seed(pytestconfig):
    full = pytestconfig.getoption("--tier") == "full"
    run("fixed", SOUND, programs=PROGRAMS_OF_FULL if full else PROGRAMS)


def test_faults_in_programs_of_a_fixed_seed(pytestconfig):
    """The merge tier tests the doors that start quickly."""
    full = pytestconfig.getoption("--tier") == "full"
    quick = ["array-faults", "steps-faults", "serial-faults"]
    run("faults", [door for door in DOORS if door not in SOUND] if full else quick,
        programs=FAULTY_OF_FULL if full else FAULTY)


# Only in the full tier, because a merge must not fail for an older fault that a new seed reveals.
@pytest.mark.full
def test_random_programs_of_a_new_seed():
    run(str(random.SystemRandom().randrange(10**9)), seconds=120)


@pytest.mark.parametrize("door", DOORS)
def test_every_door_is_there(door):
    """The tests above omit missing doors; this test names them."""
    missing = DOORS[door].missing()
    if missing:
        pytest.skip(missing)


def test_a_seed_gives_one_program():
    for door, its in DOORS.items():
        assert generate("a:7", door, its.TRAITS) == generate("a:7", door, its.TRAITS)


BROKEN = """{"door": "array", "ops": [
    {"op": "open", "mode": "w", "options": "fsync=off"},
    {"op": "dim", "name": "x", "size": 40}, {"op": "dim", "name": "y", "size": 3},
    {"op": "var", "name": "other", "dims": ["y"], "dtype": "i4"},
    {"op": "var", "name": "v", "dims": ["x", "y"], "dtype": "f8", "codec": "deflate"},
    {"op": "put", "name": "other", "key": [["s", 0, 3, 1]], "values": {"kind": "ramp"}},
    {"op": "put", "name": "v", "key": [["s", 0, 40, 1], ["i", 1]], "values": {"kind": "noise"}},
    {"op": "flush"},
    {"op": "attr", "of": "", "name": "p_a", "value": "text"},
    {"op": "CRIME", "name": "v", "key": [["s", 3, 20, 1], ["i", 1]], "values": {"kind": "ramp"}},
    {"op": "close"}]}"""


def test_the_auditor_sees_a_value_that_the_program_did_not_put():
    """The performer receives a put that the model does not, and omits one that the model has."""
    for crime, expected in (("put", "ok"), ("forgotten", "wrong"), ("extra", "wrong")):
        verdict = harness.replay(BROKEN.replace("CRIME", crime))
        assert verdict.kind == expected, verdict
        if expected == "wrong":
            assert verdict.reader == "h5py" and "v[3, 1]" in verdict.text.replace("g/", "")


def test_a_crash_belongs_to_the_program_that_ran():
    judge = harness.JudgeProcess()
    try:
        fine = Program.from_json(BROKEN.replace("CRIME", "put"))
        crashes = Program.from_json(BROKEN.replace("CRIME", "crash"))
        assert [judge.judge(one).kind for one in (fine, crashes, fine)] == ["ok", "crash", "ok"]
        assert judge.judge(crashes).reader == "SIGSEGV"
    finally:
        judge.end()


def test_a_failing_program_becomes_small():
    """Every program that puts a slice into v counts as failing here."""
    def judged(program):
        hit = [at for at, op in enumerate(program.ops)
               if op["op"] == "put" and op["name"] == "v" and op["key"][:1]
               and op["key"][0][0] == "s"]
        return Verdict("wrong", "h5py", at=hit[0]) if hit else Verdict()

    program = Program.from_json(BROKEN.replace("CRIME", "put"))
    small, verdict = shrink(program, judged(program), judged)
    assert verdict.kind == "wrong" and [op["op"] for op in small.ops] == [
        "open", "dim", "var", "put"]
    assert small.ops[1]["size"] == 1 and small.ops[3]["key"] == [["s", 0, 1, 1]]
