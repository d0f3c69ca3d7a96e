"""Interpreter of the thread blocks of one rank; messages between ranks go through another object.

The interpreter executes each block until the block has to wait.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from opticoll._core import ProgramError
from opticoll.execution.elements import TYPES
from opticoll.execution.payload import Payload

Buffers = list[NDArray[Any]]
"""Buffers for input, output and scratch; in place, one of input and output contains the other."""

RECEIVING = {"r", "rcs", "rrc", "rrs", "rrcs"}
SENDING = {"s", "rcs", "rrs", "rrcs"}
REDUCING = {"rrc", "rrs", "rrcs"}
READING = {"s", "rrc", "rrs", "rrcs", "cpy", "re"}
WRITING = {"r", "rcs", "rrc", "rrcs", "cpy", "re"}


class StuckError(Exception):
    """Error if no thread block can continue; the message names what the first block waits for."""

    def __init__(self, message: str, missing: Sequence[int] = ()) -> None:
        super().__init__(message)
        self.missing = missing
        """Ranks that do not answer; some of them may only wait for another of these ranks."""


class Messages(Protocol):
    """Messages that a rank receives and sends."""

    def receive(self, source: int, channel: int, like: NDArray[Any]) -> NDArray[Any] | None:
        """Returns the next message as an array like `like`, or None if it has not arrived."""
        ...

    def send(self, value: NDArray[Any], to: int, channel: int, position: str) -> None:
        """Sends a message, which must not change until it has arrived."""
        ...


def buffers(payload: Payload, rank: int, scratch: int, *, in_place: bool) -> Buffers:
    """Returns the buffers of a rank, with the rank's input filled in."""
    piece = payload.collective.pieces * payload.elements
    own_input = payload.input(rank)
    sizes = payload.sizes(rank)
    if payload.collective.kind in ("broadcast", "reduce"):
        # Ranks without input or output only forward data.
        sizes = (piece, piece)
    parts = [np.zeros(size, payload.dtype) for size in sizes]
    if in_place:
        own_block = slice(rank * piece, (rank + 1) * piece)
        if sizes[0] == sizes[1]:
            parts[1] = parts[0]
        elif sizes[1] > sizes[0]:
            parts[0] = parts[1][own_block]
        elif sizes[0] > sizes[1] > 0:
            parts[1] = parts[0][own_block]
    parts[0][: own_input.size] = own_input
    return [*parts, np.zeros(scratch * payload.elements, payload.dtype)]


class Interpreter:
    """Interpreter that executes the thread blocks of a rank."""

    def __init__(
        self, blocks: Sequence[Any], payload: Payload, memory: Buffers, messages: Messages
    ) -> None:
        self.blocks, self.memory, self.messages = blocks, memory, messages
        self.elements = payload.elements
        self.combine = TYPES[payload.element_type].combine(payload.operator)
        self.next_of = [0] * len(blocks)
        """Index of the next instruction, by thread block."""
        self._open = {number for number, block in enumerate(blocks) if block[3]}

    @property
    def ended(self) -> bool:
        """Returns whether all instructions have been executed."""
        return not self._open

    def advance(self, note: Callable[[int, int], object] = lambda block, step: None) -> bool:
        """Executes each thread block until it has to wait; returns whether any instruction ended.

        `note` is called after each instruction with the block and its next step.
        """
        moved = False
        for number in sorted(self._open):
            block = self.blocks[number]
            count = len(block[3])
            while self._step(number, block):
                self.next_of[number] += 1
                moved = True
                note(number, self.next_of[number])
                if self.next_of[number] == count:
                    self._open.discard(number)
                    break
        return moved

    def waiting(self) -> str | None:
        """Returns a text about the event for which the first unfinished thread block waits."""
        if self.ended:
            return None
        number = min(self._open)
        _, source, channel, instructions = self.blocks[number]
        instruction = instructions[self.next_of[number]]
        where = self._position(number)
        if instruction[6] >= 0 and self.next_of[instruction[6]] <= instruction[7]:
            return f"{where} waits for thread block {instruction[6]}, step {instruction[7]}"
        return f"{where} waits for a message from rank {source} on channel {channel}"

    def _step(self, number: int, block: Any) -> bool:
        """Executes the next instruction of a thread block; returns False if the block must wait.

        Raises
        ------
        ProgramError
            The instruction accesses data outside of a buffer, or a message has another length.
        """
        to, source, channel, instructions = block
        act, from_buffer, from_, to_buffer, to_, count, waits, step = instructions[
            self.next_of[number]
        ]
        if waits >= 0 and self.next_of[waits] <= step:
            return False
        if act == "nop":
            return True
        elements = self.elements
        read = self.memory[from_buffer][from_ * elements : (from_ + count) * elements]
        target = self.memory[to_buffer][to_ * elements : (to_ + count) * elements]
        size = count * elements
        if (act in READING and read.size != size) or (act in WRITING and target.size != size):
            raise ProgramError(f"{self._position(number)} is outside of its buffer")
        if act in RECEIVING:
            value = self.messages.receive(source, channel, target if act in WRITING else read)
            if value is None:
                return False
            if value.size != size:
                position = self._position(number)
                raise ProgramError(f"{position} receives a message of another length")
            if act in REDUCING:
                value = self.combine(value, read)
        elif act == "re":
            value = self.combine(target, read)
        else:
            value = read.copy()
        if act in WRITING:
            target[:] = value
        if act in SENDING:
            self.messages.send(value, to, channel, self._position(number))
        return True

    def _position(self, number: int) -> str:
        """Returns the position of the next instruction of a thread block."""
        return f"thread block {number}, step {self.next_of[number]}"
