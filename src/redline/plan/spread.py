"""One copy of a model over several machines: how many, how many GPUs each, and along which lines it is cut.

Knows counts and a rule of choice. What an engine refuses is `guard.topology`'s; how it is typed is the renderers'.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from redline.errors import UsageError

MASTER_PORT: Final = 29501  # vllm 0.33.0 config/parallel.py, ParallelConfig.master_port


class Cut(StrEnum):
    """How the model is divided between machines: every layer over all GPUs, or the layers in turn."""

    TENSOR = "tensor"
    PIPELINE = "pipeline"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """Machines that serve one copy. `addresses` is empty where a scheduler gives them; `interface` is the NIC's name.

    `network_fast` says that the machines are joined by RDMA (InfiniBand, RoCE), not by Ethernet alone.
    """

    nodes: int
    gpus_per_node: int
    cut: Cut
    addresses: tuple[str, ...] = ()
    interface: str | None = None
    network_fast: bool = False
    master_port: int = MASTER_PORT

    @property
    def tensor_parallel(self) -> int:
        """GPUs that share every layer."""
        return self.gpus_per_node * (self.nodes if self.cut is Cut.TENSOR else 1)

    @property
    def pipeline_parallel(self) -> int:
        """Groups of GPUs that hold the layers in turn."""
        return self.nodes if self.cut is Cut.PIPELINE else 1

    @property
    def crosses(self) -> bool:
        """Whether every layer needs the network between machines."""
        return self.nodes > 1 and self.cut is Cut.TENSOR


def choose_cut(*, drafting: bool, network_fast: bool) -> Cut:
    """Return the cut to use where the user names none.

    A pipeline sends one activation a stage over the network and is the better cut on Ethernet; tensor parallelism
    reduces over it twice a layer and wants RDMA (vLLM docs, parallelism and scaling). With a drafter only the tensor
    cut is left: block drafters read layers of every stage (vllm 0.33.0 v1/worker/gpu/spec_decode/eagle/
    eagle3_utils.py:57), and the built-in drafting layer has no proven boot with a pipeline (vllm#49355, vllm#57755).
    """
    return Cut.TENSOR if drafting or network_fast else Cut.PIPELINE


def make_spread(
    *,
    nodes: int,
    world: int,
    gpus_per_node: int | None,
    cut: Cut,
    addresses: tuple[str, ...] = (),
    interface: str | None = None,
    network_fast: bool = False,
) -> Spread:
    """Return a spread. Without `gpus_per_node` the tier's own number of GPUs, `world`, is divided over the machines.

    Raises:
        UsageError: the GPUs do not divide, or the addresses are not one a machine.
    """
    if nodes < 1:
        raise UsageError(f"{nodes} machines cannot serve anything.", next_step="Give --nodes 1 or more.")
    if gpus_per_node is None and (world < 1 or world % nodes):
        raise UsageError(
            f"{world} GPUs do not divide over {nodes} machines.",
            next_step="Give --gpus-per-node N, or a tier whose GPUs divide.",
        )
    if addresses and len(addresses) != nodes:
        raise UsageError(
            f"{len(addresses)} addresses for {nodes} machines.",
            next_step="Give one --node ADDRESS a machine, the first of them for rank 0.",
        )
    if len(set(addresses)) != len(addresses):
        raise UsageError("An address is given twice.", next_step="Give each machine its own --node ADDRESS.")
    return Spread(
        nodes=nodes,
        gpus_per_node=gpus_per_node or world // nodes,
        cut=cut,
        addresses=addresses,
        interface=interface,
        network_fast=network_fast,
    )
