"""Workers meet over real sockets on this machine's loopback."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest
from meetings import cluster
from tfenv_verify import meeting
from tfenv_verify.meeting import BusyError, LostError


def beside(action: Callable[[], Any]) -> threading.Thread:
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    return thread


def test_workers_meet_and_talk() -> None:
    where, heard = cluster(3), []

    def other(index: int) -> None:
        with meeting.join(where, index, {"gpu": f"G{index}"}, 20) as line:
            heard.append(line.receive(20)["to"])

    threads = [beside(lambda index=index: other(index)) for index in (2, 1)]  # type: ignore[misc]
    with meeting.hold(where, 20) as came:
        assert {index: said["gpu"] for index, (_, said) in came.items()} == {1: "G1", 2: "G2"}
        for index, (line, _) in came.items():
            line.send({"to": index})
        for thread in threads:
            thread.join(20)
    assert sorted(heard) == [1, 2]


def test_who_does_not_come_is_not_waited_for_longer() -> None:
    with meeting.hold(cluster(), 0.3) as came:
        assert came == {}


def test_what_is_no_worker_of_this_cluster_is_sent_away() -> None:
    where = cluster()

    def strangers() -> None:
        address = meeting.split(where[0])
        for said in (b"GET / HTTP/1.1\r\n\r\n", b"[1]\n", b'{"worker": 7}\n', b'{"worker": 1}\n', b""):
            for _ in range(100):
                try:
                    with socket.create_connection(address, 5) as one:
                        one.sendall(said)
                        one.shutdown(socket.SHUT_WR)
                        one.recv(1)
                    break
                except ConnectionRefusedError:
                    threading.Event().wait(0.05)
        with meeting.join(where, 1, {"right": True}, 20) as line:
            line.receive(20)

    thread = beside(strangers)
    with meeting.hold(where, 20) as came:
        ((line, said),) = came.values()
        assert said["right"]
        line.send({})
        thread.join(20)


def test_one_that_is_not_there_is_lost() -> None:
    with (
        pytest.raises(LostError, match=r"could not be reached within 0 s"),
        meeting.join(cluster(), 1, {}, 0),
    ):
        pass


def pair() -> tuple[meeting.Line, socket.socket]:
    one, other = socket.socketpair()
    return meeting.Line(one), other


def test_one_that_goes_away_or_says_nothing_is_lost() -> None:
    line, other = pair()
    with pytest.raises(LostError, match="said nothing for 0 s"):
        line.receive(0.0)
    line, other = pair()
    other.sendall(b"nothing that is understood\n")
    with pytest.raises(LostError, match="not understood"):
        line.receive(5)
    other.close()
    with pytest.raises(LostError, match="went away"):
        line.receive(5)
    with pytest.raises(LostError, match="went away"):
        for _ in range(3):
            line.send({"a": "b" * 100000})
    line.close()


def test_what_was_heard_is_still_to_be_received() -> None:
    line, other = pair()
    assert line.heard() is None
    other.sendall(b'{"a": 1}\n{"b"')
    assert line.heard() == line.heard() == line.receive(5) == {"a": 1}
    assert line.heard() is None
    other.sendall(b": 2}\n")
    other.close()
    assert line.heard() == line.receive(5) == {"b": 2}
    with pytest.raises(LostError, match="went away"):
        line.heard()


def test_a_line_without_an_end_is_not_read_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meeting, "LINE_MAX", 1000)
    line, other = pair()
    other.sendall(b"x" * 2000)
    with pytest.raises(LostError, match="more than 1000 bytes"):
        line.receive(5)


def test_an_address_that_another_has_is_said() -> None:
    where = cluster()
    with socket.socket() as taken:
        taken.bind(meeting.split(where[0]))
        taken.listen()
        with pytest.raises(BusyError, match="cannot listen at 127"), meeting.hold(where, 1):
            pass


@pytest.mark.parametrize("address", ["", "host", "host:", ":1", "host:x", "host:0", "host:65536", "host:-1"])
def test_an_address_is_host_and_port(address: str) -> None:
    assert meeting.split("worker-1:29400") == ("worker-1", 29400)
    with pytest.raises(ValueError, match="is no host:port"):
        meeting.split(address)


def test_those_that_are_done_wait_for_each_other() -> None:
    where, order = cluster(), []

    def other() -> None:
        order.append("other")
        meeting.all_done(where, 1, 20)

    thread = beside(other)
    meeting.all_done(where, 0, 20)
    thread.join(20)
    assert order == ["other"] and not thread.is_alive()
    meeting.all_done(where, 0, 0.1)
    meeting.all_done(where, 1, 0.1)
