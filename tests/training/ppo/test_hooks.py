"""The contract with verl: each private hook that we rely on is there, with the parameters that we expect."""

from __future__ import annotations

import importlib
import inspect
from importlib.metadata import version
from operator import attrgetter
from typing import Any

import pytest

from training.ppo.hooks import HOOKS, VERL_VERSION, Hook

pytestmark = pytest.mark.slow  # importing verl takes half a minute


def test_the_pinned_verl_is_installed() -> None:
    assert version("verl") == VERL_VERSION


@pytest.mark.parametrize("hook", HOOKS, ids=lambda hook: f"{hook.module.split('.')[-1]}.{hook.attribute}")
def test_hook_is_there_with_its_parameters(hook: Hook) -> None:
    found = attrgetter(hook.attribute)(importlib.import_module(hook.module))
    if hook.parameters is not None:
        assert tuple(inspect.signature(found).parameters) == hook.parameters


def _private_overrides(own: type[Any]) -> set[str]:
    """Underscored methods of ours that some verl class in the bases has too."""
    bases = [base for base in own.__mro__[1:] if base.__module__.startswith("verl.")]
    return {
        name
        for name, value in vars(own).items()
        if inspect.isfunction(value) and name.startswith("_") and not name.startswith("__")
        if any(hasattr(base, name) for base in bases)
    }


def test_every_private_override_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VERL_PLATFORM", "cpu")
    monkeypatch.setenv("VERL_USE_EXTERNAL_MODULES", "training.ppo.cpu_platform")
    from training.ppo import replay_buffer, replica, runner, trainer, workers

    listed = {hook.attribute.split(".")[-1] for hook in HOOKS}
    classes = [
        value
        for module in (replay_buffer, replica, runner, trainer, workers)
        for value in vars(module).values()
        if inspect.isclass(value) and value.__module__ == module.__name__
    ]
    overrides = {name for own in classes for name in _private_overrides(own)}
    assert overrides, "the search itself must find something"
    assert overrides <= listed
