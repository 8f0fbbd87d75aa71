"""Files of tasks as people have them, and one sentence for each that cannot be judged by."""

from __future__ import annotations

from pathlib import Path

import pytest

from isoscope.errors import IsoscopeError
from isoscope.repair.impact.files import read_pairs, read_sought, read_texts
from isoscope.repair.impact.overlap import Split, hold_apart
from isoscope.repair.impact.tasks import labelled, pairs, sought

ROWS = [("a dog, running", "a cat", 1.5), ('she said "no"', "never", 3.0), ("a", "b", 0.0)]


def written(folder: Path, text: str, name: str = "file.tsv") -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


@pytest.mark.parametrize(
    "text",
    [
        "".join(f"{a}\t{b}\t{s}\n" for a, b, s in ROWS),
        "".join(f"{s}\t{a}\t{b}\n" for a, b, s in ROWS),
        "score\tsentence2\tsentence1\n" + "".join(f"{s}\t{b}\t{a}\n" for a, b, s in ROWS),
        "Sentence1\tsentence2\tgenre\tscore\n\n" + "".join(f"{a}\t{b}\tnews\t{s}\n" for a, b, s in ROWS),
        "".join(f"news\tf\t2012\t00{i}\t{s}\t{a}\t{b}\n" for i, (a, b, s) in enumerate(ROWS)),
        "".join(f"news\tf\t2012\t00{i}\t{s}\t{a}\t{b}\tmore\tx\n" for i, (a, b, s) in enumerate(ROWS)),
        'sentence1,sentence2,score\n"a dog, running",a cat,1.5\n"she said ""no""",never,3\na,b,0\n',
    ],
)
def test_pairs_in_many_shapes(tmp_path: Path, text: str) -> None:
    first, second, scores = read_pairs(written(tmp_path, text))
    assert [*zip(first, second, scores.tolist(), strict=True)] == ROWS


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a\tb\nc\td\n", "has pairs without scores: 2 columns where three"),
        ("a\nb\n", "has pairs without scores: 1 column where three"),
        ("sentence1\tsentence2\na\tb\n", "has pairs without scores: its columns are sentence1, sentence2"),
        ("a\tb\tc\nd\te\tf\n", "has pairs without scores: no column of its three holds a number"),
        ("sentence1\tsentence2\tscore\na\tb\t\n", "line 2 of .* has no score: '' is no number"),
        ("sentence1\tsentence2\tscore\na\tb\tnan\n", "line 2 of .* has no score"),
        ("sentence1\tsentence2\tscore\na\t\t1\n", "line 2 of .* has an empty text"),
        ("\n", "holds no pairs"),
    ],
)
def test_pairs_that_are_none(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(IsoscopeError, match=said):
        read_pairs(written(tmp_path, text))


def test_pairs_of_one_score(tmp_path: Path) -> None:
    with pytest.raises(IsoscopeError, match="different scores"):
        pairs(written(tmp_path, "".join(f"a{i}\tb{i}\t2\n" for i in range(9))))


def test_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(IsoscopeError, match="there is no such file"):
        read_pairs(str(tmp_path / "none.tsv"))
    (tmp_path / "latin.tsv").write_bytes("é\tb\t1\n".encode("latin-1"))
    with pytest.raises(IsoscopeError, match="is not text in UTF-8"):
        read_pairs(str(tmp_path / "latin.tsv"))


def test_labels_are_split_by_their_texts(tmp_path: Path) -> None:
    lines = [f"{'yes' if i % 3 else 'no'}\ttext number {i}\n" for i in range(400)]
    one = labelled(written(tmp_path, "".join(lines)))
    two = labelled(written(tmp_path, "".join(reversed(lines)), "turned.tsv"))
    assert set(one.judged) == set(two.judged)  # whatever their order
    assert not set(one.judged) & set(one.fitted)
    assert 50 < len(one.judged) < 110
    told = dict(zip(one.judged, one.right.tolist(), strict=True))
    assert all(told[text] == int(int(text.split()[-1]) % 3 > 0) for text in one.judged)


def test_labels_in_two_files(tmp_path: Path) -> None:
    fitted = written(tmp_path, "b\tone\na\ttwo\na\ttwo\n", "mine.train.tsv")
    judged = written(tmp_path, "a\tthree\nb\tfour\n", "mine.test.tsv")
    found = labelled(f"{fitted},{judged}")
    assert (found.name, list(found.fitted), found.labels.tolist()) == ("mine", ["one", "two"], [1, 0])
    assert (list(found.judged), found.right.tolist()) == (["three", "four"], [0, 1])
    with pytest.raises(IsoscopeError, match="one file, or two"):
        labelled(f"{fitted},{judged},{judged}")


def test_labels_that_cannot_be_told_apart(tmp_path: Path) -> None:
    with pytest.raises(IsoscopeError, match="two classes or more"):
        labelled(written(tmp_path, "".join(f"same\ttext {i}\n" for i in range(40))))
    with pytest.raises(IsoscopeError, match=r"line 2 of .* is not label, tab, text"):
        labelled(written(tmp_path, "a\tone\ntwo\n"))
    with pytest.raises(IsoscopeError, match=r"line 3 of .* labels a text 'b' that was 'a' before"):
        labelled(written(tmp_path, "a\tone\na\ttwo\nb\tone\n"))


def test_a_query_may_have_several_documents(tmp_path: Path) -> None:
    found = sought(written(tmp_path, "q1\td1\nq2\td2\nq1\td3\nq1\td1\n"))
    assert (list(found.queries), list(found.documents)) == (["q1", "q2"], ["d1", "d2", "d3"])
    assert found.right == [[0, 2], [1]]
    with pytest.raises(IsoscopeError, match="is not query, tab, document"):
        read_sought(written(tmp_path, "alone\n"))


def test_a_limit_is_by_content(tmp_path: Path) -> None:
    lines = [f"text {i}\tother {i}\t{i}\n" for i in range(50)]
    one = pairs(written(tmp_path, "".join(lines)), 10, seed=3)
    two = pairs(written(tmp_path, "".join(reversed(lines)), "b.tsv"), 10, seed=3)
    other = pairs(written(tmp_path, "".join(lines)), 10, seed=4)
    assert len(one.first) == 10
    assert set(one.first) == set(two.first) != set(other.first)


def test_texts_to_fit_on(tmp_path: Path) -> None:
    table = written(tmp_path, "one\ttwo\t1\none\tthree\t2\n")
    assert read_texts(table) == ["one", "two", "three"]
    plain = written(tmp_path, "one\n\n two \none\n", "plain.txt")
    assert read_texts(plain) == ["one", "two"]


def test_overlap_is_refused_or_left_out(tmp_path: Path) -> None:
    task = pairs(written(tmp_path, "one\ttwo\t1\nthree\tfour\t2\nfive\tsix\t3\n"))
    split = Split(["two", "seven", "six", "eight"], [task])
    with pytest.raises(
        IsoscopeError, match="2 of the 4 texts that repairs are fitted on are judged as well, "
    ):
        hold_apart(split)
    kept = hold_apart(split, leave_out=True)
    assert kept.fitted == ["seven", "eight"]
    assert kept.notes == (
        "2 of the 4 texts that repairs are fitted on are judged as well and were left out of the fit",
    )
    with pytest.raises(IsoscopeError, match="at least 2 texts that are not judged; got 1"):
        hold_apart(Split(["two", "seven"], [task]), leave_out=True)


def test_texts_that_are_one_input_overlap_too(tmp_path: Path) -> None:
    task = pairs(written(tmp_path, "one\ttwo\t1\nthree\tfour\t2\nfive\tsix\t3\n"))
    split = Split(["One", "seven", "nine"], [task])
    assert hold_apart(split).fitted == split.fitted
    keys = {text: hash(text.lower()) for text in split.texts}
    with pytest.raises(IsoscopeError, match="first 'One'"):
        hold_apart(split, keys=keys)


def test_a_probe_is_not_judged_on_what_it_was_fitted_on(tmp_path: Path) -> None:
    fitted = written(tmp_path, "a\tone\nb\ttwo\na\tthree\n", "x.train.tsv")
    judged = written(tmp_path, "a\tone\nb\tfour\n", "x.test.tsv")
    task = labelled(f"{fitted},{judged}")
    split = Split(["seven", "eight"], [task])
    with pytest.raises(IsoscopeError, match="1 of the 3 texts that the probe of x is fitted on"):
        hold_apart(split)
    kept = hold_apart(split, leave_out=True).tasks[0]
    assert list(kept.fitted) == ["two", "three"]
    assert kept.labels.tolist() == [1, 0]  # type: ignore[union-attr]


def test_quotes_hold_lines_and_numbers_are_those_of_the_file(tmp_path: Path) -> None:
    text = 'sentence1,sentence2,score\r\n"a\r\n\r\nb",c,3\r\n\r\n"d, e",f,4\r\n'
    (tmp_path / "file.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    first, second, scores = read_pairs(str(tmp_path / "file.csv"))
    assert (first, second, scores.tolist()) == (["a\n\nb", "d, e"], ["c", "f"], [3.0, 4.0])
    with pytest.raises(IsoscopeError, match=r"line 7 of .* has no score: 'x' is no number"):
        read_pairs(written(tmp_path, text.replace("\r", "") + "g,h,x\n", "other.csv"))


@pytest.mark.parametrize("end", ["\u2028", "\x85", "\x0c", "\x1e"])
def test_what_unicode_calls_the_end_of_a_line_is_text(tmp_path: Path, end: str) -> None:
    first, _, _ = read_pairs(written(tmp_path, f"a{end}b\tc\t1\nd\te\t2\n"))
    assert first == [f"a{end}b", "d"]


def test_a_cell_too_long_for_csv_and_a_header_alone(tmp_path: Path) -> None:
    with pytest.raises(IsoscopeError, match=r"line 2 of .* is no CSV: field larger than"):
        read_pairs(written(tmp_path, "sentence1,sentence2,score\n" + "a" * 200_000 + ",b,1\n"))
    with pytest.raises(IsoscopeError, match="holds no pairs: there is nothing under its header"):
        read_pairs(written(tmp_path, "sentence1,sentence2,score\n"))


def test_a_header_is_no_class_and_no_query(tmp_path: Path) -> None:
    lines = "".join(f"{i % 2}\ttext {i}\n" for i in range(30))
    made = labelled(written(tmp_path, "Label\tText\n" + lines))
    assert set(made.labels) | set(made.right) == {0, 1}
    assert "why" in sought(written(tmp_path, "query\tdocument\nwhy\tbecause\nhow\tso\n")).queries
    assert "query" not in sought(written(tmp_path, "query\tdocument\nwhy\tbecause\nhow\tso\n")).queries
