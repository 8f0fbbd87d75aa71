"""Renderers: charts drawn by plotly for the page and by matplotlib for print."""
