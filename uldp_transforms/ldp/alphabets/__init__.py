"""Alphabets: value -> symbol, one file each. To add one, add a file here and its name to ``ALPHABETS``."""

from uldp_transforms.ldp.alphabets.alphabet import Alphabet as Alphabet
from uldp_transforms.ldp.alphabets.blocks import Blocks as Blocks
from uldp_transforms.ldp.alphabets.closed import Closed as Closed
from uldp_transforms.ldp.alphabets.hashed import Hashed as Hashed
from uldp_transforms.ldp.alphabets.ordered import Ordered as Ordered
from uldp_transforms.ldp.alphabets.permuted import Permuted as Permuted
from uldp_transforms.ldp.alphabets.prefixes import Prefixes as Prefixes
from uldp_transforms.ldp.alphabets.tagged import PersonalTags as PersonalTags
from uldp_transforms.ldp.alphabets.tagged import Tagged as Tagged
from uldp_transforms.ldp.registry import Registry

ALPHABETS: Registry[Alphabet] = Registry("alphabet", (Closed, Permuted, Hashed, Tagged, Prefixes, Ordered, Blocks))
