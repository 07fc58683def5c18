"""Unmodified clients: supabase-js in Node and in Chromium, supabase-py, a browser's fetch."""

import re
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx

from local import ROOT
from shared.services import Services
from tests.actors import Actor, vector
from tests.conftest import People
from tests.external_programs import run_node
from tests.functions.test_rag_search import tell
from tests.isolation.test_documents import collection
from tests.stand_in_server import Reply, StandIn
from tests.storage_server import BUCKET
from tests.upload_client import Uploads

HERE = Path(__file__).parent
KETTLE = "The kettle switches off at 100 degrees. The kettle holds 1.7 litres."
UMD = ROOT / "node_modules" / "@supabase" / "supabase-js" / "dist" / "umd" / "supabase.js"


def given_for(actor: Actor, **more: Any) -> dict[str, Any]:
    stack = actor.stack
    return {"url": stack.url, "key": stack.publishable_key, "token": actor.token(), **more}


def test_supabase_js_works_unmodified(people: People, services: Services):
    tell(services, people.ann, "Kettle manual", KETTLE)
    result = run_node(HERE / "supabase_js.mjs", given_for(people.ann, vector=vector(1)))
    assert result["search"]["results"][0]["source_title"] == "Kettle manual"
    assert "100 degrees" in result["answer"]["answer"]["text"]
    assert result["invalid"]["status"] == 400
    assert result["invalid"]["body"]["error"]["code"] == "invalid_request"
    assert result["matchError"] is None
    assert [row["title"] for row in result["match"]] == ["Kettle manual"]
    assert result["member"] is False
    assert result["tableError"] == "PGRST205" or result["tableError"].startswith(("42", "PGRST"))


def test_the_documented_fetch_reaches_functions_outside_the_project(
    people: People, services: Services, tmp_path: Path
):
    """The example of docs/frontend.md, with a project that does not answer and the stack as the functions."""
    tell(services, people.ann, "Kettle manual", KETTLE)
    page = (ROOT / "docs" / "frontend.md").read_text()
    (example,) = re.findall(r"```js\n(const PROJECT .*?)```", page, re.DOTALL)
    example = example.replace("https://<ref>.supabase.co", "http://project.invalid")
    example = example.replace("https://rag.example.com", people.ann.stack.url)
    # Instead of a session, which the project would have given.
    example = example.replace("global:", f'accessToken: async () => "{people.ann.token()}", global:')
    (tmp_path / "node_modules").symlink_to(ROOT / "node_modules")
    script = tmp_path / "example.mjs"
    script.write_text(
        f"import {{ createClient }} from '@supabase/supabase-js';\n"
        f"const publishableKey = '{people.ann.stack.publishable_key}';\n{example}\n"
        f"console.log(JSON.stringify({{ data, error }}));"
    )
    result = run_node(script, {})
    assert result["error"] is None
    assert result["data"]["status"] in ("success", "insufficient_context")


def test_supabase_js_uploads_with_a_signed_url(uploading: Uploads, people: People):
    home = collection(people.ann)
    begun = uploading.begin(people.ann, home).json()
    address = urlsplit(begun["upload_url"])
    arguments = given_for(people.ann, bucket=BUCKET, path=address.path.partition(f"/{BUCKET}/")[2])
    arguments |= {
        "url": uploading.server.url,
        "uploadToken": parse_qs(address.query)["token"][0],
        "text": KETTLE,
    }
    result = run_node(HERE / "supabase_storage.mjs", arguments)
    assert (result["error"], result["uploaded"]["path"]) == (None, arguments["path"])
    assert (result["again"], result["size"], result["removed"]) == ("409", len(KETTLE), [])
    row = uploading.finish(people.ann, begun["upload"]).json()
    uploading.work()
    assert uploading.state_of(people.ann, row)["status"] == "completed"


def test_supabase_py_works_unmodified(people: People, services: Services):
    from supabase import create_client
    from supabase.lib.client_options import SyncClientOptions

    tell(services, people.ann, "Kettle manual", KETTLE)
    with httpx.Client() as transport:
        bearer = {"Authorization": f"Bearer {people.ann.token()}"}
        options = SyncClientOptions(headers=bearer, auto_refresh_token=False, httpx_client=transport)
        client = create_client(people.ann.stack.url, people.ann.stack.publishable_key, options)
        rows: Any = (
            client.rpc("rag_match", {"query_vector": vector(1), "top_k": 3, "filters": {}}).execute().data
        )
        assert [row["title"] for row in rows] == ["Kettle manual"]
        body: Any = client.functions.invoke(
            "rag-search", {"body": {"query_text": "kettle"}, "responseType": "json"}
        )
        assert body["results"][0]["source_title"] == "Kettle manual"


def test_a_page_of_another_origin_calls_the_functions_from_chromium(
    people: People, services: Services, browser: str
):
    tell(services, people.ann, "Kettle manual", KETTLE)
    page = b"<!doctype html><meta charset=utf-8><title>app</title><script>" + UMD.read_bytes() + b"</script>"
    with StandIn() as app:
        app.replies(Reply(body=page, headers={"Content-Type": "text/html"}))
        result = run_node(HERE / "browser.mjs", given_for(people.ann, browser=browser, page=app.url))
        assert result["origin"] == app.url
    assert result["status"] == 200
    assert result["body"]["results"][0]["source_title"] == "Kettle manual"
    assert result["remaining"] == "59", "the browser may read the limit's headers"
    assert result["requestId"]
    assert result["invokedError"] is None
    assert "100 degrees" in result["invoked"]["answer"]["text"]
    assert (result["member"], result["memberError"]) == (False, None)
