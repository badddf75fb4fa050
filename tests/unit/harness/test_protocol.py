"""The channel between supervisor and worker."""

from __future__ import annotations

import os

import pytest
from opatlas.harness.protocol import Channel, Closed, ProtocolError, encode


@pytest.fixture
def ends():
    """Two channels that speak to each other."""
    to_b, from_a = os.pipe()
    to_a, from_b = os.pipe()
    a, b = Channel(to_a, from_a), Channel(to_b, from_b)
    yield a, b
    a.close()
    b.close()


def test_messages_arrive_in_order_also_several_at_once(ends):
    a, b = ends
    for number in range(3):
        a.send("case", case=f"zwölf\n{number}")
    assert [b.receive()["case"] for _ in range(3)] == [f"zwölf\n{number}" for number in range(3)]


def test_an_unfinished_message_waits_for_its_rest(ends):
    a, b = ends
    os.set_blocking(b.read_fd, False)
    line = encode({"type": "row", "case": "x"})
    assert b.poll() is None
    os.write(a._write_fd, line[:10])
    assert b.poll() is None
    os.write(a._write_fd, line[10:])
    assert b.poll() == {"type": "row", "case": "x"}


@pytest.mark.parametrize(
    "rubbish", [b"Warning: x\n", b"[1]\n", b'{"case": "x"}\n', b'{"type": 1}\n', b"\xff\n"]
)
def test_rubbish_is_an_error(ends, rubbish):
    a, b = ends
    os.write(a._write_fd, rubbish)
    with pytest.raises(ProtocolError):
        b.receive()


def test_the_end_of_the_other_side_shows_in_both_directions(ends):
    a, b = ends
    a.send("stop")
    a.close()
    assert b.receive() == {"type": "stop"}
    with pytest.raises(Closed):
        b.receive()
    with pytest.raises(Closed):
        b.send("row")


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object()])
def test_what_json_cannot_say_is_not_sent(value):
    with pytest.raises((ValueError, TypeError)):
        encode({"type": "row", "latency": value})
