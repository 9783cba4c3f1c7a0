from __future__ import annotations

import pytest
from tfenv.times import instant, unix


def test_a_time_in_utc_is_a_moment() -> None:
    assert instant("2024-03-20T00:00:00Z").isoformat() == "2024-03-20T00:00:00+00:00"
    assert unix("1970-01-02T00:00:00Z") == 86400


@pytest.mark.parametrize("text", ["", "2024-13-01T00:00:00Z", "2024-03-20T00:00:00+02:00", "Z"])
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        instant(text)
