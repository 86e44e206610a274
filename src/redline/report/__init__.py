"""Pure renderers of records: a report model built from runs, and Markdown, HTML, SVG, table rows and JSON made of it.

Knows what records hold and how to show it; measures nothing, reads no folder, and holds no opinion that is not in the
records.
"""
