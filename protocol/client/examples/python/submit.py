#!/usr/bin/env python3
"""Submits a task and prints its result, with the standard library alone: submit.py QUEUE JSON [SECONDS]

DROVER_ADDRESS is unix:PATH or https://HOST:PORT; the latter takes DROVER_TOKEN_FILE, and DROVER_CA_FILE for a certificate of your own.
"""
import base64
import http.client
import json
import os
import socket
import ssl
import sys
from urllib.parse import urlsplit


class UnixConnection(http.client.HTTPConnection):
    """A connection over a Unix socket."""

    def __init__(self, path, timeout):
        super().__init__("drover", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def drover(method, request, seconds=30.0):
    """Calls a method of the TaskService and returns its answer."""
    address = os.environ.get("DROVER_ADDRESS", "unix:var/drover.sock")
    headers = {"Content-Type": "application/json"}
    if address.startswith("unix:"):
        conn = UnixConnection(address[len("unix:"):], seconds + 5)
    else:
        with open(os.environ["DROVER_TOKEN_FILE"], encoding="utf-8") as file:
            headers["Authorization"] = "Bearer " + file.read().strip()
        tls = ssl.create_default_context(cafile=os.environ.get("DROVER_CA_FILE"))
        conn = http.client.HTTPSConnection(urlsplit(address).netloc, timeout=seconds + 5, context=tls)
    try:
        conn.request("POST", "/drover.api.v1.TaskService/" + method, json.dumps(request), headers)
        response = conn.getresponse()
        answer = json.load(response)
    finally:
        conn.close()
    if response.status != 200:
        raise RuntimeError(f"{method}: {answer['code']}: {answer.get('message', '')}")
    return answer


def main():
    queue, payload = sys.argv[1:3]
    seconds = float(sys.argv[3]) if len(sys.argv) > 3 else 5.0
    try:
        task_id = drover("Submit", {"queue": queue, "payload": base64.b64encode(payload.encode()).decode()})["id"]
        answer = drover("Wait", {"id": task_id, "timeoutMs": int(seconds * 1000)}, seconds)
    except (OSError, RuntimeError) as error:
        sys.exit(str(error))
    task = answer["task"]
    if not answer.get("ended"):
        print(f"{task_id} is not done after {seconds} s", file=sys.stderr)
        sys.exit(4)
    if task["state"] != "STATE_COMPLETED":
        sys.exit(f"{task_id}: {task['state']}: {task.get('fault', {}).get('message', '')}")
    print(base64.b64decode(task["result"]).decode())


if __name__ == "__main__":
    main()
