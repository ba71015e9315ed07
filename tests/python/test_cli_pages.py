"""Manual pages and completions: whatever --help knows, in the words that man and shells take."""

import re
import shutil
import subprocess

import pytest
from cli_tools import tailrace


def commands():
    listed = tailrace("--help").stdout.split("\nCommands:\n")[1]
    return re.findall(r"^  ([a-z][a-z-]+)", listed, re.MULTILINE)


def options_of(command):
    """The names in a command's --help, short and long."""
    lines = [] if command == "bench" else tailrace(command, "--help").stdout.splitlines()
    named = [re.match(r"  (-\w)?(?:, )?(--[a-z0-9-]+)?", line) for line in lines]
    return {name for match in named if match for name in match.groups() if name}


@pytest.fixture(scope="module")
def options():
    return {command: options_of(command) for command in commands()}


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages") / "made" / "man1"
    assert tailrace("man", folder, ranks=2).stdout == ""
    return folder


def test_there_is_a_page_for_each_command(pages, options):
    assert {"repack", "concat", "man", "completions"} <= set(options)
    expected = {"tailrace.1"} | {f"tailrace-{command}.1" for command in options}
    assert {path.name for path in pages.iterdir()} == expected
    text = (pages / "tailrace.1").read_text()
    for command in options:
        assert f"tailrace\\-{command.replace('-', chr(92) + '-')}" in text


@pytest.mark.skipif(not shutil.which("groff"), reason="no groff")
def test_pages_are_clean_and_hold_every_option(pages, options):
    for command, names in options.items():
        page = pages / f"tailrace-{command}.1"
        done = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-rLL=80n", "-P-cbou", page],
                              capture_output=True, text=True, timeout=600)
        assert done.returncode == 0 and done.stderr == "", done.stderr
        assert max(map(len, done.stdout.splitlines())) <= 80
        said = re.sub(r"\s+", " ", done.stdout)
        missing = {name for name in names if not re.search(rf"(^|[\s,]){name}\b", said)}
        assert not missing, command
        assert "EXIT STATUS" in said and f"tailrace-{command} - " in said


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_name_every_option(shell, options, tmp_path):
    script = tmp_path / "completions"
    script.write_text(tailrace("completions", shell, ranks=2).stdout)
    assert script.read_text().count(f"completions {shell}\n") == 1, "one rank speaks"
    for command, names in options.items():
        for name in names:
            word = {"fish": name.replace("--", "-l ") if name.startswith("--") else f"-s {name[1]}",
                    "bash": name, "zsh": f"'*{name}"}[shell]
            assert word in script.read_text(), (command, name)
    if not shutil.which(shell):
        pytest.skip(f"no {shell}")
    done = subprocess.run([shell, "-n", script], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0 and done.stderr == "", done.stderr


@pytest.mark.parametrize("words, completed", [
    (["rep"], ["repack"]), (["--ver"], ["--version"]), (["repack", "--bo"], ["--bound"]),
    (["repack", "in.h5", "--bo"], ["--bound"]), (["repack", "in"], []),
    (["verify", "--co"], ["--concat"]), (["nonsense", "--"], [])])
def test_bash_completes(words, completed, tmp_path):
    script = tmp_path / "completions"
    script.write_text(tailrace("completions", "bash").stdout)
    asked = f'source {script}; COMP_WORDS=(tailrace {" ".join(words)}); COMP_CWORD={len(words)}; '
    done = subprocess.run(["bash", "-c", asked + '_tailrace; echo "${COMPREPLY[@]}"'],
                          capture_output=True, text=True, timeout=600)
    assert done.stderr == "" and done.stdout.split() == completed


def test_what_cannot_be_made_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    done = tailrace("man", tmp_path / "file" / "man1", ranks=2, code=3)
    assert done.stderr.count("cannot write") == 1
    assert "tcsh" in tailrace("completions", "tcsh", code=2).stderr
