"""Judges files in a process of its own, which a file may end: a line of JSON in, one out."""

import json
import pathlib
import sys
import tempfile
import warnings

from .routes import judge


def main():
    warnings.simplefilter("ignore")
    folder = pathlib.Path(tempfile.mkdtemp(prefix="workload_files_"))
    for line in sys.stdin:
        asked = json.loads(line)
        answer = judge(asked["description"], asked["route"], asked["seed"], folder / "one")
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
