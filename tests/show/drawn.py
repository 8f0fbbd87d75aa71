"""Panels as plotly draws them, checked by plotly's own classes."""

from __future__ import annotations

import plotly.graph_objects as go

from isoscope.show.charts import Chart
from isoscope.show.draw.plotly.charts import figure
from isoscope.show.figures.panels import Panel


def figure_of(panel: Panel | Chart) -> go.Figure:
    """The figure of a panel or of a chart."""
    return go.Figure(figure(panel.chart if isinstance(panel, Panel) else panel))
