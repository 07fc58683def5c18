"""The asynchronous client: several documents at once, all pages of a list, a streamed answer."""

import asyncio
from uuid import uuid4

from mnemosyne import AsyncMnemosyne

TEXTS = {
    "Kettle": "The kettle switches off at 100 degrees.",
    "Toaster": "The toaster browns bread in two minutes.",
    "Oven": "The oven heats up to 250 degrees.",
}


async def main() -> None:
    async with AsyncMnemosyne() as client:
        collection = await client.collections.create(name=f"kitchen-{uuid4().hex[:8]}")
        create, wait = client.documents.create_from_text, client.documents.wait_until_ready
        made = await asyncio.gather(
            *(create(collection.id, text, title=title) for title, text in TEXTS.items())
        )
        await asyncio.gather(*(wait(document.id) for document in made))

        page = await client.documents.list(collection.id, limit=2, sort_by="title", order="asc")
        print([document.title async for document in page.auto_paging_iter()])

        async with await client.chat.completions.create(
            collection_id=collection.id,
            messages=[{"role": "user", "content": "How fast does the toaster brown bread?"}],
            stream=True,
        ) as stream:
            async for chunk in stream:
                print(chunk.choices[0].delta.content or "", end="")
        print()
        await client.collections.delete(collection.id, cascade=True)


asyncio.run(main())
