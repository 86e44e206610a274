"""Write `docs/schema/` from the code: run it after a payload or the manifest has changed."""

from pathlib import Path

from redline.ops.schema import published_schemas

DOCS = Path(__file__).resolve().parent.parent / "docs" / "schema"


def main() -> None:
    """Write every schema file; remove none, so that older versions stay published."""
    DOCS.mkdir(parents=True, exist_ok=True)
    for name, text in published_schemas().items():
        (DOCS / name).write_text(text, encoding="utf-8")
        print(DOCS / name)


if __name__ == "__main__":
    main()
