"""The web app of the examples, with orders that come after a restart."""

from __future__ import annotations

import runpy
from pathlib import Path

from fastapi.testclient import TestClient

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "web_app.py"


def test_the_web_app_learns_orders_after_a_restart(tmp_path: Path) -> None:
    create_app = runpy.run_path(str(EXAMPLE))["create_app"]
    path = str(tmp_path / "shop.db")
    visits = [{"event": f"visit-{i}", "returning": i % 2, "basket": i / 10} for i in range(12)]
    with TestClient(create_app(path)) as client:
        shown = [client.post("/banner", json=visit).json()["banner"] for visit in visits]
        assert set(shown) <= {"sale", "new arrivals", "free shipping"}
        assert client.post("/order", json={"event": "visit-3", "value": 1.0}).json() == {"status": "accepted"}
    with TestClient(create_app(path)) as client:  # the process was restarted, hours later
        again = [client.post("/banner", json=visit).json()["banner"] for visit in visits]
        assert again == shown
        statuses = [
            client.post("/order", json={"event": event, "value": value}).json()["status"]
            for event, value in (
                ("visit-3", 1.0),
                ("visit-4", 0.5),
                ("visit-4", 0.25),
                ("visit-99", 1.0),
                ("visit-5", 9),
            )
        ]
        assert statuses == ["duplicate", "accepted", "conflict", "unknown", "out_of_range"]
        other = client.post("/banner", json={**visits[0], "basket": 7.0})
        assert other.status_code == 409
        assert "another context" in other.json()["detail"]
        assert client.post("/banner", json={**visits[0], "event": ""}).status_code == 422
        metrics = client.get("/metrics").text.splitlines()
        assert 'armlet_rewards_total{loop="front page",status="unknown"} 1' in metrics
