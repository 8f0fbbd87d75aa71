"""How texts of options are read."""

from __future__ import annotations

import pytest

from isoscope.cli.options import parse_share
from isoscope.errors import IsoscopeError


def test_a_share_is_read() -> None:
    assert parse_share("0/1", "--only") == (0, 1)
    assert parse_share("3/4", "--only") == (3, 4)
    for wrong in ("", "1", "1/1", "3/2", "-1/2", "a/b", "1/2/3", "0/0"):
        with pytest.raises(IsoscopeError, match=f"--shard is i/n.*got '{wrong}'"):
            parse_share(wrong, "--shard")
