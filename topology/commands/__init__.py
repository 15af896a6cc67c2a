"""The subcommands of `spiderduck`, one module a family: `run` (and `demo`), `read`, `completed`, `produce`, `worker`.

`options` turns flags into settings, `loop` turns signals into a wish to stop, `show` is what a person sees.
"""
