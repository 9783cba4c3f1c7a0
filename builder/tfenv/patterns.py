"""How single values of matrix.yaml may look, and the words for what was expected instead.

The patterns admit no space, quote, backslash, dollar sign, line break or other character that could
end an instruction of a Dockerfile or a word of a shell: values go from here into generated files.
"""

# [0-9] and not \d: to pydantic's engine \d is any digit of Unicode.
VERSION = r"^[0-9]{1,4}(\.[0-9]{1,4}){1,3}$"
RELEASE = r"^[0-9]{1,4}(\.[0-9]{1,4}){2}((rc|\.post)[0-9]{1,3})?$"
PYTHON = r"^3\.[0-9]{1,2}$"
# Three letters first, so that no base is mistaken for the cu12 or py3.11 of a tag.
BASE = r"^[a-z]{3,20}[0-9][0-9.]{0,9}$"
CUDA_SET = r"^cu[0-9]{1,4}(\.[0-9]{1,4}){1,2}-cudnn[0-9]{1,4}(\.[0-9]{1,4}){1,2}$"
REPOSITORY = (
    r"^([a-z0-9]+([.-][a-z0-9]+)*(:[0-9]{1,5})?/)?"
    r"[a-z0-9]+([._-][a-z0-9]+)*(/[a-z0-9]+([._-][a-z0-9]+)*){0,4}$"
)
SUITE = r"^[a-z][a-z0-9-]{1,30}$"
PACKAGE = r"^[a-z0-9][a-z0-9+.-]{1,60}$"
TIME = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z$"
_CLAUSE = r"(===?|~=|!=|<=|>=|<|>)[0-9][A-Za-z0-9.+*]{0,30}"
REQUIREMENT = (
    r"^[A-Za-z0-9][A-Za-z0-9._-]{0,60}(\[[a-z0-9-]+(,[a-z0-9-]+)*\])?"
    rf"({_CLAUSE}(,{_CLAUSE}){{0,5}})?$"
)
GLIBC = r"^2\.[0-9]{1,3}$"
IMAGE = (
    r"^([a-z0-9]+([.-][a-z0-9]+)*(:[0-9]{1,5})?/)?[a-z0-9]+([._-][a-z0-9]+)*(/[a-z0-9]+([._-][a-z0-9]+)*){0,4}"
    r":[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}(@sha256:[0-9a-f]{64})?$"
)
SONAME = r"^lib[A-Za-z0-9_]+\.so(\.[0-9]{1,4}){0,4}$"
WHEEL = r"^[a-z0-9]+(-[a-z0-9]+){0,8}$"
GLOB = r"^[A-Za-z0-9_*?][A-Za-z0-9_.*?+-]*(/[A-Za-z0-9_*?][A-Za-z0-9_.*?+-]*)*$"
# No digit first: what begins with one is a cell's name or alias.
ENVIRONMENT = r"^[a-z][a-z0-9]{0,20}([._-][a-z0-9]{1,20}){0,4}$"
CELL = r"^[a-z0-9][a-z0-9._-]{0,80}$"
# Control, line-separating, invisible and direction-changing characters, and what a shell expands.
_UNPRINTABLE = r"\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff" + '"\\\\$`'
REASON = rf"^[^\s{_UNPRINTABLE}][^{_UNPRINTABLE}]{{9,399}}$"

#: What a value that does not match a pattern should have been.
EXPECTED = {
    VERSION: 'a version such as "12.2"',
    RELEASE: "a release such as 2.15.1, 2.15.0.post1 or 2.22.0rc0",
    PYTHON: 'a Python version such as "3.11"',
    BASE: "a name such as debian12: lower-case letters, then a version",
    CUDA_SET: "a name such as cu12.2-cudnn8.9",
    REPOSITORY: "an image repository such as tfenv or registry.example.com:5000/team/tfenv",
    SUITE: "a code name such as bookworm",
    PACKAGE: "a Debian package name such as libstdc++6",
    TIME: "a time in UTC such as 2024-03-20T00:00:00Z",
    REQUIREMENT: 'a requirement without spaces such as "tensorflow[and-cuda]==2.15.1"',
    GLIBC: "a version of the GNU C library such as 2.35",
    IMAGE: "an image with a tag, such as nvidia/cuda:12.2.2-cudnn8-runtime-ubuntu22.04, and best its digest",
    SONAME: "the soname of a library such as libcupti.so.11.2",
    WHEEL: "a normalised distribution name such as nvidia-nccl-cu12",
    GLOB: "a relative path or glob such as nvidia/*/include/**",
    ENVIRONMENT: "a name such as vision or vision-2: "
    "lower-case letters and digits, in parts joined by - . or _",
    CELL: "the name or an alias of a cell, such as 2.15-cu12",
    REASON: "a reason in plain words, on one line, of 10 to 400 characters, without double quotes, "
    "backslashes, dollar signs and backticks",
}
