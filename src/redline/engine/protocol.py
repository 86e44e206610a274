"""What redline asks of an engine. One module an engine implements it; none of them touches a process."""

from pathlib import Path
from typing import Literal, Protocol

from redline.catalog.fields import ResolvedTier
from redline.catalog.types import Catalog
from redline.engine.counters import Counters
from redline.engine.launch_plan import LaunchPlan, StagePattern
from redline.rig.types import Rig

Form = Literal["embedded", "native", "docker"]


class Engine(Protocol):
    """A kind of engine, in the forms it has. The faults its log gives away are data: `signatures.py`, by its id."""

    id: str

    @property
    def stages(self) -> tuple[StagePattern, ...]:
        """What its log says about how far a boot is; the data of `stages.py`."""

    def launch_plan(
        self, catalog: Catalog, tier: ResolvedTier, rig: Rig, models_dir: Path, form: Form | None = None
    ) -> LaunchPlan:
        """Return the process to start for a tier whose artifacts are in place; without a form, its usual one.

        Raises:
            UsageError: the tier's engine has no such form.
        """

    def parse_counters(self, text: str) -> Counters:
        """Return the counters in the engine's metrics text."""
