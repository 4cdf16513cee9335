"""Conformance checks of mechanisms and estimators, for authors of other packages and for this package's tests.

No test framework is needed: a fault raises ``ConformanceError``, whose message names the instance and the fault.
"""

from uldp_transforms.ldp.errors import ConformanceError as ConformanceError
from uldp_transforms_conformance.estimator_checks import check_estimator as check_estimator
from uldp_transforms_conformance.mechanism_checks import check_mechanism as check_mechanism
