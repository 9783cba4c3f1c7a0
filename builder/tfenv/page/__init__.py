"""The matrix page: what runs on which GPU and driver, as one HTML file, and a table for the README.

It is made from files alone, so the same files give the same bytes. Every decision is taken here, in
Python, for each compute capability and each range of drivers; the page's script only looks them up.
"""

from .answers import OLDEST, Answer, Answers, Judge
from .collect import Entry, Page, Refused, Release, collect
from .evidence import Proof, Standing, standing
from .gpus import Gpu
from .html import to_html
from .markdown import BEGIN, END, replace_between, to_markdown

__all__ = [
    "BEGIN",
    "END",
    "OLDEST",
    "Answer",
    "Answers",
    "Entry",
    "Gpu",
    "Judge",
    "Page",
    "Proof",
    "Refused",
    "Release",
    "Standing",
    "collect",
    "replace_between",
    "standing",
    "to_html",
    "to_markdown",
]
