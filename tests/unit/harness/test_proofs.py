"""What a worker must prove before it measures."""

from __future__ import annotations

import json
import sys
import types

import pytest
from opatlas.harness import proofs
from opatlas.harness.proofs import Refused

DIGEST = "sha256:" + "a" * 64
OTHER = "sha256:" + "b" * 64
IMAGE = {"kind": "image", "image": f"repo@{DIGEST}", "digest": DIGEST}
INSIDE = {"APPTAINER_CONTAINER": "/x.sif"}


@pytest.fixture
def labels(tmp_path):
    def write(source):
        path = tmp_path / "labels.json"
        path.write_text(json.dumps({"org.label-schema.usage.singularity.deffile.from": source}))
        return path

    return write


def test_the_host_proves_no_image(tmp_path):
    assert proofs.image({"kind": "host"}, {}, tmp_path / "none") is None


def test_the_label_of_a_pull_by_digest_proves_the_image(labels):
    assert proofs.image(IMAGE, {"SINGULARITY_CONTAINER": "x"}, labels(f"repo@{DIGEST}")) == DIGEST


def test_the_label_counts_more_than_the_variable(labels):
    with pytest.raises(Refused, match=f"it runs in {OTHER}"):
        proofs.image(IMAGE, {**INSIDE, "OPATLAS_IMAGE_DIGEST": DIGEST}, labels(f"repo@{OTHER}"))


def test_an_image_without_such_a_label_goes_by_the_variable(labels):
    path = labels("ubuntu:24.04")
    assert proofs.image(IMAGE, {**INSIDE, "OPATLAS_IMAGE_DIGEST": DIGEST}, path) == DIGEST
    with pytest.raises(Refused, match="cannot tell which image"):
        proofs.image(IMAGE, INSIDE, path)


def test_a_job_that_should_be_in_an_image_refuses_the_host(labels):
    with pytest.raises(Refused, match="outside of any container"):
        proofs.image(IMAGE, {"OPATLAS_IMAGE_DIGEST": DIGEST}, labels(f"repo@{DIGEST}"))


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ("2.13.0", "2.13.0+cpu"),
        ("2.13", "2.13.0"),
        ("1.3.0rc20", "1.3.0rc20"),
        ("1.3.0rc20", "1.3.0.rc20+cu130"),
        ("1.3.0rc20", "v1.3.0-RC20"),
        ("0.5.14.post1", "0.5.14-post1"),
        ("0.5.14.dev3", "0.5.14dev3"),
        ("1.0a1", "1.0alpha1"),
    ],
)
def test_equal_public_versions(expected, found):
    proofs.version(expected, {"framework": found})


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        ("2.13.0", "2.13.1"),
        ("1.3.0rc20", "1.3.0rc2"),
        ("1.3.0rc20", "1.3.0"),
        ("1.3.0", "1.3.0.post1"),
        ("0.10", "0.1"),
        ("0.5.10", "0.5.10rc0"),
        ("10", "1"),
    ],
)
def test_different_public_versions(expected, found):
    """FIELD D1: rows of another version than their directory are never measured."""
    with pytest.raises(Refused, match="the pinned version is"):
        proofs.version(expected, {"framework": found})


def test_public_versions_are_equal_as_packaging_says():
    packaging = pytest.importorskip("packaging.version")
    versions = [
        "1.3.0rc20",
        "1.3.0-rc.20",
        "1.3rc20",
        "1.3.0",
        "1.3",
        "v1.3.0+x",
        "1!1.3",
        "1.3.post1",
        "1.3-r1",
    ]
    versions += [
        "1.3.0a1",
        "1.3alpha1",
        "1.3b",
        "1.3beta0",
        "1.3.dev0",
        "1.3dev",
        "1.30",
        "1.3c20",
        "1.3pre20",
    ]
    for left in versions:
        for right in versions:
            same = packaging.Version(left).public == packaging.Version(right).public or (
                packaging.Version(packaging.Version(left).public)
                == packaging.Version(packaging.Version(right).public)
            )
            assert (proofs._public(left) == proofs._public(right)) == same, (left, right)


def test_device_facts():
    """FIELD D9: a job on another product than the platform's refuses."""
    facts = {"device": "NVIDIA H200", "sm": 90}
    proofs.device({"device": "NVIDIA H200", "sm": 90}, facts)
    proofs.device({"device": None, "sm": None}, facts)
    proofs.device({}, facts)
    with pytest.raises(Refused, match="SM is 100, but this one's is 90"):
        proofs.device({"device": None, "sm": 100}, facts)
    with pytest.raises(Refused, match="device is NVIDIA H100 80GB HBM3, but this one's is NVIDIA H200"):
        proofs.device({"device": "NVIDIA H100 80GB HBM3"}, facts)


def test_unknown_code_is_named(monkeypatch):
    ours = {name for name in sys.modules if name.split(".")[0] == "opatlas"}
    proofs.code(frozenset(ours))
    monkeypatch.setitem(sys.modules, "opatlas.smuggled", types.ModuleType("opatlas.smuggled"))
    monkeypatch.setitem(sys.modules, "opatlas_like", types.ModuleType("opatlas_like"))
    with pytest.raises(Refused, match=r"module opatlas\.smuggled is imported"):
        proofs.code(frozenset(ours))
