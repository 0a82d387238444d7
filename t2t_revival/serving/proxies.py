"""Proxies of the environment, by which clients reach servers of other machines."""

from __future__ import annotations

import os
from ipaddress import ip_address
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

OF_GRPC = ("grpc_proxy", "https_proxy", "http_proxy")  # variables, of which gRPC takes the first


def is_local(host: str) -> bool:
    """Returns whether a host is this machine, which no proxy reaches."""
    try:
        address = ip_address(host)
        return address.is_loopback or address.is_unspecified
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def proxy_of(server: str) -> str:
    """Returns the proxy by which a server is asked, without a password in it; "" for none.

    Args:
        server: host:port for gRPC, http://host:port or https://host:port for REST.
    """
    from requests.utils import get_environ_proxies, select_proxy

    address = urlsplit(server if "://" in server else f"//{server}")
    host = address.hostname or ""
    if is_local(host):
        return ""
    if address.scheme:
        proxy = select_proxy(server, get_environ_proxies(server)) or ""
    else:
        proxy = next(filter(None, map(os.environ.get, OF_GRPC)), "")
        proxy = "" if proxy_bypass(host) else proxy
    scheme, mark, place = proxy.rpartition("://")
    return scheme + mark + place.rpartition("@")[2]
