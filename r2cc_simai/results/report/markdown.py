"""A report as Markdown, for terminals, code hosts and diffs."""

from collections.abc import Sequence

from r2cc_simai.results.report.document import Block, Cell, Heading, Plot, Section, Table, Text

PLOTS = "plots"


def render_markdown(title: str, sections: Sequence[Section]) -> str:
    """Return the report; plots are links to `plots/<slug>.svg` beside it."""
    parts = [f"# {_escape(title)}"]
    for index, section in enumerate(sections):
        parts.append(f"## {_escape(section.title)}")
        parts += [text for block in section.blocks if (text := _block(block))]
        if index == 0 and section.findings:
            parts.append("### Key findings")
            parts.append("\n".join(f"- {_escape(finding)}" for finding in section.findings))
    return "\n\n".join(parts) + "\n"


def _block(block: Block) -> str:
    match block:
        case Text(text):
            return _escape(text)
        case Heading(text):
            return f"### {_escape(text)}"
        case Plot(slug, caption, _):
            return f"![{_escape(caption)}]({PLOTS}/{slug}.svg)\n\n*{_escape(caption)}*"
        case Table():
            return _table(block)


def _table(table: Table) -> str:
    head = "| " + " | ".join(_escape(column.title) for column in table.columns) + " |"
    rule = "|" + "|".join("---:" if column.numeric else ":---" for column in table.columns) + "|"
    body = ["| " + " | ".join(_cell(cell) for cell in row) + " |" for row in table.rows]
    return "\n".join([f"**{_escape(table.caption)}**", "", head, rule, *body])


def _cell(cell: Cell) -> str:
    text = f"**{_escape(cell.text)}**" if cell.tone == "bad" else _escape(cell.text)
    text = f"[{text}]({cell.link})" if cell.link else text
    note = " · ".join(cell.note.splitlines())
    return f"{text} ({_escape(note)})" if note else text


def _escape(text: str) -> str:
    """Escape what Markdown would take as markup, outside of code spans."""
    parts = text.replace("\n", " ").split("`")
    for index in range(0, len(parts), 2):
        for sign in "\\*|<[]":
            parts[index] = parts[index].replace(sign, "\\" + sign)
    return "`".join(parts)
