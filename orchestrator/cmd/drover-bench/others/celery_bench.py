# Drains no-op tasks with celery: four processes (prefork). Arguments: port of Redis, tasks. Prints the seconds.
import subprocess
import sys
import time

import celery
import redis

PORT = sys.argv[1] if len(sys.argv) > 1 and sys.argv[1].isdigit() else __import__("os").environ["BENCH_PORT"]
app = celery.Celery("celery_bench", broker=f"redis://127.0.0.1:{PORT}/0")
app.conf.update(task_ignore_result=True, worker_prefetch_multiplier=16)


@app.task(name="noop")
def noop(data):
    client().incr("bench:done")


_client = []


def client():
    if not _client:
        _client.append(redis.Redis(port=int(PORT)))
    return _client[0]


if __name__ == "__main__":
    n = int(sys.argv[2])
    for i in range(n):
        noop.delay("x" * 89)
    import os

    began = time.time()
    worker = subprocess.Popen(
        [sys.executable, "-m", "celery", "-A", "celery_bench", "worker", "-c", "4", "-l", "ERROR", "--without-gossip", "--without-mingle"],
        env={**os.environ, "BENCH_PORT": PORT}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    first = None
    while True:
        done = int(client().get("bench:done") or 0)
        if done and first is None:
            first = time.time()
        if done >= n:
            break
        if worker.poll() is not None:
            sys.exit("the worker ended")
        time.sleep(0.002)
    took = time.time() - first
    worker.terminate()
    worker.wait()
    print(took)
