"""How a number is written: three significant digits, "0.484", a true minus, "–" for what is not there."""

from __future__ import annotations

import math
from collections.abc import Callable

ABSENT = "–"
_LARGE = 1e6
_SMALL = 1e-4


def short(value: float, digits: int = 3) -> str:
    """Write `value` with so many significant digits, but never round what stands before the point.

    >>> short(0.48449), short(-0.0123456), short(1234.5), short(0.0), short(math.nan), short(3.2e-7)
    ('0.484', '−0.0123', '1,234', '0', '–', '3.2e-7')
    >>> short(0.31), short(4.0), short(99.96)
    ('0.31', '4', '100')
    """
    if math.isnan(value):
        return ABSENT
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    size = abs(value)
    if size and not _SMALL <= size < _LARGE:
        mantissa, exponent = f"{size:.{digits - 1}e}".split("e")
        text = f"{_trimmed(mantissa)}e{int(exponent)}"
    elif size == 0:
        text = "0"
    else:
        before = math.floor(math.log10(float(f"{size:.{digits - 1}e}"))) + 1
        text = _trimmed(f"{size:,.{max(0, digits - before)}f}")
    return f"−{text}" if value < 0 else text


def _trimmed(text: str) -> str:
    return text.rstrip("0").rstrip(".") if "." in text else text


def plain(value: float) -> str:
    """Write a cosine as a headline has it: two decimals, or one digit where those would show 0.

    >>> plain(0.4849), plain(0.0042), plain(-0.0123), plain(12.3)
    ('0.48', '0.004', '−0.01', '12')
    """
    if 0.01 <= abs(value) < 10:
        return f"{value:.2f}".replace("-", "−")
    return short(value, 1)


def capital(text: str) -> str:
    """The text with a capital first letter, as a sentence begins; a symbol keeps its case.

    >>> capital("the mean cosine"), capital("β removes")
    ('The mean cosine', 'β removes')
    """
    return text[:1].upper() + text[1:] if text[:1].isascii() else text


def shortened(text: str, most: int) -> str:
    """The end of a long text, which says most."""
    return text if len(text) <= most else f"…{text[1 - most :]}"


def spread(values: list[float], write: Callable[[float], str] = short) -> str:
    """The range of `values`, or the one value where writing shows no difference.

    >>> spread([0.62, 0.478, 0.5], plain), spread([0.501, 0.502], plain), spread([-0.02, 0.01])
    ('0.48–0.62', '0.50', '−0.02 to 0.01')
    """
    low, high = write(min(values)), write(max(values))
    if low == high:
        return low
    return f"{low} to {high}" if min(values) < 0 else f"{low}–{high}"


def two(first: float, second: float) -> tuple[str, str]:
    """Write two numbers as a headline has them, with more digits where those would not differ.

    >>> two(0.01, 0.31), two(0.3121, 0.3148)
    (('0.01', '0.31'), ('0.312', '0.315'))
    """
    written = plain(first), plain(second)
    digits = 3
    while digits < 7 and first != second and written[0] == written[1]:
        written = short(first, digits), short(second, digits)
        digits += 1
    return written


def listed(parts: list[str]) -> str:
    """Join with commas and a last "and".

    >>> listed(["a"]), listed(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def number(value: float) -> str:
    """Write a number of a table in the terminal: three digits that matter, a plain minus.

    >>> number(0.12345), number(1234.5), number(0.0), number(2e-9)
    ('0.123', '1234', '0.000', '2.0e-09')
    """
    size = abs(value)
    if size >= 1e6:
        return f"{value:.2e}"
    if size >= 100:
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.3f}" if size >= 0.0005 or size == 0 else f"{value:.1e}"


def said_size(size: float) -> str:
    """Bytes as people read them, rounded up, so that what is asked for is enough.

    >>> said_size(2_300_000_001)
    '2.31 GB'
    """
    unit, one = next((pair for pair in (("GB", 1e9), ("MB", 1e6), ("KB", 1e3)) if size >= pair[1]), ("B", 1))
    return f"{math.ceil(size / one * 100) / 100:g} {unit}"
