"""Charts of an answer as vector graphics; one file per family."""

from tierwise.report.charts.chart_style import PAGE_NARROW, PAGE_WIDE, WIDE, to_png, to_svg

__all__ = ["PAGE_NARROW", "PAGE_WIDE", "WIDE", "to_png", "to_svg"]
