"""Workers where others are at work: what one run opens, another does not need."""

from __future__ import annotations

import contextlib
import socket

from armlet import parallel


def test_a_dask_cluster_starts_where_its_usual_port_is_taken() -> None:
    with socket.socket() as taken, contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # somebody else has it: as good
            taken.bind(("", 8787))
            taken.listen()
        assert parallel.start_dask(stack, 1).submit(abs, -3).result() == 3
