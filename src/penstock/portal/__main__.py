"""`python -m penstock.portal`: the command line without the installed script."""

from penstock.portal.cli import main

if __name__ == "__main__":
    main()
