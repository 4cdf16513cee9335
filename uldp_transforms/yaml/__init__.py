"""EstimateReports for Beam YAML and for other languages: plain arguments as input, named outputs.

Beam YAML finds it through a providers file, Java and other languages through Beam's Python expansion service; see
``docs/yaml.md`` and ``docs/other-languages.md``.
"""

from uldp_transforms.yaml.named_outputs import EstimateReports as EstimateReports

__all__ = ["EstimateReports"]
