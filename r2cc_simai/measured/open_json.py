"""JSON objects of nccl-tests, one or several in a file, of which any may break off.

A run that is killed leaves its object open, and a value such as `inf` or a string that was cut is no JSON. What is
whole is read: the keys of the object, and the entries of its list `results` one by one.
"""

import json
import re
from dataclasses import dataclass, field
from typing import Any

from r2cc_simai.errors import InputError
from r2cc_simai.measured.skipped import Skipped

_DECODER = json.JSONDecoder(strict=False)
_BLANK = re.compile(r"[\s,]*")
_KEY = re.compile(r'"(?:nccl_version|config|results|out_of_bounds|errors|end_time)"\s*:')
_ENTRY = re.compile(r'\{\s*"size"\s*:')
_DOCUMENT = re.compile(r'\{\s*"version"\s*:')


@dataclass(frozen=True)
class Entry:
    """An entry of `results`, and the line of the file at which it begins."""

    line: int
    values: dict[str, Any]


@dataclass
class Document:
    """An object; `closed` is False where its end never came."""

    line: int
    keys: dict[str, Any] = field(default_factory=dict)
    entries: list[Entry] | None = None
    closed: bool = False


def read_documents(name: str, text: str, skipped: Skipped) -> list[Document]:
    """The objects of a text that begins with one."""
    reader = _Reader(name, text, skipped)
    documents = [reader.document()]
    while reader.more():
        documents.append(reader.document())
    return documents


class _BrokenError(Exception):
    """Where the text is no JSON any more."""


class _Reader:
    def __init__(self, name: str, text: str, skipped: Skipped) -> None:
        self._name = name
        self._text = text
        self._skipped = skipped
        self._at = text.index("{")

    def more(self) -> bool:
        """Goes to the next object, if there is one."""
        self._blank()
        if self._at < len(self._text) and not self._text.startswith("{", self._at):
            following = _DOCUMENT.search(self._text, self._at)
            self._skip("no part of the JSON of nccl-tests -J")
            self._at = following.start() if following else len(self._text)
        return self._at < len(self._text)

    def document(self) -> Document:
        """The object that begins here."""
        found = Document(self._line())
        self._at += 1
        while not found.closed and self._at < len(self._text):
            self._blank()
            if self._text.startswith("}", self._at):
                self._at += 1
                found.closed = True
                break
            if _DOCUMENT.match(self._text, self._at):
                break
            try:
                self._key(found)
            except _BrokenError as error:
                if not self._resume(str(error)):
                    break
        return found

    def _key(self, document: Document) -> None:
        key = self._value() if self._text.startswith('"', self._at) else None
        self._blank()
        if not isinstance(key, str) or not self._text.startswith(":", self._at):
            raise _BrokenError("expected a key")
        self._at += 1
        self._blank()
        if key == "results" and self._text.startswith("[", self._at):
            self._at += 1
            document.entries = self._entries()
        else:
            document.keys[key] = self._value()

    def _entries(self) -> list[Entry]:
        found: list[Entry] = []
        while True:
            self._blank()
            if self._at >= len(self._text):
                return found
            if self._text.startswith("]", self._at):
                self._at += 1
                return found
            line = self._line()
            try:
                value = self._value()
            except _BrokenError as error:
                self._skip("entry of 'results' cut short", str(error))
                document = _DOCUMENT.search(self._text, self._at)
                end = document.start() if document else len(self._text)
                following = _ENTRY.search(self._text, self._at + 1, end)
                key = _KEY.search(self._text, self._at, end)
                starts = [match.start() for match in (following, key) if match]
                self._at = min(starts, default=end)
                if following is None or self._at != following.start():
                    return found
                continue
            if isinstance(value, dict):
                found.append(Entry(line, value))
            else:
                self._skipped.line(line, "no entry of 'results'")

    def _value(self) -> Any:
        try:
            value, self._at = _DECODER.raw_decode(self._text, self._at)
        except (ValueError, RecursionError) as error:
            raise _BrokenError(
                error.msg if isinstance(error, json.JSONDecodeError) else "a value beyond measure"
            ) from None
        return value

    def _resume(self, complaint: str) -> bool:
        """Goes to the next key that nccl-tests writes in this object, if there is one."""
        self._skip("JSON cut short", complaint)
        document = _DOCUMENT.search(self._text, self._at)
        end = document.start() if document else len(self._text)
        key = _KEY.search(self._text, self._at + 1, end)
        self._at = key.start() if key else end
        return key is not None

    def _blank(self) -> None:
        match = _BLANK.match(self._text, self._at)
        self._at = match.end() if match else self._at

    def _line(self) -> int:
        return self._text.count("\n", 0, self._at) + 1

    def _skip(self, reason: str, complaint: str = "") -> None:
        line = self._line()
        error = InputError(f"{self._name}:{line}: expected the JSON of nccl-tests -J, complete: {complaint or reason}")
        self._skipped.line(line, reason, error)
