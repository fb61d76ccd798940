"""What no kernel could pass to a task is refused here, by the option that is to blame.

``loading`` asks once all options are right in themselves, ``service`` once the TASKCFG_* variables
are laid over them. How large something gets is ``core.cluster.kernel_limits``'s to say. Pure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from dcos_tensorflow.core.cluster import kernel_limits
from dcos_tensorflow.core.counted import counted
from dcos_tensorflow.core.spec.service_spec import GANG_ROLES, Addressing, ServiceSpec, TaskRole
from dcos_tensorflow.options.errors import OptionProblem


def problems(
    spec: ServiceSpec, groups: Mapping[TaskRole, str], variable: Callable[[TaskRole, str], str]
) -> Iterator[OptionProblem]:
    """Yield what is too large in ``spec``.

    ``groups`` are the groups of options by role; ``variable`` says where one of a role's variables
    was given.
    """
    largest = max((r for r in spec.roles if r.role in GANG_ROLES), key=lambda r: r.count)
    count = f"{groups[largest.role]}.count"
    by_name = spec.addressing is Addressing.DNS
    fitting = kernel_limits.members_that_fit(spec)
    if fitting is not None:
        members = sum(role.count for role in spec.roles if role.role in GANG_ROLES)
        yield OptionProblem(
            count,
            f"the addresses of {members} members do not fit TF_CONFIG: Linux passes at most "
            f"{kernel_limits.VARIABLE_BYTES} bytes in one variable",
            str(largest.count),
            f"at most {counted(fitting, 'member')} in all"
            + (", or a shorter service.name, which is in each" if by_name else ""),
        )
        return
    for role, launch in kernel_limits.launches(spec):
        if launch.fits:
            continue
        parts = {
            "service.job_context": len(spec.job.context.encode()),
            "service.job_args": sum(len(each.encode()) for each in spec.job.arguments),
            "service.job_cmd": len(spec.job.command.encode()),
            count: launch.addresses,
            **{variable(role.role, n): len(n) + len(v.encode()) for n, v in role.env.items()},
        }
        path = max(parts, key=lambda part: parts[part])
        too_much = (
            f"{launch.size} bytes, and {launch.most} can be passed on"
            if launch.size > launch.most
            else f"{launch.variable_size} bytes in one variable, and Linux passes at most "
            f"{kernel_limits.VARIABLE_BYTES}"
        )
        yield OptionProblem(
            path,
            f"environment and command of a {role.role} would have {too_much}; this has the most "
            f"of it, {parts[path]} bytes",
            "",
            "less; what is long can come as a file, by service.job_uris or in the job itself",
        )
        # The other roles have the same trouble, or are told of next time.
        return
