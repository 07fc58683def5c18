"""A streamed answer with its sources, and a second question in the same session."""

from uuid import uuid4

from mnemosyne import Mnemosyne

TEXT = "The kettle switches off at 100 degrees. It holds 1.7 litres of water."

with Mnemosyne() as client:
    collection = client.collections.create(name=f"kettles-{uuid4().hex[:8]}")
    document = client.documents.create_from_text(collection.id, TEXT, title="Kettle")
    client.documents.wait_until_ready(document.id)

    session_id = None
    for question in ("At how many degrees does the kettle switch off?", "How much water does it hold?"):
        with client.chat.completions.create(
            collection_id=collection.id,
            messages=[{"role": "user", "content": question}],
            session_id=session_id,
            is_follow_up=session_id is not None,
            stream=True,
        ) as stream:
            for chunk in stream:
                if chunk.sources:
                    print("from:", ", ".join(str(source.title) for source in chunk.sources))
                if text := chunk.choices[0].delta.content:
                    print(text, end="", flush=True)
                if chunk.type == "done":
                    session_id = chunk.session_id
                    detail = chunk.confidence_detail
                    print(f"\n({detail.level if detail else 'no'} confidence)")

    if session_id:
        print([message.role for message in client.chat.sessions.messages(session_id)])
    client.collections.delete(collection.id, cascade=True)
