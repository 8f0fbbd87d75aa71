"""Figures for print."""
