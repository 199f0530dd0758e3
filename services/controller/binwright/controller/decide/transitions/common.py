"""What several states of the controller do alike."""

from dataclasses import replace

from binwright.controller.decide.applying import declare_dead, process_ended
from binwright.controller.decide.events import Event, Measured, ProcessEnded
from binwright.controller.decide.group import Group, Update
from binwright.controller.decide.measurements import apply_measurement
from binwright.controller.decide.moves.commands import resend
from binwright.controller.decide.moves.writer_roles import move_writers
from binwright.controller.decide.plans.drain import keep_alive
from binwright.controller.decide.states import State, Step
from binwright.protocol.monitors import drop_silent


def on_measured(state: State, event: Measured) -> Step:
    """Store the rates; what follows is decided at the next tick, when all topics have arrived."""
    group, logs = apply_measurement(state.group, event)
    return replace(state, group=group), logs


def on_process_ended(state: State, event: ProcessEnded) -> Step:
    """Declare the process dead; effective once read back, as any other death."""
    group, actions = process_ended(state.group, event)
    return replace(state, group=group), actions


def ignore(state: State, _event: Event) -> Step:
    """Do nothing."""
    return state, ()


def run_timers(group: Group, now: float) -> Update:
    """Do what is due: deaths, commands to repeat, draining consumers, silent monitors."""
    group, deaths = declare_dead(group, now)
    group, commands = resend(group, now)
    monitors, logs = drop_silent(group.monitors, now)
    if logs:
        group = replace(group, monitors=monitors)
    return group, (*deaths, *commands, *keep_alive(group), *logs)


def assign_writers(group: Group, now: float) -> Update:
    """Give every table its writer; in mode `observe` no command is sent."""
    return (group, ()) if group.config.mode == "observe" else move_writers(group, now)
