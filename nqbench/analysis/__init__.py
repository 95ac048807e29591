"""From records to effects and findings. Knows records, not devices.

``collect.load_dataset`` (a run -> ``Dataset`` of points), ``effects``/``interactions`` (ratios),
``findings`` (sentences). Import them from their modules; nothing heavy is loaded here.
"""
