"""Which modules are the layers: found by structure, not by name.

A stack is a ModuleList or Sequential whose members are alike and each made of several weighted parts.
A member whose weights all lie in stacks is a stage (ALBERT's groups, a Sequential of blocks), and its
own stacks are looked at instead. What lies inside a block (experts, heads kept in a list) is never a
layer of its own.
"""

from __future__ import annotations

from collections.abc import Iterator

from torch import nn

from isoscope.errors import IsoscopeError


def plain_name(name: str) -> str:
    """A module's name without what wrappers put before it.

    >>> plain_name("module._orig_mod.h.0")
    'h.0'
    """
    return ".".join(part for part in name.split(".") if part not in ("module", "_orig_mod"))


def find_blocks(module: nn.Module) -> dict[str, nn.Module]:
    """The repeated blocks of a model by name, in the order in which they are registered."""
    found = {plain_name(name): block for name, block in _blocks(module, "")}
    if not found:
        raise IsoscopeError(
            f"{type(module).__name__} shows nothing to measure: looked for a ModuleList or Sequential of "
            "like blocks, each with several weighted parts, and found none. "
            "Give the model that holds the blocks, or put its layers into a ModuleList."
        )
    return found


def _blocks(module: nn.Module, name: str) -> Iterator[tuple[str, nn.Module]]:
    members = [(f"{name}.{key}" if name else key, member) for key, member in module.named_children()]
    if _is_stack(module) and not all(_is_stage(member) for _, member in members):
        yield from members
    else:
        for key, member in members:
            yield from _blocks(member, key)


def _is_stack(module: nn.Module) -> bool:
    if not isinstance(module, nn.ModuleList | nn.Sequential) or len(module) == 0:
        return False
    kinds = {_kind(member) for member in module}
    return len(kinds) == 1 and all(_weighted_parts(member) >= 2 for member in module)


def _kind(module: nn.Module) -> type:
    """The class of a block, seen through torch.compile."""
    return type(getattr(module, "_orig_mod", module))


def _weighted_parts(module: nn.Module) -> int:
    """How many modules inside own weights themselves."""
    return sum(any(True for _ in part.parameters(recurse=False)) for part in module.modules())


def _is_stage(member: nn.Module) -> bool:
    """Whether all of a member's weights lie in stacks, its own or itself one."""
    covered = {id(weight) for stack in member.modules() if _is_stack(stack) for weight in stack.parameters()}
    return bool(covered) and all(id(weight) in covered for weight in member.parameters())
