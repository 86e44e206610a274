"""A scripted engine that behaves and misbehaves on demand, over real sockets in a real process. Stands alone."""
