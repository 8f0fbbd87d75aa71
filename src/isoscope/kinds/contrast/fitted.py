"""What the arms of a contrast come to against its reference."""

from __future__ import annotations

from isoscope.lab.contrast.fit import Fitted, fit
from isoscope.results.store import RunFolder


def fitted(folder: RunFolder) -> Fitted:
    """Points, lines and differences of the trials in a folder, its arms in the order they were asked for."""
    facts = folder.facts().values()
    places = {(int(str(known["place"])), str(known["arm"])) for known in facts if "place" in known}
    arms = [arm for _, arm in sorted(places)]
    return fit(folder.frame(), str(folder.run.question["reference"]), arms)
