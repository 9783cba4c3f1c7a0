"""What is said of licences, in SPDX's words where they mean the same, and nothing guessed."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_diff_sections import SIDE
from tfenv.diff.model import Entry
from tfenv.sbom import licences
from tfenv.sbom.licences import copyright_text, of_copyright, of_metadata, spdx

HEAD = "Format: https://example.org/doc/copyright-format/1.0/\n\n"


@pytest.mark.parametrize(
    ("name", "expression"),
    [
        ("MIT", "MIT"),
        ("mit", "MIT"),
        ("Apache 2.0", "Apache-2.0"),
        ("3-Clause BSD License", "BSD-3-Clause"),
        ("GPL-2+", "GPL-2.0-or-later"),
        ("Expat", "MIT"),
        ("MIT OR Apache-2.0", "MIT OR Apache-2.0"),
        ("BSD", ""),
        ("Apache Software License", ""),
        ("public-domain", ""),
        ("", ""),
    ],
)
def test_names_that_mean_one_licence(name: str, expression: str) -> None:
    assert spdx(name) == expression


def test_every_alias_is_an_spdx_expression() -> None:
    facts = licences._facts()
    for expression in {*facts["aliases"].values(), *facts["classifiers"].values()}:
        from packaging.licenses import canonicalize_license_expression

        assert canonicalize_license_expression(expression) == expression


@pytest.mark.parametrize(
    ("headers", "expression", "names", "source"),
    [
        (
            "License-Expression: Apache-2.0 OR MIT",
            "Apache-2.0 OR MIT",
            ("Apache-2.0 OR MIT",),
            "License-Expression",
        ),
        ("License-Expression: nonsense of mine", "", ("nonsense of mine",), "License-Expression"),
        ("License: Apache 2.0", "Apache-2.0", ("Apache 2.0",), "License"),
        (
            "License: BSD\nClassifier: License :: OSI Approved :: BSD License",
            "",
            ("BSD", "BSD License"),
            "License",
        ),
        ("Classifier: License :: OSI Approved :: MIT License", "MIT", ("MIT License",), "classifier"),
        ("Classifier: License :: OSI Approved :: BSD License", "", ("BSD License",), "classifiers"),
        (
            "License: A text\n that goes on\nClassifier: License :: OSI Approved :: BSD License",
            "",
            ("BSD License",),
            "classifiers",
        ),
        ("License: UNKNOWN", "", (), ""),
        ("Classifier: License :: OSI Approved", "", (), ""),
        ("", "", (), ""),
    ],
)
def test_of_a_wheel(headers: str, expression: str, names: tuple[str, ...], source: str) -> None:
    found = of_metadata(f"Name: x\n{headers}\n\nLicense: not this, it is the description\n")
    assert (found.expression, found.names) == (expression, names)
    assert found.source.endswith(source)
    assert found.known is bool(names) and not found.proprietary


@pytest.mark.parametrize(
    "headers", ["License: NVIDIA Proprietary Software", "Classifier: License :: Other/Proprietary License"]
)
def test_a_proprietary_one_is_called_so(headers: str) -> None:
    found = of_metadata(f"Name: x\n{headers}\n", "x.dist-info/License.txt")
    assert found.proprietary and found.known and found.file == "x.dist-info/License.txt"
    assert not found.expression or found.expression.startswith("LicenseRef-")


def test_the_file_beside_the_metadata() -> None:
    paths = [
        "a-1.dist-info/RECORD",
        "a-1.dist-info/licenses/LICENSE.md",
        "b-1.dist-info/LICENSE",
        "a-1.dist-info/x/LICENSE",
    ]
    assert licences.beside("a-1.dist-info/METADATA", paths) == "a-1.dist-info/licenses/LICENSE.md"
    assert licences.beside("c-1.dist-info/METADATA", paths) == ""
    assert licences.beside("a-1.dist-info/METADATA", ["a-1.dist-info/COPYING.txt"]).endswith("COPYING.txt")


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("Files: *\nLicense: GPL-2+\n Text\n", "GPL-2.0-or-later"),
        (
            "Files: *\nLicense: GPL-2+\n\nFiles: b\nLicense: Expat\n\nLicense: GPL-2+\n Text\n",
            "GPL-2.0-or-later AND MIT",
        ),
        ("Files: *\nLicense: GPL-1+ or Artistic\n", "GPL-1.0-or-later OR LicenseRef-Artistic"),
        (
            "Files: *\nLicense: GPL-1+ or Artistic\n\nFiles: b\nLicense: MIT and ISC\n",
            "(GPL-1.0-or-later OR LicenseRef-Artistic) AND ISC AND MIT",
        ),
        ("Files: *\nLicense: Expat, and GPL-2\n", "LicenseRef-Expat-and-GPL-2"),
        ("Files: *\nLicense: public-domain\n", "LicenseRef-public-domain"),
        ("Files: *\nLicense: " + "Permission to use, copy, modify " * 9, "LicenseRef-text-without-a-name"),
        ("License: Zlib\n Text\n", "Zlib"),
    ],
)
def test_of_a_machine_readable_copyright_file(text: str, expression: str) -> None:
    found = of_copyright(HEAD + text)
    assert found.expression == expression and found.source == "copyright file (DEP-5)"


def test_of_free_text_what_it_refers_to_is_named_and_no_expression_made_of_it() -> None:
    found = of_copyright(
        "On Debian systems see /usr/share/common-licenses/GPL-2.\nalso `/usr/share/common-licenses/LGPL'"
    )
    assert (found.expression, found.names) == ("", ("GPL-2", "LGPL"))
    assert not of_copyright("It is free.").known
    assert not of_copyright("").known and not of_copyright(HEAD).known


def test_copyright_files_are_found_through_links_that_stay_in_the_image() -> None:
    link = Entry("l", 0o777, "0:0", 0, "gcc-12-base")
    texts = {"usr/share/doc/gcc-12-base/copyright": "x"}
    image = replace(SIDE, texts=texts, entries={"usr/share/doc/libgcc-s1": link})
    assert copyright_text("gcc-12-base", image) == copyright_text("libgcc-s1", image) == "x"
    for target in ("../../../../../../etc", "/etc", "libgcc-s1", "nowhere"):
        odd = replace(image, entries={"usr/share/doc/libgcc-s1": link._replace(content=target)})
        assert copyright_text("libgcc-s1", odd) == ""
    absolute = replace(
        image, entries={"usr/share/doc/a": link._replace(content="/usr/share/doc/gcc-12-base")}
    )
    assert copyright_text("a", absolute) == "x"
