"""`python -m parnassus` is `parnassus`."""

from parnassus.cli.main import main

if __name__ == "__main__":
    main()
