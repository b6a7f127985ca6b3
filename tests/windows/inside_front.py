"""A front end that answers until somebody ends it; it writes one character when the answer runs."""

from __future__ import annotations

import sys

from localglm.engine import protocol as p
from localglm.engine.client import Engine

if __name__ == "__main__":
    with Engine() as engine:
        engine.open_model(p.OpenModel(request=0, path=sys.argv[1]))
        prompt = p.RandomPrompt(12, 1)
        while True:
            for event in engine.generate(p.Generate(request=0, prompt=prompt, ignore_end=True)):
                if isinstance(event, p.Delta):
                    sys.stdout.write(".")
                    sys.stdout.flush()
