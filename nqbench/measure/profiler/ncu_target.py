"""The process that a profiler watches: one launch of one point, checked, and nothing else.

``python -m nqbench.measure.profiler.ncu_target REQUEST REPLY``: both are JSON files, the request
as of ``Session.block`` with the device's ``spec``, the reply the fields of a record.
"""

from __future__ import annotations

import json
import sys
from contextlib import closing
from pathlib import Path

from nqbench.errors import NqbenchError


def main(request_path: str, reply_path: str) -> None:
    """Carry out one request."""
    from nqbench.measure.worker.session import Session

    request = json.loads(Path(request_path).read_text(encoding="utf-8"))
    try:
        with closing(Session(request["spec"])) as session:
            fields = session.block(request)
    except NqbenchError as error:
        fields = {"status": "launch_error", "reason": str(error)}
    fields.pop("fatal", None)
    Path(reply_path).write_text(json.dumps(fields), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
