"""The hardware and host at hand: processors, memory, GPUs, ports. Knows no tier."""
