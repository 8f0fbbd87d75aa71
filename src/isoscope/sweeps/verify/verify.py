"""What is known of the checkpoints before they are measured, and the marks that it leaves on their rows.

A fingerprint is read from the run folder while the files are the same. Of the hub it is made of the hub's
hashes, or is that of the files of a unit that was measured, while the hub says the same of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

from isoscope.results import store
from isoscope.results.store import RunFolder
from isoscope.results.trajectory import trajectory
from isoscope.run.telling import Progress
from isoscope.sweeps.find.checkpoints import Checkpoint
from isoscope.sweeps.find.remote import remote_fingerprint
from isoscope.sweeps.verify.fingerprint import Fingerprint, config_file, fingerprint
from isoscope.sweeps.verify.integrity import Finding
from isoscope.sweeps.work.aside import clear_aside
from isoscope.sweeps.work.unit import DIGEST


def prints_of(
    folder: RunFolder, checkpoints: Sequence[Checkpoint], *, workers: int, progress: Progress
) -> dict[str, Fingerprint]:
    """The fingerprint of each checkpoint by name; those of files that did not change are read, not made."""

    def one(checkpoint: Checkpoint) -> Fingerprint:
        return remote_fingerprint(checkpoint) if checkpoint.revision else _kept_print(folder, checkpoint)

    found = {}
    with ThreadPoolExecutor(max(1, workers)) as pool:
        for checkpoint, made in zip(checkpoints, pool.map(one, checkpoints), strict=True):
            found[checkpoint.name] = made
            progress(len(found), len(checkpoints))
    return found


def _kept_print(folder: RunFolder, checkpoint: Checkpoint) -> Fingerprint:
    file = folder.path / "fingerprints" / f"{folder.file_of(checkpoint.unit).stem}.json"
    stamp = _stamp(checkpoint)
    with suppress(OSError, ValueError, TypeError, KeyError):
        told = json.loads(file.read_text())
        if told["stamp"] == stamp:
            return Fingerprint.from_json(told["fingerprint"])
    made = fingerprint(checkpoint)
    file.parent.mkdir(exist_ok=True)
    store.write_whole(file, json.dumps({"stamp": stamp, "fingerprint": made.to_json()}).encode())
    clear_aside(folder, checkpoint.unit)
    return made


def _stamp(checkpoint: Checkpoint) -> list[list[object]]:
    """Names, sizes and times of a checkpoint's files: where they are the same, so are the files.

    Of a config that was given, its path and a hash of what it says: it is another's, and may be any file.
    """
    place = Path(checkpoint.address)
    files = sorted(place.iterdir()) if place.is_dir() else [place, place.parent / "config.json"]
    there = [file for file in files if file.is_file()]
    stamp: list[list[object]] = [[file.name, file.stat().st_size, file.stat().st_mtime_ns] for file in there]
    if checkpoint.config is not None:
        given = config_file(checkpoint)
        said = hashlib.sha256(given.read_bytes()).hexdigest()[:16] if given.is_file() else ""
        stamp.append([str(given.absolute()), said])
    return stamp


def as_measured(
    folder: RunFolder, checkpoints: Iterable[Checkpoint], prints: Mapping[str, Fingerprint]
) -> dict[str, Fingerprint]:
    """The same, and of checkpoints that were downloaded to be measured, what was found in their files then.

    Files of this machine are read anew, and what is there now counts; so does what the hub lists now where it
    is another. What could not be read then has no digest, and may be mended since: it is not kept either.
    """
    there, found = trajectory(folder).facts, dict(prints)
    for checkpoint in checkpoints:
        now, known = prints[checkpoint.name], there.get(checkpoint.unit, {})
        kept = known.get("fingerprint")
        if not checkpoint.revision or not now.digest or not isinstance(kept, str):
            continue
        then = Fingerprint.from_json(kept)
        if then.digest and known.get(DIGEST) == now.identity:
            found[checkpoint.name] = then
    return found


def by_checkpoint(findings: Iterable[Finding]) -> dict[str, list[Finding]]:
    """The findings of each checkpoint, by its name."""
    said: dict[str, list[Finding]] = {}
    for finding in findings:
        said.setdefault(finding.checkpoint, []).append(finding)
    return said


def mark_anew(folder: RunFolder, checkpoints: Iterable[Checkpoint], findings: Iterable[Finding]) -> None:
    """Replace the findings kept with units: a later checkpoint may show that an earlier one is wrong."""
    there, said = trajectory(folder).facts, by_checkpoint(findings)
    for checkpoint in checkpoints:
        marks = [asdict(finding) for finding in said.get(checkpoint.name, [])]
        had = there.get(checkpoint.unit, {}).get("findings")
        if isinstance(had, list) and had != marks:
            rows, facts = folder.frame(checkpoint.unit, influence=True), folder.known(checkpoint.unit)
            folder.write(checkpoint.unit, rows, {**facts, "findings": marks})
            clear_aside(folder, checkpoint.unit)
