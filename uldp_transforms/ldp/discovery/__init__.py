"""Frequent values that nobody listed, found in the counts of an alphabet of prefixes."""

from uldp_transforms.ldp.discovery.discover import Discovery as Discovery
from uldp_transforms.ldp.discovery.discover import can_discover as can_discover
from uldp_transforms.ldp.discovery.discover import check_discovery as check_discovery
from uldp_transforms.ldp.discovery.discover import discover as discover
