"""Options that lay a tier out over copies and machines."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from redline.ops.cluster import Layout

F = TypeVar("F", bound=Callable[..., Any])


def layout_options(function: F) -> F:
    """Add the options."""
    options = (
        click.option("--nodes", type=click.IntRange(1, 64), help="Machines that serve one copy."),
        click.option("--gpus-per-node", type=click.IntRange(1, 16), help="GPUs of each. Default: the tier's, divided."),
        click.option("--node", "addresses", metavar="ADDRESS", multiple=True, help="A machine; the first is rank 0."),
        click.option("--interface", metavar="NAME", help="Network interface between machines, such as eth0."),
        click.option("--cut", type=click.Choice(["tensor", "pipeline"]), help="Default: what the tier allows."),
        click.option("--rdma", is_flag=True, help="The machines are joined by InfiniBand or RoCE."),
        click.option("--replicas", type=click.IntRange(1, 64), help="Independent copies (replicas, lws)."),
        click.option(
            "--policy",
            type=click.Choice(["consistent_hash", "cache_aware", "round_robin", "power_of_two"]),
            default="consistent_hash",
            show_default=True,
            help="How the router picks a copy.",
        ),
        click.option("--container", is_flag=True, help="Machines run the docker form (multinode)."),
    )
    for option in reversed(options):
        function = option(function)
    return function


def layout_from(options: dict[str, Any]) -> "Layout":
    """Take the layout out of a command's options."""
    from redline.engine.router import Policy
    from redline.ops.cluster import Layout
    from redline.plan.spread import Cut

    cut = options.pop("cut")
    return Layout(
        nodes=options.pop("nodes"),
        gpus_per_node=options.pop("gpus_per_node"),
        addresses=options.pop("addresses"),
        interface=options.pop("interface"),
        cut=Cut(cut) if cut else None,
        network_fast=options.pop("rdma"),
        replicas=options.pop("replicas"),
        policy=Policy(options.pop("policy")),
        container=options.pop("container"),
    )
