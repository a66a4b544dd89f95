#!/usr/bin/env python3
"""Counts words. A worker for Drover's exec, with nothing but Python 3.

    command: [bin/plugins/exec, --name, words, --, python3, plugins/exec/examples/python/worker.py]

It reads nothing while it works, so a cancelled task ends by SIGTERM, which ends Python; exec then starts a new one.
"""

import json
import sys

# Messages go to the real standard output; whatever prints, also in a library, goes to standard error.
out, sys.stdout = sys.stdout, sys.stderr


def say(type, **fields):
    print(json.dumps({"type": type, **fields}), file=out, flush=True)


def work(run, payload):
    text = payload.get("text")
    if not isinstance(text, str):
        return say("error", run=run, kind="invalid_payload", message="text is missing", permanent=True)
    words = text.split()
    say("progress", run=run, done=len(words), total=len(words), note="counted")
    say("result", run=run, result={"words": len(words), "characters": len(text)})


say("ready", v=1)
for line in sys.stdin:  # ends with the worker
    message = json.loads(line)
    if message["type"] == "task":
        try:
            work(message["run"], message["payload"])
        except Exception as e:  # a failure of this task, which is tried again; the process goes on
            say("error", run=message["run"], message=f"{type(e).__name__}: {e}")
