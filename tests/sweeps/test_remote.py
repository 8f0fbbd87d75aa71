"""Revisions of a hub model, against a hub on loopback to which a process is pointed before it imports."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from isoscope.errors import IsoscopeError
from isoscope.sweeps.find.patterns import PYTHIA_SCHEDULE, expand
from tests.sweeps.fake_hub import Hub, environment, served
from tests.sweeps.pointed import Pointed, pointed
from tests.sweeps.trajectory import copied, walk

ASK = """
import json, sys
from isoscope.errors import IsoscopeError
from isoscope.sweeps.verify.integrity import examine
from isoscope.sweeps.find.remote import listing, remote_fingerprint, revisions
told = []
for address, pattern in json.loads(sys.argv[1]):
    try:
        found = revisions(address, pattern)
        prints = {each.name: remote_fingerprint(each) for each in found}
        told.append({
            "names": [each.name for each in found],
            "steps": [each.step for each in found],
            "files": [file.name for file in listing(found[0]).files],
            "faults": {name: each.fault for name, each in prints.items() if each.fault},
            "findings": [[each.checkpoint, each.kind, each.words] for each in examine(found, prints)],
        })
    except IsoscopeError as reason:
        told.append(str(reason))
print(json.dumps(told))
"""


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pointed]:
    with pointed(tmp_path_factory.mktemp("hub")) as found:
        yield found


def asked(
    there: Pointed, folder: Path, *questions: tuple[str, str | None]
) -> list[dict[str, list[str]] | str]:
    """What a process that takes this hub for the hub says of them."""
    (line,) = there.run(folder, ASK, json.dumps(questions)).wait()
    return json.loads(line)  # type: ignore[no-any-return]


def test_patterns() -> None:
    assert expand("step{0,1000..143000:7000}") == ["step0", *(f"step{k}" for k in range(1000, 143001, 7000))]
    schedule = expand(PYTHIA_SCHEDULE)
    assert len(schedule) == 154 and schedule[:4] == ["step0", "step1", "step2", "step4"]
    assert schedule[10:12] == ["step512", "step1000"] and schedule[-1] == "step143000"
    assert expand("{main,v1.0}") == ["main", "v1.0"] and expand("main") == ["main"]
    assert expand("s{1..2}-{a,b}") == ["s1-a", "s1-b", "s2-a", "s2-b"]
    assert expand("step_{008..010}") == ["step_008", "step_009", "step_010"]
    assert expand("step{1,1..2}") == ["step1", "step2"]


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("step{0,1", "its braces do not match"),
        ("step0}", "its braces do not match"),
        ("a{b{1,2}}", "its braces do not match"),
        ("step{}", "a part between commas is empty"),
        ("step{1,,2}", "a part between commas is empty"),
        ("step{5..1}", "'5..1' is empty"),
        ("step{1..5:0}", "'1..5:0' is empty"),
        ("step{1..}", "'1..' is no range"),
        ("step{1..x}", "'1..x' is no range"),
        ("step{0..99999999}", "'0..99999999' stands for more than 100,000 names"),
        ("{0..999}{0..999}", "it stands for 1,000,000 names, more than 100,000"),
        ("", "a name would be empty"),
    ],
)
def test_patterns_that_cannot_be_read(pattern: str, why: str) -> None:
    with pytest.raises(IsoscopeError) as error:
        expand(pattern)
    assert str(error.value) == (
        f"cannot read the pattern '{pattern}': {why}. Write revisions as step{{0,1000..143000:7000}}."
    )


def test_revisions_and_their_hashes_without_a_download(there: Pointed, tmp_path: Path) -> None:
    folders = {path.name: path for path in walk(tmp_path / "m", [0, 1, 2, 4, 1000, 2000])}
    folders["step1"] = copied(folders["step0"], folders["step1"])  # a warm-up from a rate of 0
    folders["step4"] = copied(folders["step2000"], folders["step4"])  # a late one under an early name
    (folders["step2000"] / "README.md").write_text("the last")  # another commit, the same weights
    copied(folders["step2000"], tmp_path / "m" / "main")
    config = json.loads((folders["step2"] / "config.json").read_text())
    (folders["step2"] / "config.json").write_text(json.dumps(config | {"num_attention_heads": 4}))
    (folders["step1000"] / "config.json").write_text(json.dumps(config | {"transformers_version": "0"}))
    there.hub.models["owner/one"] = {"main": tmp_path / "m" / "main", **folders}
    before = len(there.hub.files())  # other tests share the hub
    every, some = asked(
        there, tmp_path / "asked", ("owner/one", None), ("owner/one", "step{0,1000..2000:1000}")
    )
    assert isinstance(every, dict) and isinstance(some, dict)
    assert every["names"] == ["step0", "step1", "step2", "step4", "step1000", "step2000", "main"]
    assert every["steps"] == [0, 1, 2, 4, 1000, 2000, None]
    assert every["files"] == ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    same = "its weights are the same, bit for bit, as those of "
    assert every["findings"] == [
        ["step2", "config", "its config is another than most have: num_attention_heads 4 instead of 2."],
        ["step4", "twin", f"{same}step2000 and main."],
        ["step2000", "twin", f"{same}step4 and main."],
        ["main", "twin", f"{same}step4 and step2000."],
    ]
    assert some["names"] == ["step0", "step1000", "step2000"] and not some["findings"]
    fetched = there.hub.files()[before:]
    assert {name.split("/")[-1] for name in fetched} == {"config.json"}
    assert len(fetched) == 3  # one of each content


def test_shards_on_the_hub(there: Pointed, tmp_path: Path) -> None:
    """The best format only; a shard that is not there; a shard of another step, as a public suite has."""
    paths = walk(tmp_path / "m", [0, 10, 20, 30, 40], shards="20KB")
    (paths[0] / "pytorch_model.bin").write_bytes(b"another format")
    shard = sorted(paths[1].glob("*.safetensors"))[1].name
    (paths[1] / shard).unlink()
    (paths[2] / shard).write_bytes((paths[4] / shard).read_bytes())
    empty = tmp_path / "m" / "empty"
    empty.mkdir()
    (empty / "config.json").write_text((paths[0] / "config.json").read_text())
    there.hub.models["owner/two"] = {path.name: path for path in [*paths, empty]}
    (told,) = asked(there, tmp_path / "asked", ("owner/two", None))
    assert isinstance(told, dict)
    assert "model.safetensors.index.json" in told["files"] and "pytorch_model.bin" not in told["files"]
    assert told["faults"] == {
        "step10": f"the shard {shard} is missing.",
        "empty": "it holds no weights: looked for model.safetensors.index.json, model.safetensors, "
        "pytorch_model.bin.index.json, pytorch_model.bin.",
    }
    part = f"in part ({shard}) its weights are the same, bit for bit, as those of"
    assert [each for each in told["findings"] if each[1] == "twin"] == [
        ["step20", "twin", f"{part} step40, and not as those between."],
        ["step40", "twin", f"{part} step20, and not as those between."],
    ]


def test_what_the_hub_does_not_have_is_one_sentence(there: Pointed, tmp_path: Path) -> None:
    paths = walk(tmp_path / "m", [0, 1000, 2000])
    there.hub.models["owner/tiny"] = {path.name: path for path in paths}
    told = asked(
        there,
        tmp_path / "asked",
        ("owner/tiny", "step{0,1100}"),
        ("owner/tiny", "step{1..3}"),
        ("owner/tiny", "mian"),
        ("owner/none", None),
        ("no id at all", None),
    )
    there.hub.failing = {"/refs": 500}
    (broken,) = asked(there, tmp_path / "asked", ("owner/tiny", None))
    there.hub.failing = {}
    has = "It has 3: step0, step1000, step2000."
    assert told == [
        f"the model 'owner/tiny' lacks the revision 'step1100'; did you mean 'step1000'? {has}",
        "the model 'owner/tiny' lacks 3 of the 3 revisions that were asked for, first 'step1'; did you mean "
        f"'step0'? {has}",
        f"the model 'owner/tiny' lacks the revision 'mian'. {has}",
        "no model 'owner/none': there is no such folder here, and the hub has none of that name.",
        "no model 'no id at all': there is no such folder here, and it is no hub id (owner/name).",
    ]
    assert broken == "the hub answered 500 when asked for 'owner/tiny'."


def test_a_hub_that_is_not_there(tmp_path: Path) -> None:
    with served(Hub({})) as gone:
        pass
    code = "import json, sys; sys.argv[1] = json.dumps([['owner/tiny', None]])"
    answer = subprocess.run(
        [sys.executable, "-c", f"{code}\n{ASK}", ""],
        env=environment(gone, tmp_path),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert not answer.stderr
    assert json.loads(answer.stdout)[0].startswith("the hub cannot be reached for 'owner/tiny': ")
