"""From records to numbers and sentences. Knows records, workloads and papers, not devices.

``data``       a run as points with estimates, and which of them a question is about
``factorial``  effects and interactions of a sweep's factors
``compare``    runs, levels of a factor, and devices against each other
``limits``     what a GPU can do at most, rooflines, bottlenecks
``claims``     verdicts on what papers say
``findings``   the most important findings about a run, in sentences

Each of them imports only those above it. Nothing heavy is loaded here.
"""
