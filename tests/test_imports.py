"""What the light commands import is a promise about how fast they answer; what a module needs is a promise too."""

import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import redline

HEAVY = {"httpx2", "huggingface_hub", "numpy", "textual", "xllamacpp", "gguf"}


def modules_after(code: str) -> set[str]:
    """Return the top-level packages that a fresh interpreter has loaded after some code."""
    script = f"import sys\n{code}\nprint(' '.join({{name.partition('.')[0] for name in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split("\n")[-2].split())


def run_command(*words: str) -> str:
    return (
        f"from redline.cli.main import cli\ncli.main({list(words)!r}, standalone_mode=False)"
        if words
        else "import redline.cli.main"
    )


def test_help_loads_click_and_nothing_else_heavy() -> None:
    loaded = modules_after(
        "import contextlib\nfrom redline.cli.main import cli\n"
        "with contextlib.suppress(SystemExit):\n    cli.main(['--help'], standalone_mode=False)"
    )
    assert not loaded & (HEAVY | {"pydantic", "yaml", "rich", "psutil", "asyncio"})
    assert "click" in loaded


@pytest.mark.parametrize(
    "words",
    [
        ("tiers", "--all"),
        ("show", "llamacpp/smollm2-135m-cpu-fast", "--explain"),
        ("plan", "--model", "qwen3.8-27b", "--rig", "2x3090"),
    ],
)
def test_reading_the_catalogue_loads_no_client_and_no_arrays(words: tuple[str, ...]) -> None:
    assert not modules_after(run_command(*words)) & HEAVY


@pytest.mark.parametrize("words", [("ps",), ("down", "--all"), ("logs",)])
def test_looking_after_servers_loads_no_client_and_no_catalogue(words: tuple[str, ...], tmp_path: Path) -> None:
    lines = [
        "import contextlib, os",
        f"os.environ['XDG_STATE_HOME'] = {str(tmp_path)!r}",
        "from redline.cli.main import cli",
        "from redline.errors import RedlineError",
        f"with contextlib.suppress(RedlineError): cli.main({list(words)!r}, standalone_mode=False)",
    ]
    code = "\n".join(lines)
    assert not modules_after(code) & (HEAVY | {"pydantic", "yaml", "rich", "psutil", "asyncio", "prometheus_client"})


def test_the_supervisor_stays_small() -> None:
    assert not modules_after("import redline.launch.supervisor") & (
        HEAVY | {"pydantic", "yaml", "click", "rich", "asyncio"}
    )


@pytest.mark.parametrize(
    "name",
    [module.name for module in pkgutil.walk_packages(redline.__path__, "redline.") if "__main__" not in module.name],
)
def test_every_module_imports_on_its_own_and_says_what_it_is(name: str) -> None:
    module = __import__(name, fromlist=["_"])
    assert module.__doc__, f"{name} does not say what it knows"
