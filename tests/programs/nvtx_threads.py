# Markers by Python's package of NVTX, in threads, in asyncio, and in processes of both kinds.
import asyncio
import multiprocessing
import threading

import nvtx


@nvtx.annotate("work", color="blue", domain="library", category="io", payload=7)
def work():
    nvtx.mark("tick", color="red", payload=2.5)


def thread(number):
    with nvtx.annotate(f"thread {number}"):
        for _ in range(3):
            work()


async def task(number):
    started = nvtx.start_range(f"task {number}")
    await asyncio.sleep(0.001)
    nvtx.end_range(started)


async def tasks():
    await asyncio.gather(*(task(number) for number in range(3)))


def child():
    nvtx.push_range("child")
    work()
    nvtx.pop_range()


if __name__ == "__main__":
    with nvtx.annotate("main", color=0x112233):
        threads = [threading.Thread(target=thread, args=(number,)) for number in range(2)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        asyncio.run(tasks())
        for method in ("fork", "spawn"):
            process = multiprocessing.get_context(method).Process(target=child)
            process.start()
            process.join()
            assert process.exitcode == 0
    print("done")
