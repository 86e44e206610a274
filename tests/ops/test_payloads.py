"""A reader that does not know a kind of record cannot show it: the list of modules that declare one is whole."""

import subprocess
import sys

import redline.ops.payloads
from redline.ops.schema import published_schemas
from redline.record.event import registered_kinds


def test_the_list_of_payloads_is_whole() -> None:
    script = (
        "import redline.ops.payloads\nfrom redline.record.event import registered_kinds\nprint(*registered_kinds())"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    published_schemas()  # imports every module there is
    own = {kind for kind, (cls, _) in registered_kinds().items() if cls.__module__.startswith("redline.")}
    assert set(done.stdout.split()) == own, f"add the module to {redline.ops.payloads.__name__}"
