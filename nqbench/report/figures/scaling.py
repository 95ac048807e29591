from nqbench.report.figures.style import Drawing


def scaling(data, item):
    return []
