"""`/jmx`: the beans as JSON, for tools that read Kafka's metrics through JMX.

A Python process has no JMX port. The object names, attributes and values are the same; tools that
can read JMX over HTTP get them in the form of Hadoop's JMXJsonServlet or of Jolokia:

    /jmx                          all beans; ?qry=PATTERN some, ?get=NAME::ATTRIBUTE one attribute
    /jmx/read/NAME/ATTRIBUTE      Jolokia: a bean or a pattern, all attributes or some (A,B)
    /jmx/search/PATTERN           Jolokia: the names that match
    /jmx/list/DOMAIN              Jolokia: the names, by domain
    /jmx/version                  Jolokia: the product and the protocol version

Not done: Jolokia's POST requests, its `write` and `exec`, and paths inside of attributes.
"""

import json
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any

import ottla
from ottla.metrics.jmx_json import Attributes, attributes_of
from ottla.metrics.object_names import ANY, ObjectNamePattern, object_name
from ottla.server.monitoring.http import HttpResponse, Request
from ottla.server.monitoring.scrape import measurements, replica_rows
from ottla.server.monitoring.sources import Pace, Sources

_JSON = "application/json; charset=utf-8"
_MISSING = "javax.management.InstanceNotFoundException"
_NO_ATTRIBUTE = "javax.management.AttributeNotFoundException"
_MALFORMED = "javax.management.MalformedObjectNameException"
_UNKNOWN = "java.lang.IllegalArgumentException"
# Jolokia escapes a slash inside of a part of the path.
_PART = re.compile(r"((?:![/!\"]|[^/])*)(?:/|$)")
_ESCAPED = re.compile(r"!(.)")

Beans = dict[str, Attributes]


class _Refusal(Exception):
    """A request that fails: Java's exception, a message, and the status of HTTP."""

    def __init__(self, kind: str, message: str, status: int) -> None:
        super().__init__(message)
        self.kind = kind
        self.status = status


class JmxPages:
    """The pages below `/jmx`."""

    def __init__(self, node: Sources) -> None:
        self._node = node

    # -- JMXJsonServlet ---------------------------------------------------------------------------

    async def servlet(self, request: Request) -> HttpResponse:
        """Return the beans, or one attribute, as JMXJsonServlet does."""
        requested = request.parameters.get("get")
        try:
            if requested is None:
                beans = await self._select(request.parameters.get("qry") or ANY)
            else:
                beans = await self._attribute(requested)
        except _Refusal as refusal:
            return _answer({"result": "ERROR", "message": str(refusal)}, refusal.status)
        pace = Pace(self._node.clock)
        pieces = [b'{"beans": [\n']
        for name, attributes in beans.items():
            await pace.rest()
            bean = {"name": name, "modelerType": "ottla", **attributes}
            pieces.append(b",\n" * (len(pieces) > 1) + json.dumps(bean).encode())
        return HttpResponse(200, _JSON, [*pieces, b"\n]}\n"])

    async def _attribute(self, text: str) -> Beans:
        name, separator, attribute = text.partition("::")
        if not separator:
            raise _Refusal(_UNKNOWN, "query format is not as expected: NAME::ATTRIBUTE.", 400)
        beans = await self._select(name)
        for attributes in beans.values():
            if attribute not in attributes:
                raise _Refusal(_NO_ATTRIBUTE, f"No attribute {attribute!r}.", 404)
        if not beans:
            raise _Refusal(_MISSING, f"No bean {name!r}.", 404)
        return {name: {attribute: beans[name][attribute]} for name in beans}

    # -- Jolokia ----------------------------------------------------------------------------------

    async def jolokia(self, request: Request) -> HttpResponse:
        """Handle a GET request of Jolokia; its errors have status 200 in HTTP."""
        verb, *parts = [
            _ESCAPED.sub(r"\1", part) for part in _PART.findall(request.path)[2:] if part
        ] or [""]
        verbs: Mapping[str, Callable[[list[str]], Any]] = {
            "": self._version,
            "version": self._version,
            "read": self._read,
            "search": self._search,
            "list": self._list,
        }
        echo = {
            "type": verb or "version",
            **dict(zip(("mbean", "attribute"), parts, strict=False)),
        }
        body: dict[str, object] = {"request": echo, "timestamp": self._now_ms() // 1000}
        try:
            if verb not in verbs:
                raise _Refusal(_UNKNOWN, f"Unknown request {verb!r}: use {', '.join(verbs)}.", 400)
            body["value"] = await verbs[verb](parts)
            body["status"] = 200
        except _Refusal as refusal:
            body |= {"error_type": refusal.kind, "status": refusal.status}
            body["error"] = f"{refusal.kind} : {refusal}"
        return _answer(body)

    async def _version(self, _: list[str]) -> object:
        return {
            "agent": "2.0.0",
            "protocol": "7.2",
            "info": {"product": "ottla", "vendor": "ottla", "version": ottla.__version__},
        }

    async def _read(self, parts: list[str]) -> object:
        if not parts:
            raise _Refusal(_UNKNOWN, "read needs the name of a bean.", 400)
        name, *remainder = parts
        beans = await self._select(name)
        if not beans:
            raise _Refusal(_MISSING, f"No bean {name!r}.", 404)
        names = remainder[0].split(",") if remainder else []
        chosen = {bean_name: _chosen(attributes, names) for bean_name, attributes in beans.items()}
        if not ObjectNamePattern(name).is_exact:
            return {bean_name: attributes for bean_name, attributes in chosen.items() if attributes}
        (attributes,) = chosen.values()
        if names and not attributes:
            raise _Refusal(_NO_ATTRIBUTE, f"No attribute {remainder[0]!r}.", 404)
        return attributes[names[0]] if len(names) == 1 else attributes

    async def _search(self, parts: list[str]) -> object:
        return list(await self._select(parts[0] if parts else ANY))

    async def _list(self, parts: list[str]) -> object:
        beans = await self._select(f"{parts[0]}:*" if parts else ANY)
        domains: dict[str, dict[str, object]] = {}
        for name, attributes in beans.items():
            domain, _, properties = name.partition(":")
            domains.setdefault(domain, {})[properties] = {
                "attr": {
                    attribute: {"rw": False, "type": _type(attributes[attribute])}
                    for attribute in attributes
                },
                "desc": "",
            }
        return domains.get(parts[0], {}) if parts else domains

    # -- both -------------------------------------------------------------------------------------

    def _now_ms(self) -> int:
        return self._node.clock.time_ms()

    async def _select(self, text: str) -> Beans:
        """Return the beans that match a pattern."""
        try:
            pattern = ObjectNamePattern(text)
        except ValueError as error:
            raise _Refusal(_MALFORMED, str(error), 400) from error
        clock = self._node.clock
        pace, now = Pace(clock), clock.monotonic()
        beans: Beans = {}
        replicas = await replica_rows(self._node, pace)
        for bean, rows in await measurements(self._node, replicas, pace):
            if not pattern.may_contain(bean):
                continue
            for properties, value in rows:
                await pace.rest()
                name = object_name(bean, properties)
                if name in pattern:
                    attributes = attributes_of(bean, name, value, self._node.rates, now)
                    beans.setdefault(str(name), {}).update(attributes)
        return beans


def _chosen(attributes: Attributes, names: Collection[str]) -> Attributes:
    return {name: attributes[name] for name in names or attributes if name in attributes}


def _type(value: object) -> str:
    types = {int: "long", float: "double", str: "java.lang.String"}
    return types.get(type(value), "java.lang.Object")


def _answer(body: object, status: int = 200) -> HttpResponse:
    return HttpResponse(status, _JSON, [json.dumps(body).encode() + b"\n"])
