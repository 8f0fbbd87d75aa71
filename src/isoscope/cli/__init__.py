"""The command line: one file a verb, each thin. Only here is anything printed or the process ended."""
