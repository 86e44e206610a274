"""`fake-engine`: the scripted engine, whose own command line this hands everything to."""

import click


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": []},
    add_help_option=False,
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def fake_engine(arguments: tuple[str, ...]) -> int:
    """Play an engine that behaves, or misbehaves as a scenario says."""
    from redline.fake.command import main

    try:
        return main(arguments)
    except SystemExit as end:  # argparse ends --help and usage errors so
        return end.code if isinstance(end.code, int) else 2
