"""Manual pages and completions: they have all options of --help, in the forms of man and shells."""

import re
import shutil
import subprocess

import pytest
from cli_tools import ENVIRONMENT, lab_program, program


PROGRAMS = {"tailrace": program, "tailrace-lab": lab_program}


def run(name, *words, code=0):
    done = subprocess.run([PROGRAMS[name](), *map(str, words)], capture_output=True, text=True,
                          timeout=600, env=ENVIRONMENT)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def commands(name):
    listed = run(name, "--help").stdout.split("\nCommands:\n")[1]
    return re.findall(r"^  ([a-z][a-z-]+)", listed, re.MULTILINE)


def options_of(name, command):
    """Return the short and long option names in a command's --help."""
    lines = [] if command == "bench" else run(name, command, "--help").stdout.splitlines()
    named = [re.match(r"  (-\w)?(?:, )?(--[a-z0-9-]+)?", line) for line in lines]
    return {option for match in named if match for option in match.groups() if option}


@pytest.fixture(scope="module", params=list(PROGRAMS))
def name(request):
    return request.param


@pytest.fixture(scope="module")
def options(name):
    return {command: options_of(name, command) for command in commands(name)}


@pytest.fixture(scope="module")
def pages(name, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages") / "made"
    assert run(name, "--write-pages", folder).stdout == ""
    return folder


def test_who_has_which_command():
    assert commands("tailrace") == ["repack", "concat", "export", "verify", "info", "recover",
                                    "options", "filter-args", "profile", "doctor"]
    assert commands("tailrace-lab") == ["schedule", "simulate", "train-book", "bench"]


def test_there_is_a_page_for_each_command(name, pages, options):
    expected = {f"{name}.1"} | {f"{name}-{command}.1" for command in options}
    assert {path.name for path in (pages / "man1").iterdir()} == expected
    text = (pages / "man1" / f"{name}.1").read_text()
    for command in options:
        assert f"{name}-{command}".replace("-", "\\-") in text
    assert "write" not in re.findall(r"\\-\\-([a-z]+)", text), "the build's own option"


@pytest.mark.skipif(not shutil.which("groff"), reason="no groff")
def test_pages_are_clean_and_hold_every_option(name, pages, options):
    for command, names in options.items():
        page = pages / "man1" / f"{name}-{command}.1"
        done = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-rLL=80n", "-P-cbou", page],
                              capture_output=True, text=True, timeout=600)
        assert done.returncode == 0 and done.stderr == "", done.stderr
        assert max(map(len, done.stdout.splitlines())) <= 80
        said = re.sub(r"\s+", " ", done.stdout)
        missing = {name for name in names if not re.search(rf"(^|[\s,]){name}\b", said)}
        assert not missing, command
        assert "EXIT STATUS" in said and f"{name}-{command} - " in said


SCRIPTS = {"bash": "{}.bash", "zsh": "_{}", "fish": "{}.fish"}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_name_every_option(shell, name, pages, options):
    script = pages / SCRIPTS[shell].format(name)
    for command, names in options.items():
        for option in names:
            word = {"fish": option.replace("--", "-l ") if option.startswith("--")
                    else f"-s {option[1]}",
                    "bash": option, "zsh": f"'*{option}"}[shell]
            assert word in script.read_text(), (command, option)
    if not shutil.which(shell):
        pytest.skip(f"no {shell}")
    done = subprocess.run([shell, "-n", script], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0 and done.stderr == "", done.stderr


@pytest.mark.parametrize("words, completed", [
    (["rep"], ["repack"]), (["--ver"], ["--version"]), (["repack", "--bo"], ["--bound"]),
    (["repack", "in.h5", "--bo"], ["--bound"]), (["repack", "in"], []),
    (["verify", "--co"], ["--concat"]), (["nonsense", "--"], []),
    (["repack", "--codec", "t"], ["trz"]), (["concat", "--layout", "f"], ["front"])])
def test_bash_completes(words, completed, tmp_path):
    run("tailrace", "--write-pages", tmp_path)
    script = tmp_path / "tailrace.bash"
    asked = f'source {script}; COMP_WORDS=(tailrace {" ".join(words)}); COMP_CWORD={len(words)}; '
    done = subprocess.run(["bash", "-c", asked + '_tailrace; echo "${COMPREPLY[@]}"'],
                          capture_output=True, text=True, timeout=600)
    assert done.stderr == "" and done.stdout.split() == completed


def test_what_cannot_be_made_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    done = run("tailrace", "--write-pages", tmp_path / "file" / "made", code=3)
    assert done.stderr.count("cannot write") == 1
