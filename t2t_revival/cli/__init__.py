"""The commands: one thin file each. Flags in, one call, readable errors out."""
