"""Which endpoint URLs a person may register."""

from __future__ import annotations

import ipaddress

import pytest

from capacity.sources.address import address_fault, metrics_url, url_fault


@pytest.mark.parametrize(
    "address",
    [
        "169.254.169.254",
        "169.254.0.0",
        "169.254.255.255",
        "fe80::1",
        "fe80::1%eth0",
        "febf::1",
        "fd00:ec2::254",
        "fd20:ce::254",
        "100.100.100.200",
        "192.0.0.192",
        "168.63.129.16",
        "0.0.0.0",
        "0.1.2.3",
        "::",
        "224.0.0.1",
        "ff02::1",
        "255.255.255.255",
        "::ffff:169.254.169.254",
        "::ffff:0.0.0.0",
        "::169.254.169.254",
        "64:ff9b::169.254.169.254",
        "2002:a9fe:a9fe::1",
    ],
)
def test_an_address_that_is_no_engine_s_is_refused(address):
    fault = address_fault(address)
    assert fault is not None
    assert fault.startswith("The address ")
    assert fault.endswith(".")


@pytest.mark.parametrize(
    "address", ["127.0.0.1", "::1", "10.0.0.7", "192.168.1.9", "172.16.0.1", "fd12::7", "8.8.8.8", "2001:db8::1"]
)
def test_loopback_private_and_public_addresses_are_taken(address):
    assert address_fault(address) is None


def test_what_is_allowed_is_taken_and_nothing_beside_it():
    allowed = (ipaddress.ip_network("169.254.7.0/24"),)
    assert address_fault("169.254.7.3", allowed) is None
    assert address_fault("169.254.8.3", allowed) is not None


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("ftp://host/", "starts with http://"),
        ("http://", "names a host"),
        ("host:8000", "starts with http://"),
        ("", "starts with http://"),
        ("http://host:99999", "not a URL"),
        ("http://[::1", "not a URL"),
        ("http://user:secret@host", "user or a password"),
        ("http://host/?token=secret", "a token or a key"),
        ("http://host/v1?model=m&API-Key=secret", "a token or a key"),
        ("http://host/?X-Amz-Signature=secret", "a token or a key"),
        ("http://host/#access_token=secret", "a token or a key"),
        ("http://ho st/", "has no spaces"),
        ("http://host/\n", "has no spaces"),
        ("http://" + "h" * 3000, "2000 characters"),
        ("http://169.254.169.254/latest", "link-local"),
        ("http://[fd00:ec2::254]/", "metadata"),
        ("http://2852039166", "link-local"),
    ],
)
def test_a_bad_url_is_refused_with_one_sentence_and_without_its_secrets(url, words):
    fault = url_fault(url)
    assert fault is not None
    assert words in fault
    assert "secret" not in fault


def test_a_name_is_judged_by_all_its_addresses():
    assert url_fault("http://engine:8000", lookup=lambda host, port: ["10.0.0.1", "169.254.169.254"]) is not None
    assert url_fault("http://engine:8000", lookup=lambda host, port: ["10.0.0.1", "fd12::1"]) is None


def test_a_name_that_does_not_resolve_yet_is_taken():
    def fails(host: str, port: int) -> list[str]:
        raise OSError("no such name")

    assert url_fault("http://engine-of-tomorrow:8000", lookup=fails) is None


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("http://h:1", "http://h:1/metrics"),
        ("http://h:1/", "http://h:1/metrics"),
        ("http://h:1/v1", "http://h:1/metrics"),
        ("http://h:1/v1/", "http://h:1/metrics"),
        ("http://h:1/metrics", "http://h:1/metrics"),
        ("http://h:1/prefix", "http://h:1/prefix/metrics"),
        ("http://h:1/?model=a/b", "http://h:1/metrics?model=a/b"),
        ("http://h:1/v1?model=m", "http://h:1/metrics?model=m"),
    ],
)
def test_metrics_lie_beside_the_api(url, found):
    assert metrics_url(url) == found
