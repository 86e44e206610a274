"""One question about a server at a time, each with a verdict. Knows no terminal."""
