"""How many requests a server is working on, by its own counters. Loads the counters' parser only when it is asked."""

import http.client

from redline.engine.launch_plan import LaunchPlan
from redline.errors import RedlineError

_TIMEOUT_S = 2.0


def requests_in_flight(plan: LaunchPlan, api_key: str | None) -> int | None:
    """Return the requests that run or wait, or None where the server does not say."""
    from redline.engine.registry import get_engine

    host = plan.url.removeprefix("http://").rpartition(":")[0].strip("[]")
    connection = http.client.HTTPConnection(host, plan.port, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {api_key}"} if api_key else {})
        response = connection.getresponse()
        text = response.read().decode("utf-8", errors="replace")
        if response.status != 200:
            return None
        counters = get_engine(plan.engine).parse_counters(text)
    except (OSError, http.client.HTTPException, ValueError, RedlineError):
        return None
    finally:
        connection.close()
    if counters.requests_running is None:
        return None
    return round(counters.requests_running + (counters.requests_waiting or 0))
