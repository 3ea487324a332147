"""`python -m covey` is the `covey` command."""

from covey.cli import main

main()
