"""What Lambda does with a zip, run by a bare Python that sees the standard library and the zip alone.

Its arguments are the zip's folder and the libraries to import at once. Each line of standard input is a job:
the environment, the handler to import, the events to give it, and where to write its output. The handler
"echo" is a function made here, of the zip's own frame, that tells what reached it.
"""

import importlib
import json
import os
import sys
import traceback
from types import SimpleNamespace
from typing import Any


def echo() -> Any:
    from fastapi import Request
    from fastapi.responses import JSONResponse

    from shared.api.app import create_app, lambda_handler
    from shared.api.contracts import rag

    app = create_app(rag, "echo", errors=())

    @app.post("/echo")
    async def tell(request: Request) -> JSONResponse:
        answer = JSONResponse(
            {
                "headers": request.headers.items(),
                "cookies": request.cookies,
                "query": request.query_params.multi_items(),
                "body": list(await request.body()),
                "client": request.client.host if request.client else None,
                "scheme": request.url.scheme,
            }
        )
        answer.set_cookie("first", "1")
        answer.set_cookie("second", "2")
        answer.headers.append("X-Many", "one")
        answer.headers.append("X-Many", "two")
        return answer

    return lambda_handler(app)


def run(job: dict[str, Any]) -> None:
    """Import one handler and give it its events."""
    os.environ.clear()
    os.environ.update(job["environment"])
    if job["handler"] == "echo":
        handler = echo()
    else:
        module, _, name = job["handler"].rpartition(".")
        handler = getattr(importlib.import_module(module), name)
    context = SimpleNamespace(
        aws_request_id="b7f1", function_name="rag", get_remaining_time_in_millis=lambda: 9
    )
    answers = [handler(event, context) for event in job["events"]]
    places = {getattr(module, "__file__", None) or "" for module in list(sys.modules.values())}
    json.dump({"answers": answers, "files": sorted(places), "path": sys.path}, sys.stdout)


def main() -> None:
    """Fork for each job: the libraries are imported once, and one handler leaves nothing to the next."""
    # The zip's folder is read-only in Lambda.
    sys.dont_write_bytecode = True
    sys.path.insert(0, sys.argv[1])
    for library in sys.argv[2:]:
        importlib.import_module(library)
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if child == 0:
            for number, name in ((1, "stdout"), (2, "stderr")):
                os.dup2(os.open(f"{job['output']}.{name}", os.O_CREAT | os.O_WRONLY, 0o600), number)
            try:
                run(job)
                status = 0
            except BaseException:
                traceback.print_exc()
                status = 1
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status)
        sys.stdout.write(f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
