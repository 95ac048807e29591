from nqbench.report.figures.style import Drawing


def line(data, item):
    return []
