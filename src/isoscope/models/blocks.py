"""Which modules are the layers: found by structure, not by name.

A stack is a ModuleList or Sequential whose members are alike, each with two weight matrices or more. Its
members are the blocks, unless they are stages: members whose weights all lie in stacks (ALBERT's groups,
ResNet's stages), or that hold a stack which is a chain (ConvNeXt's and Swin's stages). Whether a stack inside
a member is a chain, each taking what the one before gave, shows only when the model runs; so a trial run
decides. In a plain CNN every convolution with the norm that follows it is a block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import pairwise
from typing import Any

from torch import Tensor, nn

from isoscope.errors import IsoscopeError

_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


def plain_name(name: str) -> str:
    """A module's name without what wrappers put before it.

    >>> plain_name("module._orig_mod.h.0")
    'h.0'
    """
    return ".".join(part for part in name.split(".") if part not in ("module", "_orig_mod"))


def find_blocks(module: nn.Module, trial: Callable[[], object] | None = None) -> dict[str, nn.Module]:
    """The repeated blocks by name, in order; `trial` runs the model where structure does not decide."""
    chains = _chains(module, trial) if trial is not None else frozenset()
    found = dict(_blocks(module, "", chains)) or dict(_convolutions(module))
    if not found:
        raise IsoscopeError(
            f"{type(module).__name__} shows nothing to measure: looked for a ModuleList or Sequential of "
            "like blocks, each with several weight matrices, or for convolutions, and found none. "
            "Give the model that holds the blocks, or put its layers into a ModuleList."
        )
    return {plain_name(name): block for name, block in found.items()}


def _blocks(module: nn.Module, name: str, chains: frozenset[int]) -> Iterator[tuple[str, nn.Module]]:
    members = [(f"{name}.{key}" if name else key, member) for key, member in module.named_children()]
    if _is_stack(module) and not _holds_stages(module, chains):
        yield from members
    else:
        for key, member in members:
            yield from _blocks(member, key, chains)


def _is_stack(module: nn.Module) -> bool:
    """A list of like members, each with two matrices or more; mixed kinds if each comes twice on average."""
    if not isinstance(module, nn.ModuleList | nn.Sequential) or len(module) == 0:
        return False
    kinds = {type(getattr(member, "_orig_mod", member)) for member in module}  # seen through torch.compile
    alike = len(kinds) == 1 or 2 * len(kinds) <= len(module)
    return alike and all(sum(weight.dim() >= 2 for weight in part.parameters()) >= 2 for part in module)


def _holds_stages(stack: nn.Module, chains: frozenset[int]) -> bool:
    members = list(stack.children())
    inside = [part for member in members for part in member.modules()]
    return all(map(_is_all_stacks, members)) or any(id(part) in chains for part in inside)


def _is_all_stacks(member: nn.Module) -> bool:
    """Whether all of a member's weights lie in stacks, its own or itself one."""
    covered = {id(weight) for stack in member.modules() if _is_stack(stack) for weight in stack.parameters()}
    return bool(covered) and all(id(weight) in covered for weight in member.parameters())


def _chains(module: nn.Module, trial: Callable[[], object]) -> frozenset[int]:
    """The stacks inside members of stacks that are chains: each call takes the very tensor the last gave."""
    outer = [part for part in module.modules() if _is_stack(part)]
    nested = {
        id(part): part for stack in outer for part in stack.modules() if part is not stack and _is_stack(part)
    }
    if not nested:
        return frozenset()
    calls: dict[int, list[tuple[list[Tensor], list[Tensor]]]] = {key: [] for key in nested}
    with ExitStack() as hooks:
        for key, stack in nested.items():
            for member in stack.children():

                def note(block: nn.Module, args: Any, kwargs: Any, output: Any, key: int = key) -> None:
                    calls[key].append((float_tensors(args, kwargs), float_tensors(output)))

                hooks.enter_context(member.register_forward_hook(note, with_kwargs=True))
        trial()
    return frozenset(
        key for key, made in calls.items() if len(made) > 1 and all(handed_on(*two) for two in pairwise(made))
    )


def handed_on(
    one: tuple[list[Tensor], list[Tensor]], next_one: tuple[list[Tensor], list[Tensor]]
) -> tuple[int, int] | None:
    """Where among what one block gives, and among what the next takes, the very same tensor stands."""
    for gives, given in enumerate(one[1]):
        for takes, taken in enumerate(next_one[0]):
            if given is taken:
                return gives, takes
    return None


def float_tensors(*given: Any) -> list[Tensor]:
    """The tensors of floats among what a block takes or gives, in order, one level deep."""
    found = []
    for value in given:
        value = list(value.values()) if isinstance(value, dict) else value
        values = value if isinstance(value, tuple | list) else [value]
        found += [part for part in values if isinstance(part, Tensor) and part.is_floating_point()]
    return found


def _convolutions(module: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Every convolution of a plain CNN; where a norm is registered right after it, that norm instead."""
    parts = [(name, part) for name, part in module.named_modules() if not any(part.children())]
    for (name, part), (next_name, following) in pairwise([*parts, ("", module)]):
        if isinstance(part, _CONVOLUTIONS):
            normed = "norm" in type(following).__name__.lower()
            yield (next_name, following) if normed else (name, part)
