"""Makes the environment of the conformance stage: vLLM's Python files on a machine without a GPU.

Known: what to install, what to unpack, what to leave out. vLLM's wheel is unpacked and never installed, so its CUDA
dependencies stay away; a dist-info of version `+cpu` beside it makes vLLM choose its CPU platform. Run by
`conformance/setup`; needs network and about 2 GB of disk while it runs, 1.5 GB after. Standard library only.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Final

VERSION: Final = "0.33.0"
HERE: Final = Path(__file__).resolve().parent
KEPT: Final = (".py", ".json")  # the rest of the wheel is 1 GB of CUDA libraries
CHECK: Final = """
import vllm, vllm.v1.core.kv_cache_planning
from vllm.platforms import current_platform
print(f"vLLM {vllm.__version__}, platform {current_platform.device_name or current_platform.device_type}")
assert current_platform.is_cpu()
"""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--into", type=Path, default=HERE.parent / ".conformance", help="default: .conformance")
    home: Path = parser.parse_args().into.resolve()
    stamp, recipe = home / "made-from", _recipe()
    python = home / "venv" / "bin" / "python"
    if stamp.is_file() and stamp.read_text() == recipe:
        print(f"up to date: {python}")
        return 0
    home.mkdir(parents=True, exist_ok=True)
    print("venv and pinned packages")
    run(sys.executable, "-m", "venv", "--clear", str(home / "venv"))
    requirements = str(HERE / "requirements.txt")
    run(str(python), "-m", "pip", "install", *QUIET, "--no-deps", "-r", requirements)
    print(f"Python files of vLLM {VERSION} (its wheel is 340 MB)")
    files = unpack(home, python)
    shutil.copy(HERE / "overlay" / "sitecustomize.py", files)
    for site in (home / "venv" / "lib").glob("python*/site-packages"):
        (site / "conformance.pth").write_text(f"{files}\n")
    environment = os.environ | {"VLLM_NO_USAGE_STATS": "1", "VLLM_LOGGING_LEVEL": "CRITICAL"}
    subprocess.run([str(python), "-c", CHECK], check=True, env=environment, cwd=home)
    stamp.write_text(recipe)
    print(f"ready: {python}")
    return 0


QUIET: Final = ("--quiet", "--disable-pip-version-check")


def unpack(home: Path, python: Path) -> Path:
    """Download vLLM's wheel, keep its Python files in a folder of `home`, and return that folder."""
    files = home / f"vllm-{VERSION}"
    shutil.rmtree(files, ignore_errors=True)
    with tempfile.TemporaryDirectory(dir=home) as folder:
        download = ("download", *QUIET, "--no-deps", "--only-binary=:all:", "--dest", folder)
        run(str(python), "-m", "pip", *download, f"vllm=={VERSION}")
        (wheel,) = Path(folder).glob("vllm-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            names = [name for name in archive.namelist() if name.startswith("vllm/") and name.endswith(KEPT)]
            archive.extractall(files, members=names)
            metadata = archive.read(f"vllm-{VERSION}.dist-info/METADATA").decode()
    info = files / f"vllm-{VERSION}+cpu.dist-info"
    info.mkdir()
    # platforms/__init__.py takes the CPU where the installed version says so
    (info / "METADATA").write_text(metadata.replace(f"\nVersion: {VERSION}\n", f"\nVersion: {VERSION}+cpu\n", 1))
    return files


def run(*command: str) -> None:
    subprocess.run(command, check=True)


def _recipe() -> str:
    parts = [(HERE / name).read_bytes() for name in ("requirements.txt", "environment.py", "overlay/sitecustomize.py")]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(error.cmd[:4])} ... failed with exit {error.returncode}; its message is above")
