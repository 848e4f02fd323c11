"""The command line as a person types it."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.toy import commit, environment, make_checkout, python, set_param
from vcppo.cli import main
from vcppo.commands.demo import PeakMemory, evaluation_table
from vcppo.config import load_params, load_profile

HEAVY = (
    "torch",
    "verl",
    "ray",
    "transformers",
    "great_expectations",
    "wandb",
    "datasets",
    "sympy",
    "prefect",
    "dvc",
)

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a dvc.yaml, which is all that `config` asks of a checkout."""
    (tmp_path / "dvc.yaml").write_text("stages: {}\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def typed(*arguments: str) -> Callable[[], int]:
    return lambda: main(arguments)


def test_help_lists_the_commands_and_loads_nothing_heavy(root: Path) -> None:
    program = (
        "import sys\nfrom vcppo.cli import main\n"
        "try: main(['--help'])\nexcept SystemExit as end: assert end.code == 0\n"
        f"print('LOADED', [name for name in {HEAVY} if name in sys.modules])\n"
    )
    done = python(root, "-c", program)
    assert "LOADED []" in done.stdout, done.stderr
    for command in ("config", "demo", "lineage"):
        assert f"\n    {command} " in done.stdout


@pytest.mark.parametrize("command", ["config", "demo", "lineage"])
def test_every_command_has_its_help(command: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])
    assert end.value.code == 0 and f"python -m vcppo {command}" in capsys.readouterr().out


def test_an_unknown_command_lists_the_known_ones(capsys: Capture) -> None:
    with pytest.raises(SystemExit) as end:
        main(["lineaje"])
    error = capsys.readouterr().err
    assert end.value.code == 2
    assert "'lineaje'" in error and "'config', 'demo'" in error and "'lineage'" in error


def test_a_users_mistake_is_one_message_without_traceback_and_its_exit_code(root: Path) -> None:
    done = python(root, "-m", "vcppo", "config", "show", "--profile", "tyni")
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("vcppo config: profile: got 'tyni', allowed are ")
    assert "Traceback" not in done.stderr


def test_a_reader_that_goes_away_is_no_error(root: Path) -> None:
    # more than a pipe holds, to a reader that has closed its end already
    program = (
        "import os, subprocess, sys\n"
        "read, write = os.pipe(); os.close(read)\n"
        "sys.exit(subprocess.call([sys.executable, '-m', 'vcppo', 'config', 'show'], stdout=write))\n"
    )
    done = python(root, "-c", program)
    assert done.returncode == 141 and done.stderr == ""


FULL = "standard output: no space left on the device; free some and run again"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device that is always full")
@pytest.mark.parametrize("unbuffered", ["", "1"])
@pytest.mark.parametrize(
    ("redirection", "code", "message"),
    [
        (">/dev/full", 6, FULL),
        (">/dev/full 2>&1", 6, ""),
        (">&-", 6, "standard output is closed"),
        ("1</dev/null", 6, "standard output: cannot be written: Bad file descriptor"),
        (">/dev/null 2>&-", 0, ""),
    ],
)
def test_output_that_cannot_be_written_is_one_message_and_code_6(
    root: Path, tmp_path: Path, redirection: str, code: int, message: str, unbuffered: str
) -> None:
    line = json.dumps({"id": 1, "response": "Answer: 1", "gold": "1"})
    (tmp_path / "answers.jsonl").write_text(f"{line}\n" * 300)  # more than a buffer holds
    for command in ("config list", f"grade --benchmark aime {tmp_path}/answers.jsonl"):
        done = subprocess.run(
            ["sh", "-c", f"{sys.executable} -m vcppo {command} {redirection}"],
            cwd=root,
            env=environment(PYTHONUNBUFFERED=unbuffered),
            capture_output=True,
            text=True,
        )
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr
        assert message in done.stderr and done.stdout == ""


def test_a_full_output_does_not_hide_a_users_mistake(root: Path, tmp_path: Path) -> None:
    program = (
        "import sys\nfrom vcppo.cli import main\nprint('begun')\n"
        "sys.exit(main(['config', 'show', '--profile', 'tyni']))\n"
    )
    done = subprocess.run(
        ["sh", "-c", 'exec "$0" -c "$1" >/dev/full', sys.executable, program],
        cwd=root,
        env=environment(PYTHONUNBUFFERED=""),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 6
    assert "profile: got 'tyni'" in done.stderr and FULL in done.stderr
    assert "Traceback" not in done.stderr and "Exception ignored" not in done.stderr


def test_a_closed_error_output_does_not_put_the_summary_among_the_lines(root: Path, tmp_path: Path) -> None:
    (tmp_path / "answers.jsonl").write_text(json.dumps({"id": 1, "response": "Answer: 1", "gold": "1"}))
    command = f"{sys.executable} -m vcppo grade --benchmark aime {tmp_path}/answers.jsonl 2>&-"
    done = subprocess.run(
        ["sh", "-c", command], cwd=root, env=environment(), stdout=subprocess.PIPE, text=True
    )
    assert done.returncode == 0
    assert done.stdout == '{"id": 1, "status": "right", "answer": "1"}\n'


def test_config_show_prints_the_resolved_profile_and_reads_back_as_it(here: Path, capsys: Capture) -> None:
    assert main(["config", "show", "--profile", "tiny"]) == 0
    (here / "shown.yaml").write_text(capsys.readouterr().out)
    assert load_params(here / "shown.yaml") == load_profile("tiny")
    assert "gate:" in (here / "shown.yaml").read_text()  # a default that the profile does not write out


def test_config_show_without_a_profile_shows_params_and_names_a_wrong_value(
    here: Path, capsys: Capture
) -> None:
    assert main(["config", "show"]) == 2
    assert "params.yaml: there is no such file" in capsys.readouterr().err
    main(["config", "use", "tiny"])
    set_param(here, "lam_actor: 0.95", "lam_actor: 1.95")
    assert main(["config", "show"]) == 2
    error = capsys.readouterr().err
    assert "train.gae.lam_actor" in error and "1.95" in error
    set_param(here, "lam_actor: 1.95", "lam_actor: 0.25")
    assert main(["config", "show"]) == 0
    assert "lam_actor: 0.25" in capsys.readouterr().out


def test_config_use_goes_from_profile_to_profile_but_not_over_edited_values(
    here: Path, capsys: Capture
) -> None:
    other = "smollm2-135m"
    assert main(["config", "use", "tiny"]) == 0
    assert main(["config", "use", other]) == 0
    assert load_params() == load_profile(other)
    assert main(["config", "use", "tiny"]) == 0
    set_param(here, "seed: 1", "seed: 7")
    edited = (here / "params.yaml").read_text()
    capsys.readouterr()
    assert main(["config", "use", other]) == 2
    assert f"config use {other} --force" in capsys.readouterr().err
    assert (here / "params.yaml").read_text() == edited
    assert main(["config", "use", other, "--force"]) == 0
    assert load_params() == load_profile(other)
    assert sorted(p.name for p in here.iterdir()) == ["dvc.yaml", "params.yaml"]


def test_config_use_keeps_a_file_that_cannot_be_read_as_values(here: Path, capsys: Capture) -> None:
    (here / "params.yaml").write_text("seed: [")
    assert main(["config", "use", "tiny"]) == 2
    assert "somebody edited them" in capsys.readouterr().err
    assert (here / "params.yaml").read_text() == "seed: ["


def test_config_use_outside_a_checkout_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["config", "use", "tiny"]) == 2
    assert "holds no dvc.yaml" in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_config_list_marks_the_current_profile(here: Path, capsys: Capture) -> None:
    main(["config", "use", "tiny"])
    capsys.readouterr()
    assert main(["config", "list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "* tiny" in lines and "  smollm2-135m" in lines
    set_param(here, "seed: 1", "seed: 7")
    main(["config", "list"])
    assert "*" not in capsys.readouterr().out


def test_lineage_without_records_is_a_message_and_code_3(here: Path, capsys: Capture) -> None:
    assert main(["lineage", "models/policy"]) == 3
    assert "there are no run records" in capsys.readouterr().err


def test_the_evaluation_table_has_a_row_for_each_benchmark_with_intervals() -> None:
    row = {"average_at_k": 0.5, "interval_95": [0.4, 0.6], "num_problems": 8, "samples_per_problem": 4}
    table = evaluation_table(
        {"before": {"a": row, "b": row}, "after": {"a": row, "b": {**row, "average_at_k": 0.75}}}
    )
    assert table.row_count == 2
    cells = [list(column.cells) for column in table.columns]
    assert cells[0] == ["a", "b"] and cells[3] == ["8 x 4", "8 x 4"]
    assert cells[1][1] == "0.500 \\[0.400, 0.600]" and cells[2][1].startswith("0.750 ")


def test_peak_memory_counts_children_and_survives_their_end() -> None:
    grabber = "import sys; x = bytearray(200_000_000); print('ready', flush=True); sys.stdin.read()"
    parent = f"import subprocess, sys\nsubprocess.run([sys.executable, '-c', {grabber!r}])\n"
    process = subprocess.Popen(
        [sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout
    process.stdout.readline()
    peak = PeakMemory()
    peak.sample(process.pid)
    assert 200 < peak.megabytes < 600
    before = peak.megabytes
    process.communicate("")
    peak.sample(process.pid)
    assert peak.megabytes == before


@pytest.mark.slow
def test_demo_runs_all_shows_what_came_out_and_lineage_finds_the_sources(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path / "checkout")
    done = python(checkout, "-m", "vcppo", "demo")
    assert done.returncode == 0, done.stderr
    assert "[train] 15/15 (100 %)" in done.stdout
    screen = " ".join(re.sub("[│╭╰─]", " ", done.stdout[done.stdout.index("Trained") :]).split())
    for piece in (
        "vc_ppo",
        "0.500 [0.440, 0.560]",
        "0.875 [0.815, 0.935]",
        "critic from value_pretrained",
        "8 x 4",
    ):
        assert piece in screen
    for piece in ("reports/index.html", "models/policy", "records", "peak resident memory", "Next:"):
        assert piece in screen

    traced = python(checkout, "-m", "vcppo", "lineage", "models/policy", "--json")
    assert traced.returncode == 0, traced.stderr
    lineage = json.loads(traced.stdout)
    assert [run["stage"] for run in lineage["runs"]] == ["train", "prepare"]
    assert lineage["state"] == "unchanged"
    sources = [link["path"] for link in lineage["runs"][1]["inputs"] if link["kind"] == "source"]
    assert sources == ["source.txt"]

    (checkout / "models" / "policy" / "weights.json").write_text("{}")
    changed = python(checkout, "-m", "vcppo", "lineage", "models/policy")
    assert changed.returncode == 3 and "! models/policy: changed since it was recorded" in changed.stdout


@pytest.mark.slow
def test_demo_of_another_profile_runs_committed_code_in_its_workspace(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path / "checkout")
    text = (checkout / "profiles" / "tiny.yaml").read_text()
    (checkout / "profiles" / "tiny2.yaml").write_text(
        text.replace("profile: tiny", "profile: tiny2").replace("num_steps: 15", "num_steps: 5")
    )
    commit(checkout, "second profile")
    done = python(checkout, "-m", "vcppo", "demo", "--profile", "tiny2")
    assert done.returncode == 0, done.stderr
    assert "[train] 5/5" in done.stdout and "runs/tiny2/models/policy" in done.stdout
    assert not (checkout / "models").exists()


@pytest.mark.slow
def test_ctrl_c_in_the_demo_ends_the_stage_and_says_so(tmp_path: Path) -> None:
    checkout = make_checkout(tmp_path / "checkout")
    trouble = tmp_path / "trouble"
    trouble.mkdir()
    (trouble / "wait").touch()
    demo = subprocess.Popen(
        [sys.executable, "-m", "vcppo", "demo"],
        cwd=checkout,
        env=environment(TOY_TROUBLE=str(trouble)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # tests that run in the background of a shell inherit an ignored SIGINT
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert demo.stdout
    for line in demo.stdout:
        if "from step 0" in line:
            break
    demo.send_signal(signal.SIGINT)
    _, error = demo.communicate()
    assert demo.returncode == 130 and error.strip() == "vcppo demo: interrupted"
    lock = python(checkout, "-c", _LEASES)
    assert lock.stdout.strip() == "[False]"


_LEASES = (
    "from pathlib import Path; from vcppo.workdir import is_locked\n"
    "print([is_locked(p) for p in Path('work/train').glob('*/lock')])\n"
)
