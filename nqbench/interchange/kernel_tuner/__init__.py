"""kernel_tuner's files: a tuning space (T1) becomes a study, a run becomes results (T4).

The formats are those of "FAIR Sharing of Data in Autotuning Research" (Hozzova et al., 2024), by
the JSON schemas that kernel_tuner publishes (T1 ``input-schema``, T4 ``results-schema`` and
``metadata-schema``, version 1.0.0), with the keys that kernel_tuner itself reads in addition
(``ProblemSize``, ``GridDivX``, ``MemType``, ``Default``).
"""

from nqbench.interchange.kernel_tuner.results import export
from nqbench.interchange.kernel_tuner.space import Imported, import_space

__all__ = ["Imported", "export", "import_space"]
