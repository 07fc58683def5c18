"""What Lambda does with a zip, run by a bare Python that sees the standard library and the zip alone.

Standard input says where it lies, which handler to import and which events to give it; standard output gets
the answers. The handler "echo" is a function made here, of the zip's own frame, that tells what reached it.
"""

import importlib
import json
import sys
from types import SimpleNamespace
from typing import Any


def echo() -> Any:
    from fastapi import Request
    from fastapi.responses import JSONResponse

    from shared.app import create_app, lambda_handler
    from shared.dialects import rag

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


def main() -> None:
    given = json.load(sys.stdin)
    # The zip's folder is read-only in Lambda.
    sys.dont_write_bytecode = True
    sys.path.insert(0, given["root"])
    if given["handler"] == "echo":
        handler = echo()
    else:
        module, _, name = given["handler"].rpartition(".")
        handler = getattr(importlib.import_module(module), name)
    context = SimpleNamespace(
        aws_request_id="b7f1", function_name="rag", get_remaining_time_in_millis=lambda: 9
    )
    answers = [handler(event, context) for event in given["events"]]
    places = {getattr(module, "__file__", None) or "" for module in list(sys.modules.values())}
    json.dump({"answers": answers, "files": sorted(places), "path": sys.path}, sys.stdout)


if __name__ == "__main__":
    main()
