from nqbench.report.figures.style import Drawing


def heatmap(data, item):
    return []
