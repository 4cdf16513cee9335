"""Estimators: counts -> frequencies, one module each. To add one, add a module here and a name to ``ESTIMATORS``."""

from uldp_transforms.ldp.estimators.empirical import Empirical as Empirical
from uldp_transforms.ldp.estimators.empirical_bayes import EmpiricalBayes as EmpiricalBayes
from uldp_transforms.ldp.estimators.estimator import Estimate as Estimate
from uldp_transforms.ldp.estimators.estimator import Estimator as Estimator
from uldp_transforms.ldp.estimators.expectation_maximization import ExpectationMaximization as ExpectationMaximization
from uldp_transforms.ldp.estimators.maximum_likelihood import MaximumLikelihood as MaximumLikelihood
from uldp_transforms.ldp.estimators.normalized import Normalized as Normalized
from uldp_transforms.ldp.estimators.projected import Projected as Projected
from uldp_transforms.ldp.estimators.threshold import Threshold as Threshold
from uldp_transforms.ldp.registry import Registry

ESTIMATORS: Registry[Estimator] = Registry(
    "estimator",
    (EmpiricalBayes, Empirical, Normalized, Projected, Threshold, MaximumLikelihood, ExpectationMaximization),
)
