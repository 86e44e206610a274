"""Files on the screen: what `get` fetched, and what `get --verify-only` found."""

from collections.abc import Sequence
from typing import Any, Final

from redline.artifacts.progress import FileProgress
from redline.artifacts.store import ArtifactState
from redline.artifacts.verify import FileState
from redline.catalog.fields import ResolvedTier
from redline.catalog.types import Catalog
from redline.cli.screen import Screen
from redline.cli.up_view import UpView, file_words
from redline.errors import ExitCode
from redline.ops.events import FilesReady
from redline.ops.get import get, verdict_of_files, verify_files
from redline.settings import Settings

_COLOURS: Final = {FileState.VERIFIED: "green", FileState.UNHASHED: "yellow"}


def show_fetch(
    screen: Screen, catalog: Catalog, settings: Settings, tiers: Sequence[ResolvedTier]
) -> tuple[int, dict[str, Any]]:
    """Fetch the files of tiers; return the exit code and the folder of each artifact."""
    view, folders = UpView(screen), {}
    for event in get(catalog, settings, tiers):
        view.show(event)
        if isinstance(event, FilesReady):
            folders[event.artifact.id] = event.folder
    for name, folder in folders.items():
        screen.line("", f"{name}   {folder}")
    return ExitCode.DONE, folders


def show_verify(
    screen: Screen, catalog: Catalog, settings: Settings, tiers: Sequence[ResolvedTier]
) -> tuple[int, dict[str, Any]]:
    """Verify the files of tiers; return the exit code and the state of each file by artifact."""
    states: list[ArtifactState] = []
    for item in verify_files(catalog, settings, tiers):
        if isinstance(item, FileProgress):
            screen.progress("verify", file_words(item), step=f"{item.artifact}: {item.step}")
            continue
        states.append(item)
        screen.line("", f"{item.artifact}   {item.folder}")
        for path, state in item.files:
            screen.line(state.value, path, colour=_COLOURS.get(state, "red"))
    return verdict_of_files(states), {
        item.artifact: {"folder": item.folder, "files": {path: state.value for path, state in item.files}}
        for item in states
    }
