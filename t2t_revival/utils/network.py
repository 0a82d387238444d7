"""Hosts that do not answer, found within seconds: libraries that download try for minutes."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterable
from http.client import HTTPException
from queue import Empty, SimpleQueue
from threading import Thread
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import Request, build_opener

SECONDS = 10.0  # for name, connection and answer, of all hosts together


def silent_hosts(urls: Iterable[str], seconds: float = SECONDS) -> list[str]:
    """Returns the hosts of URLs, such as "http://www.statmt.org", if none of them answers in `seconds`.

    Proxies of the environment are used. The list is empty where one host answers, whatever it says, or cannot
    be asked (gs://).
    """
    hosts = sorted({f"{parts.scheme}://{parts.netloc}" for parts in map(urlsplit, urls)})
    answers: SimpleQueue[bool] = SimpleQueue()
    for host in hosts:  # by threads that may be left behind: the look-up of a name has no timeout
        Thread(target=lambda host=host: answers.put(_answers(host, seconds)), daemon=True).start()
    end = time.monotonic() + seconds
    for _ in hosts:
        try:
            if answers.get(timeout=max(0.0, end - time.monotonic())):
                return []
        except Empty:
            break
    return hosts


def _answers(host: str, seconds: float) -> bool:
    try:
        build_opener().open(Request(host, method="HEAD"), timeout=seconds).close()
    except HTTPError:
        return True
    except URLError as error:
        return not isinstance(error.reason, OSError) or isinstance(error.reason, ssl.SSLError)
    except OSError:
        return False
    except (HTTPException, ValueError):
        return True
    return True
