"""A launch plan as text: a command line, a docker command, a compose file. Pure; text appears only at the end."""
