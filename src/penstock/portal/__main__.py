"""`python -m penstock.portal`: the command line without the installed script."""

from penstock_command import main

if __name__ == "__main__":
    main()
