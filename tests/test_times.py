from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest
from tfenv.times import instant, now, rfc3339, unix


def test_a_time_in_utc_is_a_moment() -> None:
    assert instant("2024-03-20T00:00:00Z").isoformat() == "2024-03-20T00:00:00+00:00"
    assert unix("1970-01-02T00:00:00Z") == 86400


def test_a_moment_is_written_in_utc_and_whole_seconds() -> None:
    east = datetime(2024, 3, 20, 1, 0, 0, 999_999, tzinfo=timezone(timedelta(hours=2)))
    assert rfc3339(east) == "2024-03-19T23:00:00Z" == rfc3339(unix("2024-03-19T23:00:00Z"))
    assert instant(now()) <= datetime.now(timezone.utc)


@pytest.mark.parametrize("text", ["", "2024-13-01T00:00:00Z", "2024-03-20T00:00:00+02:00", "Z"])
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        instant(text)
