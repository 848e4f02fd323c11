"""Rules about the repository itself: cheap imports, small files, pins that agree."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
CHEAP_ROOMS = ("flows", "tasks", "vcppo")
HEAVY = {
    "torch", "verl", "ray", "transformers", "datasets", "great_expectations", "wandb", "math_verify", "sympy",
    "tensordict", "accelerate", "numba",
}  # fmt: skip
PIN = re.compile(r"^([A-Za-z0-9_.\-]+)(?:\[[^\]]*\])?==([^\s;#]+)", re.MULTILINE)


def tracked(*patterns: str) -> list[Path]:
    """Files in git, and new ones that git does not ignore: about to be tracked."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True)
    paths = [ROOT / name for name in done.stdout.decode().split("\0") if name]
    return [path for path in paths if path.is_file()]


def pins(path: str) -> dict[str, str]:
    """Exact pins of a requirements file by canonical name."""
    found = PIN.findall((ROOT / path).read_text(encoding="utf-8"))
    return {canonical(name): version for name, version in found}


def canonical(requirement: str) -> str:
    """Canonical name of the package that a requirement asks for."""
    return re.sub(r"[-_.]+", "-", re.split(r"[\[<>=!~ ;]", requirement)[0]).lower()


def imported(node: ast.AST) -> list[str]:
    """Top-level packages that an import statement names; none for relative imports and other nodes."""
    if isinstance(node, ast.Import):
        return [alias.name.split(".")[0] for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return [node.module.split(".")[0]]
    return []


def imports_when_loaded(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Line and top-level package of each import that runs when the module is imported: not in a function, not
    under `if TYPE_CHECKING`."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING"):
            continue
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield from ((node.lineno, name) for name in imported(node))
        else:
            yield from imports_when_loaded(node)


def test_imports_when_loaded_sees_through_classes_and_try_but_not_functions() -> None:
    source = (
        "if TYPE_CHECKING:\n    import torch\n"
        "def f():\n    import verl\n"
        "class A:\n    import ray\n"
        "try:\n    from wandb.sdk import x\nexcept ImportError:\n    pass\n"
    )
    assert [name for _, name in imports_when_loaded(ast.parse(source))] == ["ray", "wandb"]


def test_flows_tasks_and_vcppo_import_nothing_heavy_at_module_level() -> None:
    bad = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in tracked(*(f"{room}/*.py" for room in CHEAP_ROOMS))
        for line, name in imports_when_loaded(ast.parse(path.read_text(encoding="utf-8")))
        if name in HEAVY
    ]
    assert bad == []


def entry_points() -> list[str]:
    """Modules whose import must be cheap: packages, stage runners, commands."""
    modules = [
        path.relative_to(ROOT).with_suffix("").parts
        for path in tracked(*(f"{room}/*.py" for room in CHEAP_ROOMS))
    ]
    shallow = [parts for parts in modules if len(parts) == 2 or parts[:2] == ("vcppo", "commands")]
    return [".".join(parts).removesuffix(".__init__") for parts in shallow if parts[-1] != "__main__"]


def test_entry_points_import_nothing_heavy_by_any_road() -> None:
    modules = entry_points()
    assert {"vcppo", "vcppo.cli", "vcppo.commands.demo", "tasks.stage"} <= set(modules)
    program = (
        "import importlib, json, sys\n"
        "loaded = {}\n"
        "for name in sys.argv[2:]:\n"
        "    importlib.import_module(name)\n"
        "    for heavy in set(sys.argv[1].split(',')) & set(sys.modules) - set(loaded):\n"
        "        loaded[heavy] = name\n"
        "print(json.dumps(loaded))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, ",".join(sorted(HEAVY)), *modules],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "{}", "heavy module: the import that loaded it"


def test_no_python_file_exceeds_350_lines() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in tracked("*.py")
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > 350
    }
    assert long == {}


def test_no_tracked_file_exceeds_500_kilobytes() -> None:
    large = {
        str(path.relative_to(ROOT)): size for path in tracked() if (size := path.stat().st_size) > 500_000
    }
    assert large == {}


def test_no_tracked_file_names_an_absolute_home_or_work_folder() -> None:
    folder = re.compile(r"(?<![\w.$}/])/(?:work|home|root|Users)/[\w.]")
    named = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in tracked()
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1)
        if folder.search(line)
    ]
    assert named == []


def project() -> dict[str, Any]:
    values: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return values


@pytest.mark.parametrize("constraints", ["constraints.txt", "constraints-gpu.txt"])
def test_every_direct_dependency_is_pinned(constraints: str) -> None:
    pinned = pins(f"requirements/{constraints}")
    needed = list(project()["dependencies"])
    if constraints == "constraints.txt":
        needed += [name for extra in project()["optional-dependencies"].values() for name in extra]
    names = [canonical(name) for name in needed]
    assert [name for name in names if name not in pinned] == []
    exact = dict(PIN.findall("\n".join(needed)))
    assert {name: pinned[canonical(name)] for name in exact} == exact


def test_every_package_that_the_code_imports_is_a_declared_dependency() -> None:
    from importlib.metadata import packages_distributions

    owners = packages_distributions()
    extras = project()["optional-dependencies"]
    declared = {canonical(name) for name in [*project()["dependencies"], *extras["flows"]]}
    # only in the environment of GPU machines
    declared.add("vllm")
    assert "vllm" in pins("requirements/constraints-gpu.txt")
    rooms = {"flows", "tasks", "training", "vcppo", "bench", "tests"}
    undeclared = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in tracked(*(f"{room}/*.py" for room in rooms - {"tests"}))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        for name in imported(node)
        if name not in rooms | sys.stdlib_module_names
        and not declared & {canonical(owner) for owner in owners.get(name, [name])}
    ]
    assert undeclared == []


def test_the_cpu_pin_of_torch_is_no_cuda_or_local_build() -> None:
    assert pins("requirements/constraints.txt")["torch"] == "2.13.0"
    assert "nvidia" not in (ROOT / "requirements" / "constraints.txt").read_text(encoding="utf-8")


def test_gpu_pins_are_those_of_verls_vllm_extra() -> None:
    from importlib.metadata import requires

    wanted = [line.split(";")[0].strip() for line in requires("verl") or [] if 'extra == "vllm"' in line]
    wanted_pins = dict(PIN.findall("\n".join(wanted)))
    assert set(wanted_pins) >= {"torch", "vllm", "transformers"}
    gpu = pins("requirements/constraints-gpu.txt")
    assert {name: gpu[name] for name in wanted_pins} == wanted_pins


def infra(name: str) -> str:
    return (ROOT / "infra" / name).read_text(encoding="utf-8")


def test_infra_manifests_name_the_pinned_versions() -> None:
    cpu, gpu = pins("requirements/constraints.txt"), pins("requirements/constraints-gpu.txt")
    compose = yaml.safe_load(infra("docker-compose.yaml"))
    assert compose["services"]["prefect"]["image"].startswith(
        f"prefecthq/prefect:{cpu['prefect']}-python3.11"
    )
    cluster = yaml.safe_load(infra("raycluster.yaml"))
    assert cluster["kind"] == "RayCluster"
    assert cluster["spec"]["rayVersion"] == cpu["ray"] == gpu["ray"]
    for file in ("Dockerfile.cpu", "Dockerfile.gpu"):
        assert "requirements/constraints" in infra(file)
        assert not re.search(
            r"pip install(?![^\n]*(?:constraints|--no-deps))", infra(file).replace("\\\n", " ")
        )


def test_every_published_port_is_on_the_loopback_and_every_secret_comes_from_the_environment() -> None:
    services = yaml.safe_load(infra("docker-compose.yaml"))["services"]
    ports = [port for service in services.values() for port in service.get("ports", [])]
    assert ports and all(port.startswith("127.0.0.1:") for port in ports)
    settings = [item for service in services.values() for item in service.get("environment", {}).items()]
    secrets = {
        name: str(value) for name, value in settings if re.search("PASSWORD|SECRET|KEY|CONNECTION_URL", name)
    }
    assert secrets and all("${" in value for value in secrets.values())


def test_the_work_pool_template_declares_what_its_job_uses() -> None:
    template = yaml.safe_load(infra("work-pool.json"))  # JSON is YAML
    used = set(re.findall(r"\{\{ *(\w+) *\}\}", str(template["job_configuration"])))
    assert used == set(template["variables"]["properties"])


def test_make_turns_off_every_telemetry_that_tests_turn_off() -> None:
    names = re.findall(
        r'^        "([A-Z_0-9]+)":', (ROOT / "tests" / "conftest.py").read_text(), re.MULTILINE
    )
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert (
        names and [name for name in names if not re.search(rf"^export {name} ", makefile, re.MULTILINE)] == []
    )
