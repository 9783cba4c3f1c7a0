"""What follows from values by the tables of facts: what a release was compiled for, what a GPU is."""

from __future__ import annotations

from tfenv.errors import UsageError

from .conditions import Values


def derive(values: Values) -> dict[str, str]:
    """The values, and what the facts add to them; ``library.DERIVED`` names these."""
    found = dict(values)
    if release := values.get("tensorflow"):
        found.update(_of_release(release))
    if gpu := values.get("gpu") or values.get("compute_capability"):
        found.update({name: value for name, value in _of_gpu(gpu).items() if name not in found})
    return found


def _of_release(release: str) -> dict[str, str]:
    from packaging.version import InvalidVersion

    from tfenv import facts
    from tfenv.versions import major, minor

    try:
        own = minor(release)
        known = facts.releases()
        same = [r for r in known if r == release] or [r for r in known if minor(r) == own]
        if not same:
            return {"tf_minor": own}
        compiled = facts.compiled(same[-1])
    except (InvalidVersion, UsageError):
        return {}
    told = {"tf_minor": own, "tf_pythons": ", ".join(compiled.pythons)}
    if compiled.cuda:
        told |= {"tf_cuda": compiled.cuda, "tf_cuda_major": major(compiled.cuda)}
    if compiled.cudnn:
        told |= {"tf_cudnn": compiled.cudnn, "tf_cudnn_major": major(compiled.cudnn)}
    return told


def _of_gpu(name: str) -> dict[str, str]:
    from tfenv import gpus

    found = gpus.find(name)
    return {"capability": found.capability, "sm": found.target} if found else {}
