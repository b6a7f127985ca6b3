"""``python -m localglm`` is the same program as the ``localglm`` command."""

from localglm.cli.app import main

if __name__ == "__main__":
    main()
