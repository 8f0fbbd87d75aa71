"""What an address of text gives, and what it says when it gives nothing."""

from __future__ import annotations

import gzip
import json
import lzma
from collections.abc import Callable
from pathlib import Path

import pytest

from isoscope.data.documents import documents
from isoscope.errors import IsoscopeError

WORDS = "one line\n\n  another\tline \nünïcödé 北京\n"
PACKED = gzip.compress(b"words " * 99, mtime=0)


def write(path: Path, content: str | bytes) -> str:
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(path)


def test_embedded_is_the_help_of_python() -> None:
    found = list(documents("embedded"))
    assert len(found) > 70
    assert sum(map(len, found)) > 300_000
    assert all(isinstance(document, str) for document in found)
    assert found == list(documents("embedded"))


@pytest.mark.parametrize(
    ("suffix", "pack"),
    [(".txt", bytes), (".txt.gz", gzip.compress), (".txt.xz", lzma.compress), (".md", bytes)],
)
def test_a_text_file_whole_or_by_line(tmp_path: Path, suffix: str, pack: Callable[[bytes], bytes]) -> None:
    address = write(tmp_path / f"words{suffix}", pack(WORDS.encode()))
    assert list(documents(address)) == [WORDS]
    assert list(documents(address, whole=False)) == ["one line", "another\tline", "ünïcödé 北京"]


def test_a_long_file_comes_in_blocks_that_end_with_a_line(tmp_path: Path) -> None:
    content = "".join(f"line {number} of many\n" for number in range(20_000))
    found = list(documents(write(tmp_path / "long.txt", content)))
    assert len(found) > 3
    assert "".join(found) == content
    assert all(block.endswith("\n") for block in found)


@pytest.mark.parametrize(
    ("suffix", "pack"), [(".jsonl", bytes), (".ndjson", bytes), (".jsonl.gz", gzip.compress)]
)
def test_jsonl(tmp_path: Path, suffix: str, pack: Callable[[bytes], bytes]) -> None:
    lines = [json.dumps({"text": f"t{i}", "body": f"b{i}\nmore"}) for i in range(3)]
    lines[1:1] = ["", "   "]
    lines.append(json.dumps({"text": "  ", "body": ""}))
    address = write(tmp_path / f"records{suffix}", pack("\n".join(lines).encode()))
    assert list(documents(address)) == ["t0", "t1", "t2"]
    assert list(documents(f"{address}:body")) == ["b0\nmore", "b1\nmore", "b2\nmore"]
    assert list(documents(address, whole=False)) == ["t0", "t1", "t2"]


def test_a_path_with_a_colon_is_a_path(tmp_path: Path) -> None:
    assert list(documents(write(tmp_path / "a:b.txt", "words\n"))) == ["words\n"]


@pytest.mark.parametrize(
    ("name", "content"), [("a.txt", "\ufeffwords\n"), ("a.jsonl", '\ufeff{"text": "words\\n"}')]
)
def test_a_byte_order_mark_is_no_text(tmp_path: Path, name: str, content: str) -> None:
    assert list(documents(write(tmp_path / name, content))) == ["words\n"]


def test_a_missing_column_says_which_there_are(tmp_path: Path) -> None:
    address = write(tmp_path / "a.jsonl", '{"text": "x", "title": "y"}\n{"title": "z", "body": 1}\n')
    with pytest.raises(
        IsoscopeError,
        match=r"line 2 of .*a\.jsonl has no text in column 'text' \(columns there: body, title\)",
    ):
        list(documents(address))
    with pytest.raises(
        IsoscopeError, match=r"line 1 .* 'lead' \(columns there: text, title\); name another as .*:COLUMN"
    ):
        list(documents(f"{address}:lead"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.jsonl", b'{"text": "x"}\n{"text": \n', "line 2 of .* is not JSON"),
        ("a.jsonl", b'["x"]\n', r"line 1 of .* has no text in column 'text' \(columns there: none\)"),
        ("a.txt", b"fine\n\xff\xfe\x00", "is not text in UTF-8"),
        ("a.txt", PACKED, "is not text in UTF-8"),
        ("a.txt.gz", b"words", "cannot read .*: Not a gzipped file"),
        ("a.txt.gz", PACKED[:-9], "cannot read .*: Compressed file ended"),
        ("a.txt.gz", PACKED[:10] + b"\x07" * 9, "cannot read .*: Error -3"),
        ("a.txt.xz", b"words", "cannot read .*: Input format not supported"),
    ],
    ids=range(8),
)
def test_what_cannot_be_read_is_a_sentence(tmp_path: Path, name: str, content: bytes, message: str) -> None:
    with pytest.raises(IsoscopeError, match=message):
        list(documents(write(tmp_path / name, content)))


def test_no_file_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(IsoscopeError, match=r"no data at .*: give 'embedded', a text file or a JSONL file"):
        documents(str(tmp_path / "nothing.txt"))
    with pytest.raises(IsoscopeError, match="is a folder; this model takes text"):
        documents(str(tmp_path))
