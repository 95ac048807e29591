"""Where these names stood; they are in :mod:`nqbench.papers.schema`."""

from nqbench.papers.schema import (
    DATA_TWINS as DATA_TWINS,
)
from nqbench.papers.schema import (
    Counterpart as Counterpart,
)
from nqbench.papers.schema import (
    DataFile as DataFile,
)
from nqbench.papers.schema import (
    DataRow as DataRow,
)
from nqbench.papers.schema import (
    Draw as Draw,
)
from nqbench.papers.schema import (
    Known as Known,
)
from nqbench.papers.schema import (
    PaperFigure as PaperFigure,
)
from nqbench.papers.schema import (
    PaperTable as PaperTable,
)
from nqbench.papers.schema import (
    Ratio as Ratio,
)
from nqbench.papers.schema import (
    Series as Series,
)
from nqbench.papers.schema import (
    Twin as Twin,
)
from nqbench.papers.schema import (
    Words as Words,
)
