"""Discovery of frequent unlisted values from the counts of a prefix alphabet."""

from uldp_transforms.ldp.discovery.discover import Discovery as Discovery
from uldp_transforms.ldp.discovery.discover import can_discover as can_discover
from uldp_transforms.ldp.discovery.discover import check_discovery as check_discovery
from uldp_transforms.ldp.discovery.discover import discover as discover
