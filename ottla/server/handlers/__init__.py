"""One module per API, named as in the protocol; none imports another; each lists its limitations.

A module defines API, MIN_VERSION, MAX_VERSION, `handle` and, if its API has any, PROPERTIES
(`ottla.server.api_properties`). Every module of this package is served.
"""

from pkgutil import iter_modules

__all__ = [module.name for module in iter_modules(__path__)]
