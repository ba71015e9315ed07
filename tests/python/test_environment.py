"""A program that runs with more rights than its caller ignores variables of the environment."""

import os
import shutil
import subprocess

import pytest

from cli_tools import ENVIRONMENT, lab_program


def simulate(path):
    done = subprocess.run([path, "simulate", "--ranks", "1", "--iterations", "1"],
                          capture_output=True, text=True, timeout=120, check=False,
                          env={**ENVIRONMENT, "TAILRACE_PROFILE": "/no/such/profile"})
    return done.returncode, done.stderr


def test_a_set_uid_program_ignores_its_environment(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can give a file to another user")
    assert "/no/such/profile" in simulate(lab_program())[1]
    other = shutil.copy(lab_program(), tmp_path / "tailrace-lab")
    os.chown(other, 65534, 65534)
    os.chmod(other, 0o4755)
    if os.statvfs(tmp_path).f_flag & os.ST_NOSUID:
        pytest.skip("set-uid has no effect in this file system")
    code, said = simulate(other)
    assert code == 0 and "/no/such/profile" not in said
