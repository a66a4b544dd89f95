# Drains no-op tasks with rq: four workers, each of which forks for each task. Arguments: port of Redis, tasks. Prints the seconds.
import multiprocessing
import sys
import time

import redis
import rq


def work(port):
    rq.Worker(["noop"], connection=redis.Redis(port=port)).work(burst=True, logging_level="ERROR")


if __name__ == "__main__":
    port, n = int(sys.argv[1]), int(sys.argv[2]) // 20  # it is slow: a twentieth is enough
    queue = rq.Queue("noop", connection=redis.Redis(port=port))
    for i in range(n):
        queue.enqueue("builtins.len", "x" * 89)
    workers = [multiprocessing.Process(target=work, args=(port,)) for _ in range(4)]
    for w in workers:
        w.start()
    while queue.count == n:  # the start of the workers does not count
        time.sleep(0.002)
    began = time.time()
    for w in workers:
        w.join()
    print((time.time() - began) * 20)
