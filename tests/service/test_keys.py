from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from armlet.service.keys import OPEN, SCOPES, Grant, Keyring, Scope, digest, is_local, is_loopback, new_key


def grant(*scopes: Scope, **settings: object) -> Grant:
    return Grant(name="web", scopes=frozenset(scopes), **settings)  # type: ignore[arg-type]


def test_a_key_has_256_random_bits_and_a_prefix() -> None:
    keys = {new_key() for _ in range(100)}
    assert len(keys) == 100
    assert all(key.startswith("armlet_") and len(key) == len("armlet_") + 43 for key in keys)


def test_a_key_is_found_by_its_hash_alone() -> None:
    key, other = new_key(), new_key()
    keyring = Keyring({hashlib.sha256(key.encode()).digest(): grant("decide")})
    assert keyring.find(key) == grant("decide")
    assert keyring.find(other) is None
    assert keyring.find(digest(key).hex()) is None  # whoever has read the settings has no key
    assert key not in repr(vars(keyring))


@given(st.text())
def test_any_text_can_be_looked_up(token: str) -> None:
    assert Keyring({digest("armlet_key"): OPEN}).find(token) is (OPEN if token == "armlet_key" else None)


@given(st.characters(categories=["Cs"]))
def test_half_a_surrogate_can_be_looked_up(token: str) -> None:
    assert Keyring({digest("armlet_key"): OPEN}).find(token) is None


def test_several_keys_are_valid_at_once_so_that_one_can_replace_another() -> None:
    old, new = new_key(), new_key()
    keyring = Keyring({digest(old): grant("decide", expires=100.0), digest(new): grant("decide")}, wall=lambda: 99.0)
    assert keyring.find(old) is not None
    assert keyring.find(new) is not None


def test_an_expired_key_is_unknown_and_does_not_open_the_server() -> None:
    key = new_key()
    keyring = Keyring({digest(key): grant("decide", expires=100.0)}, wall=lambda: 100.0)
    assert keyring.find(key) is None
    assert keyring.anonymous is None


def test_without_keys_everything_is_allowed_and_no_key_is_valid() -> None:
    keyring = Keyring({})
    assert keyring.anonymous is OPEN
    assert keyring.find(new_key()) is None
    assert all(OPEN.allows(scope, "home") and OPEN.allows(scope, None) for scope in SCOPES)


def test_a_grant_is_for_its_scopes_and_its_loops() -> None:
    bound = grant("decide", loops=frozenset({"home"}))
    assert [scope for scope in SCOPES if bound.allows(scope, "home")] == ["decide"]
    assert not bound.allows("decide", "search")
    assert not bound.allows("decide", None)
    assert grant("admin").allows("admin", None)
    assert not grant("admin").allows("decide", "home")  # no scope implies another


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "127.1.2.3:8080", "[::1]:80", "[::1]", "::1"])
def test_loopback_is_this_machine(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    [
        "",
        "0.0.0.0",
        "::",
        "[::]:80",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "10.0.0.1",
        "127.0.0.1:80@evil",
    ],
)
def test_other_hosts_are_not_loopback(host: str) -> None:
    assert not is_loopback(host)


@pytest.mark.parametrize("header", ["forwarded", "x-forwarded-for", "x-real-ip", "via", "x-forwarded-host"])
def test_a_proxy_brings_requests_of_others(header: str) -> None:
    assert is_local({b"host": b"localhost"})
    assert not is_local({b"host": b"localhost", header.encode(): b"192.0.2.1"})


def test_a_page_of_another_site_is_not_this_machine() -> None:
    assert not is_local({b"host": b"127.0.0.1:8080", b"origin": b"https://evil.example"})
    assert not is_local({b"host": b"127.0.0.1:8080", b"origin": b"null"})
    assert is_local({b"host": b"127.0.0.1:8080", b"origin": b"http://127.0.0.1:8080"})
    assert not is_local({b"host": b"evil.example"})  # a name that leads to 127.0.0.1
    assert not is_local({})
