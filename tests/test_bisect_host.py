"""`tfenv bisect` itself: with the real uv, real virtual environments, and an index of tiny wheels."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from math import ceil, log2
from pathlib import Path

import pytest
from bisect_index import Index, served
from tfenv import cli
from tfenv.freeing import free
from tfenv.store import Store

BREAKS, VERSION = "p7", "1.2"
CHECK = "import importlib, sys\nfor n in range(8): importlib.import_module(f'p{n}')\n"
many = pytest.mark.parametrize("packages", [40])


def day(number: int) -> str:
    return f"2024-{1 + number // 28:02}-{1 + number % 28:02}T12:00:00Z"


@pytest.fixture
def packages() -> int:
    """How many packages there are, where the number is of no importance."""
    return 10


@pytest.fixture
def index(packages: int) -> Iterator[Index]:
    """Packages with three or four releases over half a year; from one release on one of them is broken."""
    chance = random.Random(5)
    with served() as index:
        for number in range(packages):
            name = f"p{number}"
            days = [0, *sorted(chance.sample(range(5, 160), chance.randint(2, 3)))]
            for minor, on in enumerate(days):
                broken = name == BREAKS and minor >= 2
                code = "raise ImportError('p7 has lost a name')\n" if broken else ""
                index.add(name, f"1.{minor}", day(on), code)
        yield index


@pytest.fixture
def place(tmp_path: Path, index: Index, packages: int, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with requirements and a check, and an environment that only knows the index."""
    for name in list(os.environ):
        if name.startswith(("UV_", "PIP_", "TFENV_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"{index.url}/simple")
    monkeypatch.setenv("UV_NO_CONFIG", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("TFENV_CACHE", str(tmp_path / "cache"))
    here = tmp_path / "here"
    here.mkdir()
    (here / "requirements.in").write_text("".join(f"p{n}\n" for n in range(packages)))
    (here / "check.py").write_text(CHECK)
    monkeypatch.chdir(here)
    return here


DATES = ["-r", "requirements.in", "--good", "2024-01-03", "--bad", "2024-07-01"]


@many
def test_a_release_among_forty_packages_by_dates(
    place: Path, index: Index, packages: int, capfd: pytest.CaptureFixture[str]
) -> None:
    assert cli.run(["bisect", *DATES, "--json", "--", "python", "check.py"]) == 0
    out, err = capfd.readouterr()
    found = json.loads(out)
    (culprit,) = found["culprits"]
    assert culprit["changes"] == [{"name": BREAKS, "before": "1.1", "after": VERSION}]
    assert culprit["why"].endswith("ImportError: p7 has lost a name")
    assert (found["constraints"], found["constraints_tested"]) == ([f"{BREAKS}<{VERSION}"], "good")
    releases = len(index.files) - packages
    assert found["counts"]["builds"] <= 2 + ceil(log2(releases + 1)) + 3
    assert f"{BREAKS}==1.1" in found["last_good"] and f"{BREAKS}=={VERSION}" in found["first_bad"]
    folder = Path(found["folder"])
    lock = (folder / "last-good.txt").read_text()
    assert f"{BREAKS}==1.1 --hash=sha256:{index.hash(BREAKS, '1.1')}" in lock
    assert (folder / "constraints.txt").read_text() == f"{BREAKS}<{VERSION}\n"
    assert not (folder / "env").exists()
    assert "bisection" in err

    index.asked.clear()
    store = Store(place.parent / "cache")
    with store.lock():
        pass
    free(store, set())  # it is tfenv's own, although a bisection came first, and that is no garbage
    assert cli.run(["bisect", "--resume"]) == 0
    out, err = capfd.readouterr()
    assert f"keep it out with:\n\n    {BREAKS}<{VERSION}" in out
    assert "paste it into requirements.in" in out
    assert "answers are known" in err
    assert not index.asked  # all of it is in the journal


def freeze(index: Index, newest: bool, *, hashes: bool) -> str:
    lines = []
    for number in range(len({name.split("-")[0] for name in index.files})):
        mine = [f.split("-")[1] for f in index.files if f.startswith(f"p{number}-")]
        version = max(mine) if newest else min(mine)
        end = f" --hash=sha256:{index.hash(f'p{number}', version)}" if hashes else ""
        lines.append(f"p{number}=={version}{end}")
    return "\n".join(lines) + "\n"


@many
@pytest.mark.parametrize("hashes", [True, False], ids=["with hashes", "as pip freeze"])
def test_two_files_of_pins(
    place: Path, index: Index, capfd: pytest.CaptureFixture[str], hashes: bool
) -> None:
    (place / "old.txt").write_text(freeze(index, newest=False, hashes=hashes))
    (place / "new.txt").write_text(freeze(index, newest=True, hashes=hashes))
    ends = ["--good", "old.txt", "--bad", "new.txt"]
    assert cli.run(["bisect", *ends, "--json", "--", "python", "check.py"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["culprits"][0]["changes"] == [{"name": BREAKS, "before": "1.1", "after": VERSION}]
    assert found["constraints"] == [f"{BREAKS}<{VERSION}"]
    assert found["constraints_tested"] == "good"


def test_killed_in_the_middle_it_goes_on(
    place: Path, index: Index, capfd: pytest.CaptureFixture[str]
) -> None:
    """The command notes every run; the fourth one kills tfenv itself, the way nothing can be cleaned up."""
    (place / "check.py").write_text(
        CHECK.replace(
            "\nfor",
            "\nimport os, pathlib, signal\n"
            "runs = pathlib.Path('runs'); n = len(runs.read_text()) if runs.exists() else 0\n"
            "runs.write_text('x' * (n + 1))\n"
            "if n == 3: os.kill(int(pathlib.Path('pid').read_text()), signal.SIGKILL); import time; "
            "time.sleep(60)\n"
            "for",
            1,
        )
    )
    command = [sys.executable, "-c", "from tfenv.cli import main; main()"]
    typed = ["bisect", *DATES, "--json", "--", "python", "check.py"]
    shell = f'echo $$ > {place}/pid; exec "$@"'
    done = subprocess.run(["sh", "-c", shell, "sh", *command, *typed], capture_output=True, check=False)
    assert done.returncode == -signal.SIGKILL
    journal = next((place.parent / "cache" / "bisect").glob("*/journal.jsonl"))
    known = sum("verdict" in json.loads(line) for line in journal.read_text().splitlines())
    assert known == 3
    assert cli.run(typed) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["constraints"] == [f"{BREAKS}<{VERSION}"]
    # The one that was killed is the only one that ran twice.
    assert len((place / "runs").read_text()) == found["counts"]["tests"] + 1
    for line in subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout.splitlines():
        assert str(place) not in line


def test_ctrl_c_leaves_nothing_running(place: Path) -> None:
    (place / "check.py").write_text(
        "import os, time\nopen('up', 'w').write(str(os.getpid()))\ntime.sleep(99)"
    )
    command = [sys.executable, "-c", "from tfenv.cli import main; main()", "bisect", *DATES]
    process = subprocess.Popen([*command, "--", "python", "check.py"], stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + 60
    while not ((place / "up").exists() and (place / "up").read_text()) and time.monotonic() < until:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + signal.SIGINT
    assert "type the command again to go on" in err
    assert not Path("/proc", (place / "up").read_text()).exists()
    assert not list((place.parent / "cache" / "bisect").glob("*/env"))


@pytest.mark.parametrize(
    ("command", "code", "match"),
    [
        (["no-such-program"], 1, "was not found"),
        (["true"], 1, "was to be bad"),
        (["false"], 1, "was to be good"),
        (["sh", "-c", "exit 125"], 1, "cannot be judged"),
        (["sh", "-c", "kill -KILL $$"], 1, "ended by SIGKILL"),
        ([], 2, "no command is given"),
    ],
)
def test_hostile_commands(
    place: Path, capfd: pytest.CaptureFixture[str], command: list[str], code: int, match: str
) -> None:
    assert cli.run(["bisect", *DATES, "--json", "--", *command]) == code
    out, err = capfd.readouterr()
    assert match in err
    assert json.loads(out)["error"]["exit_code"] == code


def test_the_command_sees_its_environment_and_nothing_else(
    place: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (place / "elsewhere").mkdir()
    (place / "elsewhere" / "intruder.py").write_text("")
    monkeypatch.setenv("PYTHONPATH", str(place / "elsewhere"))
    (place / "look.py").write_text(
        "import os, shutil, sys\n"
        "assert sys.prefix == os.environ['VIRTUAL_ENV'] and sys.prefix.endswith('/env'), sys.prefix\n"
        "assert shutil.which('python').startswith(sys.prefix)\n"
        "assert os.getcwd().endswith('/here')\n"
        "try: import intruder\n"
        "except ImportError: pass\n"
        "else: raise SystemExit('it is here')\n"
        "import p7\n"
    )
    assert cli.run(["bisect", *DATES, "--", "python", "look.py"]) == 0
    assert f"{BREAKS}<{VERSION}" in capfd.readouterr().out


def test_a_wheel_with_a_changed_byte_is_not_installed(
    place: Path, index: Index, capfd: pytest.CaptureFixture[str]
) -> None:
    text = freeze(index, newest=True, hashes=True)
    (place / "old.txt").write_text(freeze(index, newest=False, hashes=True))
    (place / "new.txt").write_text(text.replace(index.hash("p3", max_version(index, "p3")), "0" * 64))
    ends = ["--good", "old.txt", "--bad", "new.txt"]
    assert cli.run(["bisect", *ends, "--", "python", "check.py"]) == 1
    assert "no index has the files any more of p3==" in capfd.readouterr().err


def max_version(index: Index, name: str) -> str:
    return max(f.split("-")[1] for f in index.files if f.startswith(f"{name}-"))


def test_an_index_that_is_down_is_no_verdict(
    place: Path, index: Index, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    assert cli.run(["bisect", *DATES, "--", "python", "check.py"]) == 4
    assert "cannot be reached" in capfd.readouterr().err
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"{index.url}/simple")
    assert cli.run(["bisect", *DATES, "--", "python", "check.py"]) == 0


def test_a_host_without_that_python(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["bisect", *DATES, "--python", "3.77", "--", "true"]) == 4
    assert "no Python 3.77" in capfd.readouterr().err


def test_fresh_forgets(place: Path, capfd: pytest.CaptureFixture[str]) -> None:
    typed = ["bisect", *DATES, "--", "true"]
    assert cli.run(typed) == cli.run(typed) == 1
    assert "answers are known" in capfd.readouterr().err
    assert cli.run([*typed[:1], "--fresh", *typed[1:]]) == 1
    assert "answers are known" not in capfd.readouterr().err
