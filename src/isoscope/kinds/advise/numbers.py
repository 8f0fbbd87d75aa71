"""How the numbers of advice are written: cosines, shares, and each with its interval."""

from __future__ import annotations

from isoscope.formatting import short, two
from isoscope.kinds.advise.findings import Space
from isoscope.results.reading import Reading

NEAR_ONE, NEAR_ZERO = 0.99, 0.01  # beyond these two decimals of a cosine would show 1 or 0


def between(space: Space) -> str:
    """Where nine in ten cosines lie, as after "between".

    >>> from dataclasses import replace
    >>> from isoscope.kinds.advise.findings import NONE
    >>> between(Space("before", {5: replace(NONE, value=0.9981), 95: replace(NONE, value=0.9994)}))
    '0.998 and 0.999'
    """
    return " and ".join(two(space.quantiles[5].value, space.quantiles[95].value))


def cosine(value: float, digits: int = 2) -> str:
    """A cosine as a sentence has it: two decimals, three near 0 and four near 1, where two would show those.

    >>> cosine(0.8642), cosine(0.99812), cosine(0.0042), cosine(-9e-6), cosine(-0.31)
    ('0.86', '0.9981', '0.004', '0.000', '−0.31')
    """
    digits = max(digits, 4 if abs(value) > NEAR_ONE else 3 if abs(value) < NEAR_ZERO else 2)
    text = f"{value:.{digits}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")


def told(number: Reading, form: str = "{} (95 % interval {} to {})") -> str:
    """A cosine, with its interval where it has one: so many decimals that the ends differ, four at most.

    >>> told(Reading(0.1312, 9, low=0.1291, high=0.1333)), told(Reading(0.4, 9))
    ('0.131 (95 % interval 0.129 to 0.133)', '0.40')
    """
    if not number.bounded:
        return cosine(number.value)
    low = high = ""
    for digits in (2, 3, 4):
        low, high = (cosine(end, digits) for end in (number.low, number.high))
        if low != high:
            break
    return form.format(cosine(number.value, len(low.partition(".")[2])), low, high)


def per_cent(number: Reading) -> str:
    """A share with its interval, as per cents.

    >>> per_cent(Reading(0.8123, 9, low=0.8, high=0.83)), per_cent(Reading(0.0123, 9))
    ('81 % (80 to 83 %)', '1.2 %')
    >>> per_cent(Reading(0.4, 9, low=0.398, high=0.402))
    '40.0 % (39.8 to 40.2 %)'
    """
    if not number.bounded:
        return share(number.value)
    digits = 0 if f"{100 * number.low:.0f}" != f"{100 * number.high:.0f}" else 1
    written = [f"{100 * each:.{digits}f}" for each in (number.value, number.low, number.high)]
    return "{} % ({} to {} %)".format(*written).replace("-", "−")


def changed(kept: Reading) -> str:
    """The share that does not stay."""
    return per_cent(Reading(1 - kept.value, kept.n, low=1 - kept.high, high=1 - kept.low))


def share(value: float) -> str:
    """A share as per cents."""
    return f"{100 * value:.0f} %".replace("-", "−") if abs(value) >= 0.1 else f"{short(100 * value, 2)} %"
