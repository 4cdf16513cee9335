"""Collections of which each report carries dimensions."""

from __future__ import annotations

from uldp_transforms.ldp import Collection

COUNTRY = {"name": "country", "values": ["DE", "FR"]}
ARM = {"name": "arm", "values": ["control", "new"]}
SPEC = {
    "id": "grouped",
    "version": 1,
    "alphabet": {"id": "closed", "values": ["a", "b", "c"]},
    "mechanism": {"id": "krr", "epsilon": 1.0},
    "dimensions": [COUNTRY, ARM],
}
GROUPED = Collection.from_json(SPEC)
ON_THE_WAY = Collection.from_json(SPEC | {"dimensions": [COUNTRY | {"set_by": "gateway"}, ARM]})
PLAIN = Collection.from_json({key: entry for key, entry in SPEC.items() if key != "dimensions"})


def of(*dimensions, **more):
    return lambda: Collection.from_json(SPEC | {"dimensions": list(dimensions)} | more)


def dimension(name="arm", values=("a",), **more):
    return of({"name": name, "values": values} | more)
