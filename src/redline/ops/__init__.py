"""What a command does from end to end, as a sequence of typed events. The command line and the cockpit show them."""
