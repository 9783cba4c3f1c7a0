"""From a question to its answer, with this host's tools."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tfenv.bisect import telling
from tfenv.bisect.changes import Rules, environment_of
from tfenv.bisect.endpoints import CUDA_WHEELS
from tfenv.bisect.journal import NAME, Journal, forget, read_question
from tfenv.bisect.locating import Locator, lines
from tfenv.bisect.question import Question, question_from_plain
from tfenv.bisect.result import Result
from tfenv.bisect.session import Search
from tfenv.bisect.testing import Tester, Trial
from tfenv.bisect.venv import Builder, VenvBuilder
from tfenv.bisect.world import host_world
from tfenv.index import discover
from tfenv.store import Store
from tfenv.uv import uv_binary


def find(
    question: Question,
    folder: Path,
    store: Store,
    env: Mapping[str, str],
    say: Callable[[str], None],
    *,
    fresh: bool = False,
) -> tuple[Result, str, dict[str, Any]]:
    """(the answer, the same for people, the same as data).

    Args:
        folder: of the journal. say: gets a line for whatever goes on.
        fresh: forget what is known.

    Raises:
        TfenvError: see ``session.Search.find``.
    """
    if fresh:
        forget(folder)
    elif (folder / NAME).is_file():
        question = question_from_plain(read_question(folder))  # `today` was some hours ago then
    with Journal(folder, question.plain()) as journal:
        if journal.resumed:
            say(
                f"going on with {folder.name}: {len(journal.verdicts)} answers are known "
                "(--fresh forgets them)"
            )
        else:
            say(f"bisection {folder.name}; after an interruption type the same, or: tfenv bisect --resume")
        locator = Locator(
            python=question.python,
            platform=question.platform,
            index=discover(env),
            uv=uv_binary(env),
            env=env,
            store=store,
            links=folder / "wheels",
        )
        left_out = () if question.cuda else (CUDA_WHEELS,)
        builder = make_builder(question, folder, locator, env)
        tester = Tester(
            journal=journal,
            builder=builder,
            trial=Trial(command=question.command, repeat=question.repeat, timeout=question.timeout),
            rules=Rules(
                {},
                environment_of(question.python),
                question.bad.requirements,
                left_out=left_out,
            ),
            say=say,
        )
        world = host_world(
            builder,
            python=question.python,
            platform=question.platform,
            left_out=left_out,
            note=locator.note,
            env=env,
        )
        search = Search(good=question.good, bad=question.bad, world=world, tester=tester, say=say)
        result = search.find()
        files = telling.write_files(result, folder)
        return (
            result,
            telling.text(result, question, files, folder),
            telling.plain(result, question, folder),
        )


def make_builder(question: Question, folder: Path, locator: Locator, env: Mapping[str, str]) -> Builder:
    """The way to make environments that was asked for."""
    if question.where == "image":
        from tfenv.bisect.image import ImageBuilder

        return ImageBuilder(locator=locator, question=question, folder=folder, env=env)
    return VenvBuilder(
        home=folder / "env",
        python=question.interpreter,
        folder=Path(question.folder),
        lines=lambda pins: lines(locator.locate(pins)),
        index=locator.index,
        uv=locator.uv,
        env=env,
    )
