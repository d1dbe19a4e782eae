"""What a notebook or a script uses: recordings, devices and studies with their answers shown as tables.

Not here: logic that the command line would miss.
"""
