"""Parsers against what drivers really wrote, and this machine's own answer."""

from redline.ops.doctor_host import pcie_line, peer_line
from redline.ops.health import Health
from redline.rig.gpu_memory import GpuHold, gpu_holds, parse_compute_apps
from redline.rig.links import PcieLink, PeerLink, copy_while, interconnect_words, parse_links, parse_topology

# nvidia-smi topo -m on two H200 of one host, captured with its escape sequences.
TWO_H200 = (
    "\t\x1b[4mGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\x1b[0m\nGPU0\t X \tNV18\t0-31\t0\t\tN/A\n"
    "GPU1\tNV18\t X \t0-31\t0\t\tN/A\n\nLegend:\n\n  X    = Self\n  SYS  = Connection traversing PCIe\n"
)
# Four cards without NVLink and a network card, in the layout of the same tool.
FOUR = """\
\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tCPU Affinity
GPU0\t X \tPHB\tSYS\tSYS\tPHB\t0-15
GPU1\tPHB\t X \tSYS\tSYS\tPHB\t0-15
GPU2\tSYS\tSYS\t X \tPXB\tSYS\t16-31
GPU3\tSYS\tSYS\tPXB\t X \tSYS\t16-31
NIC0\tPHB\tPHB\tSYS\tSYS\t X \t
"""


def test_each_pair_of_gpus_is_read_once() -> None:
    assert parse_topology(TWO_H200) == {(0, 1): "NV18"}
    found = parse_topology(FOUR)
    assert len(found) == 6
    assert (found[0, 1], found[2, 3], found[1, 2]) == ("PHB", "PXB", "SYS")
    assert parse_topology("") == {}
    assert parse_topology("No devices were found\n") == {}


def test_links_and_holds_of_another_shape_are_left_out() -> None:
    # Captured on two H200 while memory was copied to the first.
    assert parse_links("0, 5, 5, 16, 16\n1, 5, 5, 16, 16\n") == (PcieLink(0, 5, 5, 16, 16), PcieLink(1, 5, 5, 16, 16))
    assert parse_links("0, [N/A], [N/A], 16, 16\nno devices\n") == ()
    uuid = "GPU-69cfecb8-dd0f-d46a-a967-785474cc5ca4"
    assert parse_compute_apps(f"{uuid}, 599, 582\n") == (GpuHold(uuid, 599, 582 * 2**20),)
    assert parse_compute_apps(f"{uuid}, 599, [N/A]\n[Insufficient Permissions]\n") == (GpuHold(uuid, 599, 0),)
    assert gpu_holds(()) == ()


def test_what_a_link_means_is_said_only_of_a_busy_one() -> None:
    assert pcie_line(PcieLink(0, 5, 5, 16, 16, copied_gb_s=54.8)).health is Health.OK
    idle = pcie_line(PcieLink(0, 1, 4, 16, 16))
    assert (idle.health, "idle" in idle.message) == (Health.OK, True)
    narrow = pcie_line(PcieLink(1, 4, 4, 4, 16, copied_gb_s=6.4))
    assert (narrow.health, bool(narrow.fix)) == (Health.WARN, True)
    assert pcie_line(PcieLink(1, 1, 4, 16, 16, copied_gb_s=3.0)).health is Health.WARN


def test_how_gpus_reach_each_other_names_the_setting_that_uses_it() -> None:
    assert "force_on" in peer_line((PeerLink(0, 1, "NV18", peer=True),)).message
    assert "pcie_p2p" in peer_line((PeerLink(0, 1, "PHB", peer=True),)).message
    assert "through the host (PHB)" in peer_line((PeerLink(0, 1, "PHB", peer=False),)).message
    assert peer_line(()).health is Health.WARN


def test_the_interconnect_is_said_in_a_phrase() -> None:
    wide, narrow = PcieLink(0, 1, 4, 16, 16), PcieLink(1, 1, 4, 4, 16)
    host, fast = PeerLink(0, 1, "PHB", peer=False), PeerLink(0, 1, "NV18", peer=True)
    assert interconnect_words((wide, narrow), (host,)) == "through the host (PHB); PCIe x16 and x4"
    busy = PcieLink(0, 5, 5, 16, 16, copied_gb_s=54.8)
    assert interconnect_words((busy, busy), (fast,)) == "NVLink between all pairs; PCIe 5.0 x16"
    assert "over PCIe" in interconnect_words((), (PeerLink(0, 1, "PHB", peer=True),))
    assert interconnect_words((), ()) == "how the GPUs are joined is not known"


def test_without_the_drivers_library_there_is_no_rate_and_no_crash() -> None:
    rate, seen = copy_while(99, lambda: (PcieLink(0, 1, 4, 16, 16),))
    assert rate is None
    assert seen == (PcieLink(0, 1, 4, 16, 16),)
