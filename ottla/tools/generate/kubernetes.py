"""`ottla generate kubernetes FILE`: manifests that run a pipeline on Kubernetes.

Not done: manifests of brokers; properties files that a pipeline names are mounted by hand.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ottla.base.loading import deferred
from ottla.tools.generate.writing import destination, write, yaml
from ottla.tools.output import Output, note

_service = deferred("ottla.tools.generate.pipelines", "service_of")
_FOLDER, _DATA = "/etc/ottla/pipeline", "/var/lib/ottla"
_FILE = "pipeline.yaml"
_PORT = 9400
_USER = 10001
_STOP_S = 120


def objects_of(service: Any, image: str, storage: str, memory: str) -> list[dict[str, Any]]:
    """Return the objects: the file, the volume of the checkpoint, and one pod that runs."""
    name = f"ottla-{service.slug}"
    labels = {"app.kubernetes.io/name": "ottla-pipeline", "app.kubernetes.io/instance": name}
    meta = {"name": name, "labels": labels}
    claim = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": storage}},
    }
    pod = {
        "securityContext": {"runAsNonRoot": True, "runAsUser": _USER, "fsGroup": _USER},
        # SIGTERM ends the micro-batch that runs, and the next run resumes.
        "terminationGracePeriodSeconds": _STOP_S,
        "containers": [_container(service, image, memory)],
        "volumes": [
            {"name": "pipeline", "configMap": {"name": name}},
            {"name": "data", "persistentVolumeClaim": {"claimName": name}},
            {"name": "tmp", "emptyDir": {}},
        ],
    }
    scraped = {
        "prometheus.io/scrape": "true",
        "prometheus.io/port": str(_PORT),
        "prometheus.io/path": "/metrics",
    }
    deployment = {
        "replicas": 1,
        # A checkpoint belongs to one run at a time.
        "strategy": {"type": "Recreate"},
        "selector": {"matchLabels": labels},
        "template": {"metadata": {"labels": labels, "annotations": scraped}, "spec": pod},
    }
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": meta, "data": {_FILE: service.text}},
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": claim},
        {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": meta, "spec": deployment},
    ]


def _container(service: Any, image: str, memory: str) -> dict[str, Any]:
    secret = f"ottla-{service.slug}"
    passwords = [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": name}}}
        for name in service.variables
    ]
    own = {"OTTLA_STATE_DIR": f"{_DATA}/state", "HOME": "/tmp"}  # noqa: S108 - a volume of the pod
    return {
        "name": "pipeline",
        "image": image,
        # Spark writes beside the folder in which it starts.
        "workingDir": _DATA,
        "args": [
            "pipeline",
            "run",
            f"{_FOLDER}/{_FILE}",
            "--checkpoint",
            f"{_DATA}/checkpoint",
            "--metrics-listener",
            f"0.0.0.0:{_PORT}",
        ],
        "env": [*({"name": name, "value": value} for name, value in own.items()), *passwords],
        "ports": [{"name": "metrics", "containerPort": _PORT}],
        "readinessProbe": {"tcpSocket": {"port": "metrics"}, "periodSeconds": 10},
        "resources": {"requests": {"cpu": "1", "memory": memory}, "limits": {"memory": memory}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "pipeline", "mountPath": _FOLDER, "readOnly": True},
            {"name": "data", "mountPath": _DATA},
            {"name": "tmp", "mountPath": "/tmp"},  # noqa: S108 - a volume of the pod
        ],
    }


def text_of(objects: Sequence[dict[str, Any]], service: Any) -> str:
    """Return the objects as YAML, with a comment about the parts that they need."""
    head = (
        f"# The pipeline {service.name}, written by `ottla generate kubernetes`: kubectl apply -f\n"
        "# The image needs ottla[spark] and Java 17.\n"
    )
    if service.variables:
        words = " ".join(f"--from-literal={name}=…" for name in service.variables)
        head += f"# kubectl create secret generic ottla-{service.slug} {words}\n"
    return head + "---\n".join(yaml(item) for item in objects)


@click.command("kubernetes")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path),
                metavar="FILE.yaml")  # fmt: skip
@click.option("--image", required=True, metavar="IMAGE",
              help="The container image, which has ottla[spark] and Java.")  # fmt: skip
@click.option("--storage", default="1Gi", show_default=True, metavar="SIZE",
              help="The size of the volume with the checkpoint.")  # fmt: skip
@click.option("--memory", default="2Gi", show_default=True, metavar="SIZE",
              help="The memory of the pod.")  # fmt: skip
@destination
def command(
    output: Output,
    file: Path,
    image: str,
    storage: str,
    memory: str,
    path: Path | None,
    force: bool,
) -> None:
    """Print manifests that run a pipeline on Kubernetes, with its checkpoint on a volume.

    \b
    ottla generate kubernetes flights.yaml --image registry/ottla:1 --to flights-manifests.yaml
    """
    service = _service(file)
    objects = objects_of(service, image, storage, memory)
    document = {"apiVersion": "v1", "kind": "List", "items": objects}
    write(output, document, text_of(objects, service), path, force=force)
    for config in service.configs:
        note(f"Mount {config} into the pod, too: the pipeline names it.")
